// SPDX-License-Identifier: GPL-2.0
/* Livepatch companion of the path madvise; all it does is in paths/madvise.c. */
#include <linux/livepatch.h>
#include <linux/module.h>
#include <mmopt/abi.h>

#include "../hook/hook.h"
#include "../paths/madvise.h"

static long cold(struct madvise_behavior *behavior)
{
	return mmopt_madvise_cold(behavior);
}

static long pageout(struct madvise_behavior *behavior)
{
	return mmopt_madvise_pageout(behavior);
}

static int pre_patch(struct klp_object *obj)
{
	mmopt_klp_begun(&mmopt_klp_madvise, true);
	return 0;
}

static void post_patch(struct klp_object *obj)
{
	mmopt_klp_up(&mmopt_klp_madvise);
}

static void pre_unpatch(struct klp_object *obj)
{
	mmopt_klp_down(&mmopt_klp_madvise);
}

static void post_unpatch(struct klp_object *obj)
{
	mmopt_klp_begun(&mmopt_klp_madvise, false);
}

static struct klp_func funcs[] = {
	{ .old_name = "madvise_cold", .new_func = cold },
	{ .old_name = "madvise_pageout", .new_func = pageout },
	{ }
};

static struct klp_object objs[] = {
	{
		.funcs = funcs,
		.callbacks = {
			.pre_patch = pre_patch,
			.post_patch = post_patch,
			.pre_unpatch = pre_unpatch,
			.post_unpatch = post_unpatch,
		},
	},
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objs,
};

static int __init mmopt_lp_madvise_init(void)
{
	int err = klp_enable_patch(&patch);

	if (err)
		mmopt_klp_failed(&mmopt_klp_madvise, err);
	return err;
}

/* Runs only after the livepatch was disabled and its transition completed. */
static void __exit mmopt_lp_madvise_exit(void)
{
}

module_init(mmopt_lp_madvise_init);
module_exit(mmopt_lp_madvise_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Livepatch companion of mmopt: madvise_cold and madvise_pageout");
MODULE_VERSION(MMOPT_VERSION);
MODULE_INFO(livepatch, "Y");
