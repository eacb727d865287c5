// SPDX-License-Identifier: GPL-2.0
/*
 * A function is decoded from its first instruction on, so that a byte 0xe8
 * inside another instruction is never taken for a call. What is found is live
 * text: an instruction that the compiler did not put there belongs to another
 * patcher, and then the function is left alone.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#define __printf(a, b)
#endif

#include "calls.h"

/*
 * Functions are aligned to 16 bytes. Call depth tracking has its thunks in
 * the padding before them; and what enters one past its first byte has been
 * made to skip the ENDBR or the ftrace site.
 */
#define ROOM	15

enum kind {
	PLAIN,
	CALL,		/* rel32 */
	JUMP,		/* rel8 or rel32 */
	JUMP_IF,	/* conditional, rel8 or rel32 */
	LEAVE,		/* return or indirect jump */
	TRAP,		/* ud1, ud2: may or may not be the end */
	BREAKPOINT,
};

struct insn_info {
	enum kind kind;
	size_t prefixes;
	unsigned long target;	/* of CALL, JUMP and JUMP_IF */
};

struct walk {
	const struct mmopt_text *text;
	size_t off;
	char *why;
	size_t why_len;
};

static __printf(3, 4) int refuse(struct walk *w, int err, const char *fmt, ...)
{
	size_t room = w->why_len;
	va_list ap;
	int n;

	n = snprintf(w->why, room, "%s+0x%zx: ", w->text->name, w->off);
	if (n >= 0 && (size_t)n < room) {
		va_start(ap, fmt);
		vsnprintf(w->why + n, room - n, fmt, ap);
		va_end(ap);
	}
	return err;
}

static bool is_prefix(u8 b)
{
	switch (b) {
	case 0x26: case 0x2e: case 0x36: case 0x3e:	/* segment, hint */
	case 0x64: case 0x65:
	case 0x66: case 0x67:				/* operand, address */
	case 0xf0: case 0xf2: case 0xf3:		/* lock, repeat */
		return true;
	default:
		return b >= 0x40 && b <= 0x4f;		/* REX */
	}
}

static enum kind kind_of(const u8 *p, size_t len)
{
	u8 op2 = len > 1 ? p[1] : 0;

	switch (p[0]) {
	case 0xe8:
		return CALL;
	case 0xe9: case 0xeb:
		return JUMP;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		return JUMP_IF;
	case 0xc2: case 0xc3: case 0xca: case 0xcb: case 0xcf:
		return LEAVE;
	case 0xcc:
		return BREAKPOINT;
	case 0xff:
		return (op2 >> 3 & 7) == 4 || (op2 >> 3 & 7) == 5 ? LEAVE : PLAIN;
	case 0x0f:
		if (op2 >= 0x80 && op2 <= 0x8f)
			return JUMP_IF;
		if (op2 == 0x0b || op2 == 0xb9)
			return TRAP;
		if (op2 == 0x07 || op2 == 0x35)		/* sysret, sysexit */
			return LEAVE;
		return PLAIN;
	default:
		return PLAIN;
	}
}

/* What the @len bytes at the current offset are; 0 or an error. */
static int classify(struct walk *w, size_t len, struct insn_info *insn)
{
	const u8 *p = w->text->bytes + w->off;
	size_t n = 0, imm;
	s32 rel;

	while (n + 1 < len && is_prefix(p[n]))
		n++;
	insn->prefixes = n;
	insn->target = 0;
	insn->kind = kind_of(p + n, len - n);
	if (insn->kind != CALL && insn->kind != JUMP && insn->kind != JUMP_IF)
		return 0;

	imm = len - n - (p[n] == 0x0f ? 2 : 1);
	if (imm == 4)
		memcpy(&rel, p + len - 4, 4);
	else if (imm == 1)
		rel = (signed char)p[len - 1];
	else
		return refuse(w, -EINVAL, "branch of unknown form");
	insn->target = w->text->addr + w->off + len + (long)rel;
	return 0;
}

/*
 * The nop or, when the function is traced, the call at its start. Where an
 * ENDBR stands before it, that may have been sealed to a nop of its size.
 */
