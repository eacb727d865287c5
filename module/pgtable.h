/* SPDX-License-Identifier: GPL-2.0 */
/* Finding, making and locking page tables. */
#ifndef MMOPT_PGTABLE_H
#define MMOPT_PGTABLE_H

#include <linux/mm.h>

int mmopt_pgtable_init(char *why, size_t why_len);
pud_t *mmopt_find_pud(struct mm_struct *mm, unsigned long addr);
pmd_t *mmopt_find_pmd(struct mm_struct *mm, unsigned long addr);
pmd_t *mmopt_make_pmd(struct mm_struct *mm, unsigned long addr);
int mmopt_make_ptes(struct mm_struct *mm, pmd_t *pmd);

/**
 * mmopt_lock_ptls() - lock the page tables of two entries
 * @a: lock of the one
 * @b: lock of the other, which can be the same
 *
 * In the order of their addresses, as UFFDIO_MOVE takes such a pair. That holds
 * no more than the locks of its own two VMAs, and page tables are shared with
 * others: mmap_lock does not keep it away, and in another order two CPUs would
 * wait for each other.
 */
static inline void mmopt_lock_ptls(spinlock_t *a, spinlock_t *b)
{
	if (a > b)
		swap(a, b);
	spin_lock(a);
	if (a != b)
		spin_lock_nested(b, SINGLE_DEPTH_NESTING);
	else
		__acquire(b);
}

/**
 * mmopt_unlock_ptls() - undo mmopt_lock_ptls()
 * @a: as there
 * @b: as there
 */
static inline void mmopt_unlock_ptls(spinlock_t *a, spinlock_t *b)
{
	spin_unlock(a);
	if (a != b)
		spin_unlock(b);
	else
		__release(b);
}

#endif /* MMOPT_PGTABLE_H */
