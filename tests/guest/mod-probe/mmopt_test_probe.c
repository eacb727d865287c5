// SPDX-License-Identifier: GPL-2.0
/*
 * Somebody else's probe, with a post_handler, which claims the function for
 * itself as a livepatch does.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

static char *function = "do_madvise";
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "kernel function to probe");

static void after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = { .post_handler = after };

static int __init mmopt_test_probe_init(void)
{
	probe.symbol_name = function;
	return register_kprobe(&probe);
}

static void __exit mmopt_test_probe_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(mmopt_test_probe_init);
module_exit(mmopt_test_probe_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Another probe, for the tests of mmopt");
