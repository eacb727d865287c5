// SPDX-License-Identifier: GPL-2.0
/*
 * Watches the memory of whoever writes a number to "turns", as a virtual machine
 * would, so many times for a moment each, and counts the ends of changes of whose
 * start it was not told.
 */
#include <linux/atomic.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/sched.h>

struct watch {
	struct mmu_notifier notifier;
	atomic_t under_way;
};

static atomic_t told, unbalanced;

static int range_start(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	atomic_inc(&told);
	atomic_inc(&container_of(notifier, struct watch, notifier)->under_way);
	return 0;
}

static void range_end(struct mmu_notifier *notifier, const struct mmu_notifier_range *range)
{
	struct watch *watch = container_of(notifier, struct watch, notifier);

	if (atomic_dec_return(&watch->under_way) < 0)
		atomic_inc(&unbalanced);
}

static const struct mmu_notifier_ops ops = {
	.invalidate_range_start = range_start,
	.invalidate_range_end = range_end,
};

static int turns_set(const char *val, const struct kernel_param *kp)
{
	unsigned int n;
	int err = kstrtouint(val, 0, &n);

	while (!err && n--) {
		struct watch watch = { .notifier.ops = &ops };

		err = mmu_notifier_register(&watch.notifier, current->mm);
		if (err)
			break;
		schedule_timeout_uninterruptible(1);
		mmu_notifier_unregister(&watch.notifier, current->mm);
	}
	return err;
}

static int turns_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "told %d, unbalanced %d\n", atomic_read(&told),
			  atomic_read(&unbalanced));
}

static const struct kernel_param_ops turns_ops = { .set = turns_set, .get = turns_get };
module_param_cb(turns, &turns_ops, NULL, 0644);
MODULE_PARM_DESC(turns, "how often to watch the writer's memory");

static int __init mmopt_test_notify_init(void)
{
	return 0;
}

static void __exit mmopt_test_notify_exit(void)
{
}

module_init(mmopt_test_notify_init);
module_exit(mmopt_test_notify_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An mmu notifier that comes and goes, for the tests of mmopt");