static bool is_ftrace_site(const struct walk *w)
{
	static const u8 endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const u8 sealed[] = { 0x66, 0x0f, 0x1f, 0x00 };
	static const u8 sealed_udb[] = { 0x0f, 0x1f, 0x40, 0xd6 };
	const u8 *p = w->text->bytes;

	if (w->off != sizeof(endbr))
		return !w->off;
	return !memcmp(p, endbr, sizeof(endbr)) ||
	       !memcmp(p, sealed, sizeof(sealed)) ||
	       !memcmp(p, sealed_udb, sizeof(sealed_udb));
}

/* Unsigned wrap-around makes this right for @addr below @lo too. */
static bool within(unsigned long addr, unsigned long lo, unsigned long len)
{
	return addr - lo < len;
}

/*
 * Index of the callee that the branch at the current offset calls, nr_callees
 * if none, or an error if it reaches one in a way that cannot be retargeted.
 */
static long find_callee(struct walk *w, const struct insn_info *insn,
			const struct mmopt_callee *callee, size_t nr_callees)
{
	unsigned long target = insn->target;
	bool own = within(target, w->text->addr, w->text->len);
	size_t i;

	for (i = 0; i < nr_callees; i++) {
		if (target == callee[i].addr) {
			if (insn->kind != CALL)
				return refuse(w, -EINVAL,
					      "jump to %s (tail call)",
					      callee[i].name);
			if (insn->prefixes)
				return refuse(w, -EINVAL,
					      "prefixed call of %s",
					      callee[i].name);
			return i;
		}
		if (own)
			continue;
		if (within(target, callee[i].addr - ROOM, ROOM))
			return refuse(w, -EOPNOTSUPP,
				      "calls are rewritten by call depth tracking (retbleed=stuff): branch to %s-0x%lx",
				      callee[i].name, callee[i].addr - target);
		if (within(target, callee[i].addr + 1, ROOM))
			return refuse(w, -EINVAL, "branch to %s+0x%lx",
				      callee[i].name, target - callee[i].addr);
	}
	return nr_callees;
}

/* A branch must stay in the core text, and lead to no breakpoint or alien. */
static int check_target(struct walk *w, const struct insn_info *insn)
{
	const struct mmopt_text *text = w->text;
	unsigned long target = insn->target;
	const char *alien;

	if (!within(target, text->text_lo, text->text_hi - text->text_lo)) {
		if (insn->kind == CALL && is_ftrace_site(w))
			return 0;
		return refuse(w, -EBUSY,
			      "%s leaves the kernel text, another patcher?",
			      insn->kind == CALL ? "call" : "jump");
	}
	if (within(target, text->addr, text->len) &&
	    text->bytes[target - text->addr] == 0xcc)
		return refuse(w, -EBUSY, "jump to a breakpoint at +0x%lx",
			      target - text->addr);
	if (!text->alien || within(target, text->addr, text->len))
		return 0;
	alien = text->alien(target);
	if (alien)
		return refuse(w, -EINVAL, "unexpected call of %s", alien);
	return 0;
}

/*
 * Breakpoint bytes are padding where control does not get to: behind an
 * unconditional jump or a return; behind a trap or a call that may never
 * return only if nothing else follows up to the end of the function.
 */
static int check_breakpoint(struct walk *w, enum kind before)
{
	const struct mmopt_text *text = w->text;
	size_t i;

	if (before == JUMP || before == LEAVE)
		return 0;
	for (i = w->off; i < text->len && text->bytes[i] == 0xcc; i++)
		;
	if (i == text->len && (before == TRAP || before == CALL))
		return 0;
	return refuse(w, -EBUSY, "breakpoint, another patcher?");
}

