/* SPDX-License-Identifier: GPL-2.0 */
/* A VMA read lock in place of mmap_lock. */
#ifndef MMOPT_VMALOCK_H
#define MMOPT_VMALOCK_H

#include <linux/mm.h>

#include "compat.h"

#ifdef CONFIG_PER_VMA_LOCK
int mmopt_vmalock_init(char *why, size_t why_len);
struct vm_area_struct *mmopt_vma_lock(struct mm_struct *mm, unsigned long addr);
unsigned long mmopt_vma_next(struct mm_struct *mm, unsigned long from, unsigned long end);

/* Does a writer wait for the read lock that the caller has? It may miss one. */
static inline bool mmopt_vma_contended(const struct vm_area_struct *vma)
{
	return MMOPT_VMA_CONTENDED(vma);
}
#endif

#endif /* MMOPT_VMALOCK_H */
