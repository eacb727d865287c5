// SPDX-License-Identifier: GPL-2.0
/* The search for calls over bytes made by hand, most of them hostile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "calls.h"
#include "decode.h"

#define ADDR	0xffffffff81234560ul
#define TEXT_LO	0xffffffff81000000ul
#define TEXT_HI	0xffffffff82000000ul
#define LOCK	0xffffffff81300000ul
#define UNLOCK	0xffffffff81300100ul
#define OTHER	0xffffffff81400000ul
#define OUTSIDE	0xffffffffa0000000ul

static uint8_t code[1 << 20];
static size_t len;

static const struct mmopt_callee lock_unlock[] = {
	{ "lock", LOCK, 1, 1 },
	{ "unlock", UNLOCK, 1, 2 },
};

static struct mmopt_call call[8];
static char why[200];

#define BYTES(...) do { \
	static const uint8_t bytes[] = { __VA_ARGS__ }; \
	assert_true(len + sizeof(bytes) <= sizeof(code)); \
	memcpy(code + len, bytes, sizeof(bytes)); \
	len += sizeof(bytes); \
} while (0)

static void rel32(unsigned long target)
{
	int32_t rel = target - (ADDR + len + 4);

	memcpy(code + len, &rel, 4);
	len += 4;
}

static void call_to(unsigned long target)
{
	BYTES(0xe8);
	rel32(target);
}

static void jump_to(unsigned long target)
{
	BYTES(0xe9);
	rel32(target);
}

/* A function that locks and unlocks; a nop where the tests differ. */
static void begin(void)
{
	len = 0;
	BYTES(0xf3, 0x0f, 0x1e, 0xfa);			/* endbr64 */
	BYTES(0x0f, 0x1f, 0x44, 0x00, 0x00);		/* ftrace site */
	BYTES(0x55);					/* push %rbp */
	call_to(LOCK);
}

static void end(void)
{
	call_to(UNLOCK);
	BYTES(0x5d, 0xc3);				/* pop %rbp; ret */
}

/* On a copy of exactly this size, so that the sanitizer sees over-reads. */
static int find_n(const struct mmopt_callee *callee, size_t nr, size_t max_calls)
{
	struct mmopt_text text = {
		.name = "f", .len = len, .addr = ADDR, .text_lo = TEXT_LO,
		.text_hi = TEXT_HI, .insn_len = decode_len,
	};
	uint8_t *copy = malloc(len ? len : 1);
	int ret;

	assert_non_null(copy);
	memcpy(copy, code, len);
	text.bytes = copy;
	why[0] = '\0';
	ret = mmopt_calls_find(&text, callee, nr, call, max_calls, why, sizeof(why));
	free(copy);
	return ret;
}

static int find(void)
{
	return find_n(lock_unlock, 2, 8);
}

#define assert_refused(err, sentence) do { \
	assert_int_equal(find(), err); \
	assert_string_equal(why, sentence); \
} while (0)

static void assert_call(int i, uint32_t offset, uint16_t callee)
{
	assert_int_equal(call[i].offset, offset);
	assert_int_equal(call[i].callee, callee);
}

static void test_finds_calls(void **state)
{
	(void)state;
	begin();
	call_to(OTHER);
	call_to(UNLOCK);
	end();
	assert_int_equal(find(), 3);
	assert_string_equal(why, "");
	assert_call(0, 10, 0);
	assert_call(1, 20, 1);
	assert_call(2, 25, 1);

	/* Nothing wanted, nothing found. */
	assert_int_equal(find_n(NULL, 0, 0), 0);
}

static void test_call_opcode_in_an_immediate(void **state)
{
	(void)state;
	begin();
	/* movabs $imm64,%rax whose bytes are a call of unlock */
	BYTES(0x48, 0xb8);
	call_to(UNLOCK);
	BYTES(0x00, 0x00, 0x00);
	/* mov $imm32,%eax; the call would begin in its last byte */
	BYTES(0xb8, 0x00, 0x00, 0x00, 0xe8);
	BYTES(0x0f, 0x1f, 0x40, 0x00);
	/* a displacement */
	BYTES(0x48, 0x8b, 0x80, 0xe8, 0x01, 0x02, 0x03);
	end();
	assert_int_equal(find(), 2);
	assert_call(0, 10, 0);
	assert_call(1, 41, 1);

	/* The same and no real call. */
	begin();
	BYTES(0x48, 0xb8);
	call_to(UNLOCK);
	BYTES(0x00, 0x00, 0x00, 0xc3);
	assert_refused(-EINVAL, "f: expected 1 to 2 calls of unlock, found 0");
}