static int check_counts(struct walk *w, const struct mmopt_callee *callee,
			size_t nr_callees, const struct mmopt_call *call,
			size_t nr)
{
	unsigned int n;
	size_t i, j;

	for (i = 0; i < nr_callees; i++) {
		for (j = 0, n = 0; j < nr; j++)
			n += call[j].callee == i;
		if (n >= callee[i].min && n <= callee[i].max)
			continue;
		if (callee[i].min == callee[i].max)
			snprintf(w->why, w->why_len,
				 "%s: expected %u call%s of %s, found %u",
				 w->text->name, callee[i].min,
				 callee[i].min == 1 ? "" : "s", callee[i].name,
				 n);
		else
			snprintf(w->why, w->why_len,
				 "%s: expected %u to %u calls of %s, found %u",
				 w->text->name, callee[i].min, callee[i].max,
				 callee[i].name, n);
		return -EINVAL;
	}
	return 0;
}

/**
 * mmopt_calls_alien() - must a function of this name not be called in a region?
 * @name:     of the function, which is none of @in itself
 * @in:       names of the functions that the region is in, ends with NULL. What
 *            the compiler split off one of them (".cold", ".part.0") or made of
 *            one (".isra.0") does a part of the work in text that was not decoded
 * @alien:    how names begin that must not be called, ends with NULL
 * @harmless: exceptions from @alien, ends with NULL
 *
 * Return: true if it must not.
 */
bool mmopt_calls_alien(const char *name, const char *const *in,
		       const char *const *alien, const char *const *harmless)
{
	for (; *in; in++)
		if (!strncmp(name, *in, strlen(*in)) && name[strlen(*in)] == '.')
			return true;
	for (; *harmless; harmless++)
		if (!strcmp(name, *harmless))
			return false;
	for (; *alien; alien++)
		if (!strncmp(name, *alien, strlen(*alien)))
			return true;
	return false;
}

/**
 * mmopt_calls_find() - finds the calls that a function makes
 * @text:       the function, with the padding behind it or without
 * @callee:     functions whose calls are wanted
 * @nr_callees: how many
 * @call:       gets the calls in the order of their addresses; not defined
 *              after an error
 * @max_calls:  room in @call
 * @why:        gets a sentence about what is wrong
 * @why_len:    its size
 *
 * Only a plain call (e8 and 32 bits) of exactly a callee's address counts.
 * Everything that makes it doubtful that all ways from @text to a callee have
 * been seen, or that the text is as it was built, is an error.
 *
 * Return: how many calls were found; -EINVAL if the function cannot be
 * decoded or its calls are not the expected ones, -EOPNOTSUPP if calls go
 * through thunks, -EBUSY if somebody else has patched the function, -E2BIG if
 * @call is too small.
 */
int mmopt_calls_find(const struct mmopt_text *text,
		     const struct mmopt_callee *callee, size_t nr_callees,
		     struct mmopt_call *call, size_t max_calls,
		     char *why, size_t why_len)
{
	struct walk w = { .text = text, .why = why, .why_len = why_len };
	struct insn_info insn;
	enum kind before = PLAIN;
	size_t nr = 0;
	int len, err;
	long i;

	for (; w.off < text->len; w.off += len) {
		size_t avail = text->len - w.off;

		len = text->insn_len(text->bytes + w.off, avail);
		if (len <= 0)
			return refuse(&w, -EINVAL,
				      "instruction cannot be decoded");
		if ((size_t)len > avail)
			return refuse(&w, -EINVAL,
				      "instruction runs past the end");
		err = classify(&w, len, &insn);
		if (err)
			return err;

		if (insn.kind == BREAKPOINT) {
			err = check_breakpoint(&w, before);
			if (err)
				return err;
			before = LEAVE;
			continue;
		}
		before = insn.kind;
		if (insn.kind != CALL && insn.kind != JUMP &&
		    insn.kind != JUMP_IF)
			continue;

		i = find_callee(&w, &insn, callee, nr_callees);
		if (i < 0)
			return i;
		if (i == (long)nr_callees) {
			err = check_target(&w, &insn);
			if (err)
				return err;
			continue;
		}
		if (nr == max_calls)
			return refuse(&w, -E2BIG, "more than %zu calls",
				      max_calls);
		call[nr].offset = w.off;
		call[nr].callee = i;
		nr++;
	}
	err = check_counts(&w, callee, nr_callees, call, nr);
	return err ? err : (int)nr;
}
