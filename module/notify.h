/* SPDX-License-Identifier: GPL-2.0 */
/* Telling mmu notifiers, of which modules have only the registering side. */
#ifndef MMOPT_NOTIFY_H
#define MMOPT_NOTIFY_H

#include <linux/mmu_notifier.h>

#if defined(CONFIG_MMU_NOTIFIER) && defined(CONFIG_PER_VMA_LOCK)
int mmopt_notify_init(char *why, size_t why_len);
bool mmopt_notify_start(struct mmu_notifier_range *range, struct mm_struct *mm,
			unsigned long start, unsigned long end);
int mmopt_notify_start_range(struct mmu_notifier_range *range);
void mmopt_notify_end_range(struct mmu_notifier_range *range);
#else
static inline int mmopt_notify_init(char *why, size_t why_len)
{
	return 0;
}

static inline bool mmopt_notify_start(struct mmu_notifier_range *range, struct mm_struct *mm,
				      unsigned long start, unsigned long end)
{
	return false;
}

static inline void mmopt_notify_end_range(struct mmu_notifier_range *range) {}
#endif

#endif /* MMOPT_NOTIFY_H */