static void test_counts(void **state)
{
	struct mmopt_callee exact[] = { { "lock", LOCK, 2, 2 } };

	(void)state;
	begin();
	call_to(LOCK);
	end();
	assert_refused(-EINVAL, "f: expected 1 call of lock, found 2");
	assert_int_equal(find_n(exact, 1, 8), 2);

	begin();
	end();
	len -= 7;
	BYTES(0xc3);
	assert_refused(-EINVAL, "f: expected 1 to 2 calls of unlock, found 0");

	begin();
	call_to(UNLOCK);
	call_to(UNLOCK);
	end();
	assert_refused(-EINVAL, "f: expected 1 to 2 calls of unlock, found 3");
}

static void test_no_room_for_calls(void **state)
{
	(void)state;
	begin();
	end();
	assert_int_equal(find_n(lock_unlock, 2, 2), 2);
	assert_int_equal(find_n(lock_unlock, 2, 1), -E2BIG);
	assert_string_equal(why, "f+0xf: more than 1 calls");
	assert_int_equal(find_n(lock_unlock, 2, 0), -E2BIG);
	assert_string_equal(why, "f+0xa: more than 0 calls");
}

static void test_empty_function(void **state)
{
	struct mmopt_callee none[] = { { "lock", LOCK, 0, 1 } };

	(void)state;
	len = 0;
	assert_refused(-EINVAL, "f: expected 1 call of lock, found 0");
	assert_int_equal(find_n(none, 1, 8), 0);
}

static void test_cut_anywhere(void **state)
{
	size_t whole, i;

	(void)state;
	begin();
	jump_to(OTHER);
	end();
	whole = len;
	for (i = 0; i < whole; i++) {
		len = i;
		assert_int_equal(find(), i < whole - 2 ? -EINVAL : 2);
	}
	len = 17;
	assert_refused(-EINVAL, "f+0xf: instruction cannot be decoded");
}

/* The length that lies() gives every instruction. */
static int lie;

static int lies(const uint8_t *p, size_t avail)
{
	(void)p;
	(void)avail;
	return lie;
}

static void test_decoder_is_not_believed(void **state)
{
	struct mmopt_text text = {
		.name = "f", .bytes = code, .len = 4, .addr = ADDR,
		.text_lo = TEXT_LO, .text_hi = TEXT_HI, .insn_len = lies,
	};

	(void)state;
	lie = 5;
	assert_int_equal(mmopt_calls_find(&text, NULL, 0, NULL, 0, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "f+0x0: instruction runs past the end");
	lie = 0;
	assert_int_equal(mmopt_calls_find(&text, NULL, 0, NULL, 0, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "f+0x0: instruction cannot be decoded");
}

static void test_undecodable(void **state)
{
	(void)state;
	begin();
	BYTES(0x06);					/* push %es: not in 64 bits */
	end();
	assert_refused(-EINVAL, "f+0xf: instruction cannot be decoded");
}

static void test_tail_jumps(void **state)
{
	(void)state;
	begin();
	end();
	jump_to(UNLOCK);
	assert_refused(-EINVAL, "f+0x16: jump to unlock (tail call)");

	begin();
	BYTES(0x0f, 0x84);				/* je */
	rel32(LOCK);
	end();
	assert_refused(-EINVAL, "f+0xf: jump to lock (tail call)");

	begin();
	BYTES(0x2e, 0xe9);				/* cs jmp */
	rel32(UNLOCK);
	end();
	assert_refused(-EINVAL, "f+0xf: jump to unlock (tail call)");
}

static void test_short_jumps(void **state)
{
	static const uint8_t ops[] = { 0xeb, 0x70, 0x7f, 0xe0, 0xe1, 0xe2, 0xe3 };
	struct mmopt_callee near[] = { { "near", ADDR + 0x40, 0, 1 } };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops); i++) {
		begin();
		code[len] = ops[i];
		code[len + 1] = 0x40 - (len + 2);
		len += 2;
		BYTES(0xc3);
		assert_int_equal(find_n(near, 1, 8), -EINVAL);
		assert_string_equal(why, "f+0xf: jump to near (tail call)");
	}
	/* Backwards. */
	near[0].addr = ADDR - 0x20;
	begin();
	BYTES(0xeb, 0xcf);
	assert_int_equal(find_n(near, 1, 8), -EINVAL);
	assert_string_equal(why, "f+0xf: jump to near (tail call)");
}

static void test_prefixed_calls(void **state)
{
	static const uint8_t prefixes[] = {
		0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67, 0xf2, 0xf3, 0x40, 0x48,
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(prefixes); i++) {
		begin();
		code[len++] = prefixes[i];
		end();
		assert_refused(-EINVAL, "f+0xf: prefixed call of unlock");
	}
	/* To anything else they are nothing special. */
	begin();
	BYTES(0x2e);
	call_to(OTHER);
	end();
	assert_int_equal(find(), 2);
}

