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

/* Of a walk to one page. */
#define MMOPT_WANT_FOLIO_WALK \
	MMOPT_WANT_SIZE(struct folio_walk), \
	MMOPT_WANT_MEMBER(struct folio_walk, page), \
	MMOPT_WANT_MEMBER(struct folio_walk, level), \
	MMOPT_WANT_MEMBER(struct folio_walk, ptep), \
	MMOPT_WANT_MEMBER(struct folio_walk, pmdp), \
	MMOPT_WANT_MEMBER(struct folio_walk, pte), \
	MMOPT_WANT_MEMBER(struct folio_walk, pmd), \
	MMOPT_WANT_MEMBER(struct folio_walk, ptl), \
	MMOPT_WANT_ENUM(enum folio_walk_level, FW_LEVEL_PTE, FW_LEVEL_PTE), \
	MMOPT_WANT_ENUM(enum folio_walk_level, FW_LEVEL_PMD, FW_LEVEL_PMD)

int mmopt_walk_vma(struct vm_area_struct *vma, unsigned long start,
		   unsigned long end, const struct mm_walk_ops *ops,
		   void *private);

#endif /* MMOPT_WALK_H */
