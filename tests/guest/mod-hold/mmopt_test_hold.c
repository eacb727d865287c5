// SPDX-License-Identifier: GPL-2.0
/*
 * Holds PAGEOUT in its reclaim, as a slow swap device would: the calls of
 * reclaim_pages() in one kernel function lead here, and sleep until "hold" is
 * cleared.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <asm/text-patching.h>

#define FUNCTION	"madvise_cold_or_pageout_pte_range"
#define MAX_SITES	4
#define MAX_BYTES	8192

unsigned long proto_reclaim(struct list_head *folios);

DEFINE_STATIC_CALL_NULL(reclaim, proto_reclaim);

static bool hold = true;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "keep who comes by");

static atomic_t held;
static u8 *site[MAX_SITES];
static unsigned int nr_sites;
static void *stock;

static int held_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&held));
}

static const struct kernel_param_ops held_ops = { .get = held_get };
module_param_cb(held, &held_ops, NULL, 0444);
MODULE_PARM_DESC(held, "how many tasks are held");

static unsigned long reclaim_later(struct list_head *folios)
{
	unsigned long nr;

	atomic_inc(&held);
	while (READ_ONCE(hold))
		schedule_timeout_idle(HZ / 20);
	nr = static_call(reclaim)(folios);
	atomic_dec(&held);
	return nr;
}

static unsigned long address(const char *name)
{
	struct kprobe kp = { .symbol_name = name };
	unsigned long addr;

	if (register_kprobe(&kp))
		return 0;
	addr = (unsigned long)kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

static bool in_function(const u8 *at)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, (unsigned long)at);
	return !strcmp(name, FUNCTION);
}

/* Where the call leads, if that is what it is, else NULL. */
static void *callee(const u8 *call)
{
	s32 rel;

	if (*call != CALL_INSN_OPCODE)
		return NULL;
	memcpy(&rel, call + 1, sizeof(rel));
	return (void *)call + CALL_INSN_SIZE + rel;
}

static int __init mmopt_test_hold_init(void)
{
	u8 *at = (u8 *)address(FUNCTION);
	u8 *target = (u8 *)address("reclaim_pages");
	unsigned int i;

	if (!at || !target)
		return -ENOENT;
	for (i = 0; i < MAX_BYTES && nr_sites < MAX_SITES && in_function(at + i); i++) {
		u8 *to = callee(at + i);

		/* A probe's address may be behind the landing pad. */
		if (to != target && to != target - ENDBR_INSN_SIZE)
			continue;
		site[nr_sites++] = at + i;
		stock = to;
	}
	if (!nr_sites)
		return -ENOENT;
	static_call_update(reclaim, (unsigned long (*)(struct list_head *))stock);
	for (i = 0; i < nr_sites; i++)
		arch_static_call_transform(site[i], NULL, reclaim_later, false);
	return 0;
}

static void __exit mmopt_test_hold_exit(void)
{
	unsigned int i;

	WRITE_ONCE(hold, false);
	for (i = 0; i < nr_sites; i++)
		arch_static_call_transform(site[i], NULL, stock, false);
	synchronize_rcu_tasks();
	while (atomic_read(&held))
		msleep(20);
	synchronize_rcu_tasks();
}

module_init(mmopt_test_hold_init);
module_exit(mmopt_test_hold_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Holds PAGEOUT in its reclaim, for the tests of mmopt");
