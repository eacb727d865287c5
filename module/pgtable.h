/* SPDX-License-Identifier: GPL-2.0 */
/* Finding, making and locking page tables, and taking entries out of them. */
#ifndef MMOPT_PGTABLE_H
#define MMOPT_PGTABLE_H

#include <linux/mm.h>

int mmopt_pgtable_init(char *why, size_t why_len);
pud_t *mmopt_find_pud(struct mm_struct *mm, unsigned long addr);
pmd_t *mmopt_find_pmd(struct mm_struct *mm, unsigned long addr);
pud_t *mmopt_make_pud(struct mm_struct *mm, unsigned long addr);
pmd_t *mmopt_make_pmd(struct mm_struct *mm, unsigned long addr);
int mmopt_make_ptes(struct mm_struct *mm, pmd_t *pmd);

/* Is it a page table that this PMD entry leads to? */
static inline bool mmopt_is_table(pmd_t pmd)
{
	return pmd_present(pmd) && !pmd_bad(pmd);
}

/* As pte_pfn(), but cheap for all but PROT_NONE, whose frame may be inverted. */
static __always_inline unsigned long mmopt_pte_pfn(pte_t pte)
{
	if (likely(pte_flags(pte) & _PAGE_PRESENT))
		return (pte_val(pte) & PTE_PFN_MASK) >> PAGE_SHIFT;
	return pte_pfn(pte);
}

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

/*
 * Hardware sets accessed and dirty bits by itself, which is why changes of an entry
 * have to be atomic. Where both are set already there is nothing left for it to
 * write, and nobody else writes, or clears a bit that was just read, without the lock.
 */
static __always_inline bool mmopt_pte_is_ours(pte_t pte)
{
	const pteval_t both = _PAGE_ACCESSED | _PAGE_DIRTY;

	return (native_pte_val(pte) & both) == both;
}

/**
 * mmopt_take_pte() - clear an entry that moves, and return what it was
 * @mm:   whose it is
 * @addr: what it maps
 * @ptep: the entry
 *
 * Entries that are not present may take either way.
 *
 * Context: under the page table lock.
 */
static inline pte_t mmopt_take_pte(struct mm_struct *mm, unsigned long addr, pte_t *ptep)
{
	return ptep_get_and_clear_full(mm, addr, ptep, mmopt_pte_is_ours(ptep_get(ptep)));
}

/**
 * mmopt_wrprotect_pte() - make an entry that can be written read-only
 * @mm:   whose it is
 * @addr: what it maps
 * @ptep: the entry
 * @pte:  what it has been read to be
 *
 * Context: under the page table lock.
 * Return: what an entry is that was @pte.
 */
static __always_inline pte_t mmopt_wrprotect_pte(struct mm_struct *mm, unsigned long addr,
						 pte_t *ptep, pte_t pte)
{
	pte_t protected = pte_wrprotect(pte);

	if (mmopt_pte_is_ours(pte))
		set_pte(ptep, protected);
	else
		ptep_set_wrprotect(mm, addr, ptep);
	return protected;
}

#endif /* MMOPT_PGTABLE_H */