static void test_thunked_calls(void **state)
{
	char sentence[200];
	unsigned long i;

	(void)state;
	for (i = 1; i <= 15; i++) {
		begin();
		call_to(UNLOCK - i);
		end();
		snprintf(sentence, sizeof(sentence),
			 "f+0xf: calls are rewritten by call depth tracking (retbleed=stuff): branch to unlock-0x%lx",
			 i);
		assert_refused(-EOPNOTSUPP, sentence);

		begin();
		call_to(UNLOCK + i);
		end();
		snprintf(sentence, sizeof(sentence), "f+0xf: branch to unlock+0x%lx", i);
		assert_refused(-EINVAL, sentence);
	}
	/* The neighbours, at their own entries. */
	begin();
	call_to(UNLOCK - 16);
	call_to(UNLOCK + 16);
	end();
	assert_int_equal(find(), 2);
}

static void test_planted_breakpoints(void **state)
{
	static const size_t starts[] = { 0, 4, 9, 10, 15, 17, 22, 27, 28 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		char sentence[80];

		begin();
		BYTES(0x74, 0x05);			/* je over the call */
		call_to(OTHER);
		end();
		code[starts[i]] = 0xcc;
		snprintf(sentence, sizeof(sentence), "f+0x%zx: breakpoint, another patcher?",
			 starts[i]);
		/* A jump that leads there is seen first. */
		if (starts[i] == 22)
			strcpy(sentence, "f+0xf: jump to a breakpoint at +0x16");
		assert_refused(-EBUSY, sentence);
	}
}

static void test_padding(void **state)
{
	(void)state;
	begin();
	end();
	BYTES(0xcc, 0xcc, 0xcc);			/* after ret */
	BYTES(0xff, 0xe0, 0xcc);			/* jmp *%rax */
	BYTES(0x41, 0xff, 0xe3, 0xcc);			/* jmp *%r11 */
	BYTES(0xff, 0x25, 0x00, 0x00, 0x00, 0x00, 0xcc);	/* jmp *(%rip) */
	jump_to(OTHER);
	BYTES(0xcc, 0xcc);
	BYTES(0xeb, 0xfe, 0xcc);			/* jmp to itself */
	BYTES(0xf3, 0xc3, 0xcc);			/* repz ret */
	BYTES(0xc2, 0x08, 0x00, 0xcc);			/* ret $8 */
	BYTES(0x0f, 0x0b, 0xcc, 0xcc, 0xcc);		/* ud2 at the end */
	assert_int_equal(find(), 2);

	begin();
	end();
	call_to(OTHER);					/* noreturn, at the end */
	BYTES(0xcc, 0xcc);
	assert_int_equal(find(), 2);

	/* Neither ud2 nor a call is an end where something follows. */
	begin();
	BYTES(0x0f, 0x0b, 0xcc);
	end();
	assert_refused(-EBUSY, "f+0x11: breakpoint, another patcher?");
	begin();
	call_to(OTHER);
	BYTES(0xcc);
	end();
	assert_refused(-EBUSY, "f+0x14: breakpoint, another patcher?");
	begin();
	BYTES(0xff, 0xd0, 0xcc);			/* call *%rax */
	end();
	assert_refused(-EBUSY, "f+0x11: breakpoint, another patcher?");
}

static void test_traps(void **state)
{
	(void)state;
	begin();
	BYTES(0x0f, 0x0b);				/* ud2: a warning */
	BYTES(0x0f, 0xb9, 0xc0);			/* ud1 */
	BYTES(0x67, 0x0f, 0xb9, 0x40, 0x10);
	end();
	assert_int_equal(find(), 2);
}

static void test_leaves_the_text(void **state)
{
	static const unsigned long targets[] = { OUTSIDE, TEXT_HI, TEXT_LO - 1 };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		begin();
		call_to(targets[i]);
		end();
		assert_refused(-EBUSY, "f+0xf: call leaves the kernel text, another patcher?");
		begin();
		jump_to(targets[i]);
		end();
		assert_refused(-EBUSY, "f+0xf: jump leaves the kernel text, another patcher?");
		begin();
		BYTES(0x0f, 0x85);
		rel32(targets[i]);
		end();
		assert_refused(-EBUSY, "f+0xf: jump leaves the kernel text, another patcher?");
	}
	begin();
	call_to(TEXT_LO);
	call_to(TEXT_HI - 1);
	end();
	assert_int_equal(find(), 2);
}

