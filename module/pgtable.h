/* SPDX-License-Identifier: GPL-2.0 */
/* Finding, making and locking page tables, and taking entries out of them. */
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

/**
 * mmopt_take_pte() - clear an entry that moves, and return what it was
 * @mm:   whose it is
 * @addr: what it maps
 * @ptep: the entry
 *
 * An atomic access is there for the CPUs that set accessed and dirty bits by
 * themselves. Where both are set already there is nothing left for them to write,
 * and nobody else writes, or clears a bit that was just read, without the lock.
 * Entries that are not present may take either way.
 *
 * Context: under the page table lock.
 */
static inline pte_t mmopt_take_pte(struct mm_struct *mm, unsigned long addr, pte_t *ptep)
{
	const pteval_t both = _PAGE_ACCESSED | _PAGE_DIRTY;

	return ptep_get_and_clear_full(mm, addr, ptep, (pte_flags(ptep_get(ptep)) & both) == both);
}

#endif /* MMOPT_PGTABLE_H */
