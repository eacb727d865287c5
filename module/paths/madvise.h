/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types that the kernel keeps inside mm/madvise.c, compared with its BTF before
 * they are used, and what the livepatch companion calls.
 */
#ifndef MMOPT_PATHS_MADVISE_H
#define MMOPT_PATHS_MADVISE_H

#include <linux/types.h>

struct anon_vma_name;
struct mm_struct;
struct mmopt_klp;
struct mmu_gather;
struct vm_area_struct;

struct madvise_walk_private {
	struct mmu_gather *tlb;
	bool pageout;
};

/* The rest is of 7.x. */

enum madvise_lock_mode {
	MADVISE_NO_LOCK,
	MADVISE_MMAP_READ_LOCK,
	MADVISE_MMAP_WRITE_LOCK,
	MADVISE_VMA_READ_LOCK,
};

struct madvise_behavior_range {
	unsigned long start;
	unsigned long end;
};

struct madvise_behavior {
	struct mm_struct *mm;
	int behavior;
	struct mmu_gather *tlb;
	enum madvise_lock_mode lock_mode;
	struct anon_vma_name *anon_name;
	struct madvise_behavior_range range;
	struct vm_area_struct *prev;
	struct vm_area_struct *vma;
	bool lock_dropped;
};

extern struct mmopt_klp mmopt_klp_madvise;

long mmopt_madvise_cold(struct madvise_behavior *behavior);
long mmopt_madvise_pageout(struct madvise_behavior *behavior);

#endif /* MMOPT_PATHS_MADVISE_H */
