// SPDX-License-Identifier: GPL-2.0
/*
 * Entry takeover: an ftrace hook on a function's entry sends eligible calls to
 * our function. Calls that are not eligible go on as if there were no hook. For
 * functions that are called rarely; everyone else pays for the hook.
 *
 * It is ftrace, the layer below kprobes and livepatches, and not a kprobe:
 * a kprobe that redirects, added to a function that a tracer already probes,
 * leaves the kernel's records of that function wrong and the next probe of it
 * crashes (6.12, 7.3); and 7.3 accepts one on a function that a livepatch owns
 * without ever calling it. Here a claim (IPMODIFY) is refused if another
 * livepatch or probe has one, and ftrace cannot be switched off while we hook
 * (PERMANENT). Tracers see the function's entry as before.
 */
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/trace_recursion.h>
#include <asm/nops.h>
#include <mmopt/abi.h>

#include "../compat.h"
#include "../ksym.h"
#include "hook.h"

static void notrace takeover(unsigned long ip, unsigned long parent_ip,
			     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct mmopt_entry *entry = container_of(ops, struct mmopt_entry, ops);
	struct pt_regs *regs = mmopt_entry_regs(fregs);
	int bit = ftrace_test_recursion_trylock(ip, parent_ip);

	if (bit < 0) {
		WRITE_ONCE(entry->nmissed, entry->nmissed + 1);
		return;
	}
	if (!entry->eligible || entry->eligible(regs)) {
		mmopt_enter(&entry->drain);
		instruction_pointer_set(regs, (unsigned long)entry->replacement);
	}
	ftrace_test_recursion_unlock(bit);
}

/* As for livepatches: arguments and ip are saved, which is cheaper than all. */
#define CLAIM_FLAGS	(FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT)

/*
 * A bug anywhere in the kernel makes ftrace shut itself down, and then it takes
 * nobody's hook out: ours may be called for ever, so the module must stay.
 */
static int stay_if_dead(int err)
{
	if (err == -ENODEV)
		__module_get(THIS_MODULE);
	return err;
}

static int hook(struct ftrace_ops *ops, unsigned long addr)
{
	int err;

	err = ftrace_set_filter_ip(ops, addr, 0, 1);
	if (err)
		return err;
	err = stay_if_dead(register_ftrace_function(ops));
	if (err)
		ftrace_set_filter_ip(ops, addr, 1, 0);
	return err;
}

static int unhook(struct ftrace_ops *ops, unsigned long addr)
{
	int err = stay_if_dead(unregister_ftrace_function(ops));

	if (!err)
		ftrace_set_filter_ip(ops, addr, 1, 0);
	return err;
}

/**
 * mmopt_entry_arm() - take a function over
 * @entry:   which, and by what; its drain initialised
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, -EBUSY if another patcher owns the function or ftrace is off, or
 * another errno of ftrace.
 */
int mmopt_entry_arm(struct mmopt_entry *entry, char *why, size_t why_len)
{
	int err;

	entry->ops.func = takeover;
	/* A dead ftrace has kept it, and will refuse it again. */
	if (!(entry->ops.flags & FTRACE_OPS_FL_ENABLED))
		entry->ops.flags = CLAIM_FLAGS;
	err = hook(&entry->ops, entry->addr);
	if (err == -EBUSY)
		snprintf(why, why_len,
			 "another livepatch or probe owns %s, or kernel.ftrace_enabled is 0",
			 entry->symbol);
	else if (err == -EAGAIN)
		snprintf(why, why_len, "a BPF program is being attached to %s: try again",
			 entry->symbol);
	else if (err)
		snprintf(why, why_len, "ftrace refused to hook %s: %d",
			 entry->symbol, err);
	return err;
}

/**
 * mmopt_entry_disarm() - give the function back
 * @entry:   armed, or disarmed and not drained
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: sleeps until no call is in the replacement.
 * Return: 0, -EINTR if a signal ended the wait, the function being given back, or
 * -ENODEV if ftrace is dead and the hook stays.
 */
