// SPDX-License-Identifier: GPL-2.0
/*
 * Entry takeover: a kprobe on a function's first instruction sends eligible
 * calls to our function. Calls that are not eligible go on as if there were no
 * probe. For functions that are called rarely; everyone else pays the probe.
 *
 * A probe that changes the instruction pointer needs a post_handler, though an
 * empty one: only then does kprobes claim the function for itself (IPMODIFY)
 * and keep the probe from being optimised into a jump.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "hook.h"

static int takeover(struct kprobe *kp, struct pt_regs *regs)
{
	struct mmopt_entry *entry = container_of(kp, struct mmopt_entry, kp);

	if (entry->eligible && !entry->eligible(regs))
		return 0;
	mmopt_enter(&entry->drain);
	instruction_pointer_set(regs, (unsigned long)entry->replacement);
	return 1;
}
NOKPROBE_SYMBOL(takeover);

static void after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(after);

/**
 * mmopt_entry_arm() - take a function over
 * @entry:   which, and by what; its drain initialised
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, -EBUSY if another patcher owns the function, or what
 * register_kprobe() says.
 */
int mmopt_entry_arm(struct mmopt_entry *entry, char *why, size_t why_len)
{
	int err;

	memset(&entry->kp, 0, sizeof(entry->kp));
	entry->kp.symbol_name = entry->symbol;
	entry->kp.pre_handler = takeover;
	entry->kp.post_handler = after;
	err = register_kprobe(&entry->kp);
	if (err == -EBUSY)
		snprintf(why, why_len, "another livepatch or probe owns %s", entry->symbol);
	else if (err)
		snprintf(why, why_len, "the probe of %s was refused: %d", entry->symbol, err);
	return err;
}

/**
 * mmopt_entry_disarm() - give the function back
 * @entry: armed or not
 *
 * Context: sleeps until no call is in the replacement.
 */
void mmopt_entry_disarm(struct mmopt_entry *entry)
{
	if (!entry->kp.addr)
		return;
	unregister_kprobe(&entry->kp);
	entry->kp.addr = NULL;
	mmopt_drain_wait(&entry->drain);
}

static int never(struct kprobe *kp, struct pt_regs *regs)
{
	return 0;
}
NOKPROBE_SYMBOL(never);

/**
 * mmopt_entry_owned() - does another patcher own a function?
 * @symbol: the function
 *
 * Asks the kernel's own arbiter: a livepatch or a probe that redirects must
 * claim the function, and a second claim fails.
 *
 * Context: may sleep.
 * Return: 0 if it is free, -EBUSY if owned, or another negative errno.
 */
int mmopt_entry_owned(const char *symbol)
{
	struct kprobe kp = {
		.symbol_name = symbol,
		.pre_handler = never,
		.post_handler = after,
	};
	int err;

	err = register_kprobe(&kp);
	if (!err)
		unregister_kprobe(&kp);
	return err;
}

/* Self test: is a probe able to redirect here, and gone when removed? */

static int noinline mmopt_selftest_stock(int x)
{
	barrier();
	return x + 1;
}

static struct mmopt_entry selftest;

static int noinline mmopt_selftest_replacement(int x)
{
	barrier();
	mmopt_leave(&selftest.drain);
	return x + 2;
}

static struct mmopt_entry selftest = {
	.symbol = "mmopt_selftest_stock",
	.replacement = mmopt_selftest_replacement,
};

/* Through a pointer the compiler cannot see through, or it folds the call. */
static int call_selftest(int x)
{
	int (*fn)(int) = mmopt_selftest_stock;

	OPTIMIZER_HIDE_VAR(fn);
	return fn(x);
}

/**
 * mmopt_entry_selftest() - prove that probes redirect on this kernel
 *
 * Context: may sleep.
 * Return: 0, -ENXIO if a probe that was accepted does not redirect (ftrace is
 * off, say) or does not go away, or the errno of registering it.
 */
int mmopt_entry_selftest(void)
{
	int err, with = 0, without = 0;
	char why[80];

	err = mmopt_drain_init(&selftest.drain);
	if (err)
		return err;
	err = mmopt_entry_arm(&selftest, why, sizeof(why));
	if (!err) {
		with = call_selftest(1);
		mmopt_entry_disarm(&selftest);
		without = call_selftest(1);
	}
	mmopt_drain_exit(&selftest.drain);
	if (err)
		return err;
	return with == 3 && without == 2 ? 0 : -ENXIO;
}
