// SPDX-License-Identifier: GPL-2.0
/* Misbehaves on purpose when it is loaded, to see whether the tests notice. */
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

static char *how = "none";
module_param(how, charp, 0444);
MODULE_PARM_DESC(how, "none, warn or atomic");

static int __init warnmod_init(void)
{
	if (!strcmp(how, "none"))
		return 0;

	if (!strcmp(how, "warn")) {
		WARN(1, "warnmod: as asked\n");
		return 0;
	}

	if (!strcmp(how, "atomic")) {
		preempt_disable();
		schedule();
		preempt_enable();
		return 0;
	}

	return -EINVAL;
}

static void __exit warnmod_exit(void)
{
}

module_init(warnmod_init);
module_exit(warnmod_exit);
MODULE_DESCRIPTION("Warns on purpose");
MODULE_LICENSE("GPL");