int mmopt_entry_disarm(struct mmopt_entry *entry, char *why, size_t why_len)
{
	int err = 0;

	if (entry->ops.flags & FTRACE_OPS_FL_ENABLED)
		err = unhook(&entry->ops, entry->addr);
	if (err) {
		snprintf(why, why_len,
			 "ftrace has shut itself down, the hook on %s stays until reboot",
			 entry->symbol);
		return err;
	}
	err = mmopt_drain_wait(&entry->drain);
	if (err)
		snprintf(why, why_len, "calls are still under way");
	return err;
}

/**
 * mmopt_entry_explain() - the hook in words, see <mmopt/abi.h>
 * @entry: whose function exists
 * @m:     where to
 */
void mmopt_entry_explain(const struct mmopt_entry *entry, struct seq_file *m)
{
	seq_printf(m, MMOPT_KEY_MECHANISM " entry\n" MMOPT_KEY_SITE " %s+0x%lx %s -> %ps\n",
		   entry->symbol, mmopt_ftrace_site(entry->addr) - entry->addr,
		   entry->symbol, entry->replacement);
}

static void notrace pass(unsigned long ip, unsigned long parent_ip,
			 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
}

/* Is the function's ftrace site untouched? Whoever owns a function is called there. */
static bool untouched(unsigned long addr)
{
	static const u8 nop[] = { BYTES_NOP5 };
	unsigned long site = mmopt_ftrace_site(addr);

	return site && !memcmp((void *)site, nop, sizeof(nop));
}

#define CLAIM_TRIES 20

/**
 * mmopt_entry_owned() - does another patcher own a function?
 * @symbol: the function; one that does not exist is owned by nobody
 *
 * Asks the kernel's own arbiter, by claiming the function for a moment, during
 * which a livepatch of it would be refused; but not if nobody calls from there
 * at all. No answer, with ftrace off or dead, counts as yes.
 *
 * Context: may sleep.
 */
bool mmopt_entry_owned(const char *symbol)
{
	static struct ftrace_ops claim = {
		.func = pass,
		.flags = CLAIM_FLAGS,
	};
	static DEFINE_MUTEX(claim_lock);
	unsigned long addr = mmopt_ksym(symbol);
	int err, tries = 0;

	if (!addr || untouched(addr))
		return false;
	mutex_lock(&claim_lock);
	/* BPF asks to come again while it attaches a program, anywhere. */
	while ((err = hook(&claim, addr)) == -EAGAIN && ++tries < CLAIM_TRIES)
		msleep(20);
	if (!err)
		err = unhook(&claim, addr);
	mutex_unlock(&claim_lock);
	/* without an ftrace site, nobody can */
	return err && err != -EINVAL;
}

/* Self test: does a hook redirect here, and is it gone when removed? */

static noinline int selftest_stock(int x)
{
	barrier();
	return x + 1;
}

static struct mmopt_entry selftest;

static noinline int selftest_replacement(int x)
{
	barrier();
	mmopt_leave(&selftest.drain);
	return x + 2;
}

static struct mmopt_entry selftest = {
	.symbol = "mmopt's own test function",
	.addr = (unsigned long)selftest_stock,
	.replacement = selftest_replacement,
};

/* Through a pointer the compiler cannot see through, or it folds the call. */
static int call_selftest(int x)
{
	int (*fn)(int) = selftest_stock;

	OPTIMIZER_HIDE_VAR(fn);
	return fn(x);
}

/**
 * mmopt_entry_selftest() - prove that hooks redirect on this kernel
 *
 * Context: may sleep.
 * Return: 0, -ENXIO if a hook that was accepted does not redirect or does not
 * go away, or the errno of placing it.
 */
int mmopt_entry_selftest(void)
{
	int err, with = 0, without = 0;
	char why[120];

	err = mmopt_drain_init(&selftest.drain);
	if (err)
		return err;
	err = mmopt_entry_arm(&selftest, why, sizeof(why));
	if (!err) {
		with = call_selftest(1);
		err = unhook(&selftest.ops, selftest.addr);
		without = call_selftest(1);
	}
	mmopt_drain_exit(&selftest.drain);
	if (err)
		return err;
	return with == 3 && without == 2 ? 0 : -ENXIO;
}