/* What stands at the start of a function that is being traced. */
static void test_traced(void **state)
{
	static const uint8_t first[][4] = {
		{ 0xf3, 0x0f, 0x1e, 0xfa },		/* endbr64 */
		{ 0x66, 0x0f, 0x1f, 0x00 },		/* sealed, until 6.14 */
		{ 0x0f, 0x1f, 0x40, 0xd6 },		/* sealed, later */
	};
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		begin();
		end();
		len = 4;
		memcpy(code, first[i], 4);
		call_to(OUTSIDE);
		len = 22;
		assert_int_equal(find(), 2);

		/* A jump is none of ftrace's. */
		code[4] = 0xe9;
		assert_refused(-EBUSY, "f+0x4: jump leaves the kernel text, another patcher?");
	}
	len = 0;
	call_to(OUTSIDE);
	call_to(LOCK);
	call_to(UNLOCK);
	assert_int_equal(find(), 2);

	/* Elsewhere, or behind another instruction of four bytes. */
	begin();
	call_to(OUTSIDE);
	end();
	assert_refused(-EBUSY, "f+0xf: call leaves the kernel text, another patcher?");
	len = 0;
	BYTES(0x48, 0x83, 0xec, 0x08);
	call_to(OUTSIDE);
	end();
	assert_refused(-EBUSY, "f+0x4: call leaves the kernel text, another patcher?");
	len = 0;
	BYTES(0x0f, 0x0b, 0x90);
	call_to(OUTSIDE);
	end();
	assert_refused(-EBUSY, "f+0x3: call leaves the kernel text, another patcher?");
}

/* A function may call itself, and jump about near its own entry. */
static void test_callee_is_itself(void **state)
{
	struct mmopt_callee self[] = { { "f", ADDR, 1, 1 } };

	(void)state;
	begin();
	BYTES(0xeb, 0xf0);				/* to +1 */
	call_to(ADDR);
	end();
	assert_int_equal(find_n(self, 1, 8), 1);
	assert_call(0, 17, 0);
}

/* Operand-size prefix: Intel reads 32 bits of offset, AMD 16. */
static void test_branch_of_unknown_form(void **state)
{
	uint8_t *p = malloc(4);
	struct mmopt_text text = {
		.name = "f", .bytes = p, .len = 4, .addr = ADDR,
		.text_lo = TEXT_LO, .text_hi = TEXT_HI, .insn_len = lies,
	};

	(void)state;
	assert_non_null(p);
	lie = 4;
	memcpy(p, "\x66\xe8\x00\x00", 4);
	assert_int_equal(mmopt_calls_find(&text, NULL, 0, NULL, 0, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "f+0x0: branch of unknown form");
	memset(p, 0x66, 4);
	assert_int_equal(mmopt_calls_find(&text, NULL, 0, NULL, 0, why, sizeof(why)), 0);
	free(p);
}

static void test_why_is_cut(void **state)
{
	static const char sentence[] = "f+0xf: prefixed call of unlock";
	struct mmopt_text text = {
		.name = "f", .bytes = code, .addr = ADDR,
		.text_lo = TEXT_LO, .text_hi = TEXT_HI, .insn_len = decode_len,
	};
	size_t room;

	(void)state;
	begin();
	BYTES(0x2e);
	end();
	text.len = len;
	assert_int_equal(mmopt_calls_find(&text, lock_unlock, 2, call, 8, NULL, 0), -EINVAL);
	for (room = 1; room < sizeof(sentence) + 2; room++) {
		char *buf = malloc(room);

		assert_non_null(buf);
		assert_int_equal(mmopt_calls_find(&text, lock_unlock, 2, call, 8, buf, room),
				 -EINVAL);
		assert_int_equal(strlen(buf), room < sizeof(sentence) ? room - 1 :
				 sizeof(sentence) - 1);
		assert_memory_equal(buf, sentence, strlen(buf));
		free(buf);
	}
}

/* Time grows with the length, not with its square. */
static void test_time(void **state)
{
	clock_t start = clock();

	(void)state;
	len = 0;
	call_to(OTHER);
	memset(code + len, 0xcc, sizeof(code) - len);
	len = sizeof(code);
	assert_int_equal(find_n(NULL, 0, 0), 0);
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_calls),
		cmocka_unit_test(test_call_opcode_in_an_immediate),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_no_room_for_calls),
		cmocka_unit_test(test_empty_function),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_decoder_is_not_believed),
		cmocka_unit_test(test_undecodable),
		cmocka_unit_test(test_tail_jumps),
		cmocka_unit_test(test_short_jumps),
		cmocka_unit_test(test_prefixed_calls),
		cmocka_unit_test(test_thunked_calls),
		cmocka_unit_test(test_planted_breakpoints),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_traps),
		cmocka_unit_test(test_leaves_the_text),
		cmocka_unit_test(test_traced),
		cmocka_unit_test(test_callee_is_itself),
		cmocka_unit_test(test_branch_of_unknown_form),
		cmocka_unit_test(test_why_is_cut),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
