// SPDX-License-Identifier: GPL-2.0
/*
 * Somebody else's livepatch: whoever calls the patched function is told to try
 * again. Any function will do that takes no lock over to its caller and reports
 * errors by its return value.
 */
#include <linux/errno.h>
#include <linux/livepatch.h>
#include <linux/module.h>

static char *function = "do_madvise";
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "kernel function to patch");

static long try_again(void)
{
	return -EAGAIN;
}

static struct klp_func funcs[] = {
	{ .new_func = try_again },
	{ }
};

static struct klp_object objs[] = {
	{ .funcs = funcs },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objs,
};

static int __init mmopt_test_livepatch_init(void)
{
	funcs[0].old_name = function;
	return klp_enable_patch(&patch);
}

static void __exit mmopt_test_livepatch_exit(void)
{
}

module_init(mmopt_test_livepatch_init);
module_exit(mmopt_test_livepatch_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Another livepatch, for the tests of mmopt");
MODULE_INFO(livepatch, "Y");
