// SPDX-License-Identifier: GPL-2.0
/*
 * Call-site retargeting: the call instructions of X inside a given function
 * call our function instead. Nobody else who calls X notices.
 *
 * The calls are found by decoding the function with the kernel's own decoder
 * (calls.c), and turned by the kernel's own protocol for live text. Bytes are
 * compared and written in one hold of text_mutex, under which everybody else
 * who patches text does so too; the exported arch_static_call_transform() takes
 * that mutex itself, and stops the machine if a probe came in between.
 *
 * Each site is reserved by a disabled kprobe of ours from the time when it is
 * still stock. A probe copies the instruction it sits on when it is registered
 * and runs the copy: were ours not the first, a tracer's copy of a turned call
 * could outlive this module.
 *
 * A caller relies on no more than the ABI of a function whose body the compiler
 * has seen: kernels with ftrace are built with -pg, which rules out -fipa-ra.
 */
#include <linux/cpu.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <asm/insn.h>
#include <mmopt/abi.h>

#include "../compat.h"
#include "../ksym.h"
#include "calls.h"
#include "hook.h"

#define CALL_SIZE	5
#define CALL_OPCODE	0xe8

int proto_insn_decode(struct insn *insn, const void *kaddr, int len,
		      enum insn_mode mode);
void proto_poke(void *addr, const void *opcode, size_t len, const void *emulate);

MMOPT_DEFINE_KFUNC(insn_decode, proto_insn_decode);
DEFINE_STATIC_CALL_NULL(k_text_poke, proto_poke);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(insn_decode),
	{ MMOPT_TEXT_POKE, &STATIC_CALL_KEY(k_text_poke), STATIC_CALL_TRAMP_ADDR(k_text_poke) },
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(insn_decode,
			"int (struct insn *, const void *, int, enum insn_mode)"),
	MMOPT_WANT_SIZE(struct insn),
	{ .kind = MMOPT_BTF_FUNC, .name = MMOPT_TEXT_POKE,
	  .proto = "void (void *, const void *, size_t, const void *)" },
};

static unsigned long text_lo, text_hi;
static struct mutex *kernel_text_mutex;

static int insn_len(const u8 *p, size_t avail)
{
	struct insn insn;

	if (static_call(k_insn_decode)(&insn, p, min_t(size_t, avail, MAX_INSN_SIZE),
				       INSN_MODE_KERN))
		return -1;
	return insn.length;
}

static int setup(char *why, size_t why_len)
{
	int err;

	text_lo = mmopt_ksym("_stext");
	text_hi = mmopt_ksym("_etext");
	kernel_text_mutex = (struct mutex *)mmopt_ksym("text_mutex");
	if (!text_lo || !text_hi || !kernel_text_mutex) {
		snprintf(why, why_len, "no symbol %s", !text_lo ? "_stext" :
			 !text_hi ? "_etext" : "text_mutex");
		return -ENOENT;
	}
	err = mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);
	return err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
}

static void lock_text(void)
{
	cpus_read_lock();
	mutex_lock(kernel_text_mutex);
}

static void unlock_text(void)
{
	mutex_unlock(kernel_text_mutex);
	cpus_read_unlock();
}

/* Does the site hold a call of @target? Under text_mutex. */
static bool calls(const struct mmopt_site *site, const void *target)
{
	const u8 *insn = site->at;
	s32 rel;

	memcpy(&rel, insn + 1, sizeof(rel));
	return insn[0] == CALL_OPCODE && insn + CALL_SIZE + rel == target;
}

/* Under text_mutex. */
static void turn(const struct mmopt_site *site, const void *target)
{
	s32 rel = target - (site->at + CALL_SIZE);
	u8 insn[CALL_SIZE] = { CALL_OPCODE };

	memcpy(insn + 1, &rel, sizeof(rel));
	static_call(k_text_poke)(site->at, insn, CALL_SIZE, NULL);
}

static int find(struct mmopt_callsites *set, const struct mmopt_callsite *want,
		char *why, size_t why_len)
{
	struct mmopt_call call[MMOPT_MAX_SITES];
	struct mmopt_callee callee = {
		.name = want->callee,
		.addr = mmopt_ksym(want->callee),
		.min = want->nr,
		.max = want->nr,
	};
	struct mmopt_text text = {
		.name = want->in,
		.addr = mmopt_ksym(want->in),
		.text_lo = text_lo,
		.text_hi = text_hi,
		.insn_len = insn_len,
	};
	int i, nr;

	if (!text.addr && want->optional)
		return 0;
	if (!text.addr || !callee.addr) {
		snprintf(why, why_len, "no symbol %s",
			 text.addr ? want->callee : want->in);
		return -ENOENT;
	}
	text.bytes = (const u8 *)text.addr;
	text.len = mmopt_ksym_size(text.addr);
	lock_text();
	nr = mmopt_calls_find(&text, &callee, 1, call,
			      MMOPT_MAX_SITES - set->nr, why, why_len);
	unlock_text();
	for (i = 0; i < nr; i++) {
		struct mmopt_site *site = &set->site[set->nr++];

		site->at = (void *)(text.addr + call[i].offset);
		site->stock = (void *)callee.addr;
		site->replacement = want->replacement;
		site->in = want->in;
	}
	return nr < 0 ? nr : 0;
}

