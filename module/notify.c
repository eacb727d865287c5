// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>

#include "ksym.h"
#include "notify.h"

#if defined(CONFIG_MMU_NOTIFIER) && defined(CONFIG_PER_VMA_LOCK)
MMOPT_DEFINE_KFUNC(__mmu_notifier_invalidate_range_start,
		   __mmu_notifier_invalidate_range_start);
MMOPT_DEFINE_KFUNC(__mmu_notifier_invalidate_range_end,
		   __mmu_notifier_invalidate_range_end);

/**
 * mmopt_notify_init() - find the kernel's calls of mmu notifiers
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Return: 0 or a negative errno.
 */
int mmopt_notify_init(char *why, size_t why_len)
{
	static const struct mmopt_kfunc fn[] = {
		MMOPT_KFUNC(__mmu_notifier_invalidate_range_start),
		MMOPT_KFUNC(__mmu_notifier_invalidate_range_end),
	};
	static const struct mmopt_btf_want want[] = {
		MMOPT_WANT_FUNC(__mmu_notifier_invalidate_range_start,
				"int (struct mmu_notifier_range *)"),
		MMOPT_WANT_FUNC(__mmu_notifier_invalidate_range_end,
				"void (struct mmu_notifier_range *)"),
		MMOPT_WANT_SIZE(struct mmu_notifier_range),
		MMOPT_WANT_MEMBER(struct mm_struct, notifier_subscriptions),
	};
	int err;

	err = mmopt_kfunc_bind(fn, ARRAY_SIZE(fn), why, why_len);
	return err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
}

int mmopt_notify_start_range(struct mmu_notifier_range *range)
{
	return static_call(k___mmu_notifier_invalidate_range_start)(range);
}

void mmopt_notify_end_range(struct mmu_notifier_range *range)
{
	static_call(k___mmu_notifier_invalidate_range_end)(range);
}

/**
 * mmopt_notify_start() - a change of protection begins
 * @range: of the change, for mmopt_notify_end_range()
 * @mm:    where the caller has a lock from now until after the end that keeps
 *         notifiers from registering: mmap_lock, or one of a VMA
 * @start: first address
 * @end:   behind the last one
 *
 * Context: may sleep.
 * Return: whether anybody was told, and has to be told of the end.
 */
bool mmopt_notify_start(struct mmu_notifier_range *range, struct mm_struct *mm,
			unsigned long start, unsigned long end)
{
	if (!mm_has_notifiers(mm))
		return false;
	mmu_notifier_range_init(range, MMU_NOTIFY_PROTECTION_VMA, 0, mm, start, end);
	range->flags |= MMU_NOTIFIER_RANGE_BLOCKABLE;
	mmopt_notify_start_range(range);
	return true;
}
#endif
