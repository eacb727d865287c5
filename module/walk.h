/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_WALK_H
#define MMOPT_WALK_H

#include <linux/pagewalk.h>

/* Of what a pmd_entry() gets; for a path's list of what it relies on (btf.h). */
#define MMOPT_WANT_WALK \
	MMOPT_WANT_SIZE(struct mm_walk), \
	MMOPT_WANT_MEMBER(struct mm_walk, mm), \
	MMOPT_WANT_MEMBER(struct mm_walk, vma), \
	MMOPT_WANT_MEMBER(struct mm_walk, private)

int mmopt_walk_vma(struct vm_area_struct *vma, unsigned long start,
		   unsigned long end, const struct mm_walk_ops *ops,
		   void *private);

#endif /* MMOPT_WALK_H */