static int never(struct kprobe *kp, struct pt_regs *regs)
{
	return 0;
}

NOKPROBE_SYMBOL(never);

static int reserve(struct mmopt_site *site, char *why, size_t why_len)
{
	int err;

	site->reserve.addr = site->at;
	site->reserve.pre_handler = never;
	site->reserve.flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(&site->reserve);
	if (err) {
		site->reserve.addr = NULL;
		snprintf(why, why_len, "a call in %s cannot be reserved: %d",
			 site->in, err);
	}
	return err;
}

/**
 * mmopt_callsites_init() - find and reserve the calls that a path wants to turn
 * @set:     what it expects
 * @why:     gets the difference between expected and found
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, or a negative errno if the text is not as expected. Undone by
 * mmopt_callsites_exit() in either case.
 */
int mmopt_callsites_init(struct mmopt_callsites *set, char *why, size_t why_len)
{
	unsigned int i;
	int err;

	err = setup(why, why_len);
	for (i = 0; i < set->nr_want && !err; i++)
		err = find(set, &set->want[i], why, why_len);
	for (i = 0; i < set->nr && !err; i++)
		err = reserve(&set->site[i], why, why_len);
	if (err)
		return err;
	err = mmopt_drain_init(&set->drain);
	if (err)
		snprintf(why, why_len, "out of memory");
	return err;
}

/**
 * mmopt_callsites_exit() - undo mmopt_callsites_init()
 * @set: disarmed
 *
 * Context: sleeps until those who were in a replacement have returned.
 */
void mmopt_callsites_exit(struct mmopt_callsites *set)
{
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		if (set->site[i].reserve.addr)
			unregister_kprobe(&set->site[i].reserve);
	set->nr = 0;
	mmopt_drain_exit(&set->drain);
}

/**
 * mmopt_callsites_arm() - let the sites call their replacements
 * @set:     found before
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, or -EBUSY if somebody else changed a site; then none is turned.
 */
int mmopt_callsites_arm(struct mmopt_callsites *set, char *why, size_t why_len)
{
	const struct mmopt_site *site;
	int err = 0;

	lock_text();
	for (site = set->site; site < set->site + set->nr && !err; site++) {
		/* It may still be turned: disarming can have met a probe. */
		if (calls(site, site->stock) || calls(site, site->replacement))
			continue;
		snprintf(why, why_len, "a probe or another patcher sits on a call in %s",
			 site->in);
		err = -EBUSY;
	}
	for (site = set->site; site < set->site + set->nr && !err; site++)
		turn(site, site->replacement);
	unlock_text();
	return err;
}

/**
 * mmopt_callsites_disarm() - let the sites call the stock functions again
 * @set:     armed, or disarmed and not drained
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: sleeps until no call is in a replacement.
 * Return: 0, -EBUSY if a site holds something else by now and may still lead to
 * us, or -EINTR if a signal ended the wait. Can be tried again.
 */
int mmopt_callsites_disarm(struct mmopt_callsites *set, char *why, size_t why_len)
{
	const struct mmopt_site *site;
	int err = 0;

	lock_text();
	for (site = set->site; site < set->site + set->nr; site++) {
		if (calls(site, site->replacement)) {
			turn(site, site->stock);
		} else if (!calls(site, site->stock)) {
			snprintf(why, why_len,
				 "remove what sits on a call in %s, a probe or another patcher, and disable again",
				 site->in);
			err = -EBUSY;
		}
	}
	unlock_text();
	if (err)
		return err;
	err = mmopt_drain_wait(&set->drain);
	if (err)
		snprintf(why, why_len, "calls are still under way");
	return err;
}

/**
 * mmopt_callsites_explain() - the sites in words, see <mmopt/abi.h>
 * @set: found before
 * @m:   where to
 */
void mmopt_callsites_explain(const struct mmopt_callsites *set, struct seq_file *m)
{
	const struct mmopt_site *site;

	seq_puts(m, MMOPT_KEY_MECHANISM " callsite\n");
	for (site = set->site; site < set->site + set->nr; site++)
		seq_printf(m, MMOPT_KEY_SITE " %s+0x%lx %ps -> %ps\n", site->in,
			   (unsigned long)site->at - mmopt_ksym(site->in),
			   site->stock, site->replacement);
}
