// SPDX-License-Identifier: GPL-2.0
/*
 * A page walk of one read-locked VMA. The kernel's own walker asserts mmap_lock on
 * 6.x; on 7.x it need not, but takes twice as long to come to the first entry, which
 * counts where every page is a walk.
 *
 * Under the VMA lock, tables of the upper levels can be added by faults but
 * are not freed: that takes munmap or mremap, which write-lock the VMA first.
 * So an entry that is there stays there while we descend. Page tables proper
 * can go (khugepaged, by RCU): that is for the callback, which maps them with
 * pte_offset_map_lock() and looks again. It also copes with a PMD that turns
 * huge or empty under its eyes, as it must under mmap_lock.
 */
#include <linux/mm.h>

#include "walk.h"

static int walk_pmds(pud_t *pud, unsigned long addr, unsigned long end,
		     struct mm_walk *walk)
{
	pmd_t *pmd = pmd_offset(pud, addr);
	unsigned long next;
	int err;

	for (; addr < end; pmd++, addr = next) {
		next = pmd_addr_end(addr, end);
		if (pmd_none(READ_ONCE(*pmd)))
			continue;
		err = walk->ops->pmd_entry(pmd, addr, next, walk);
		if (err)
			return err;
	}
	return 0;
}

/**
 * mmopt_walk_vma() - call pmd_entry on each populated PMD of a range
 * @vma:     read-locked, not hugetlb
 * @start:   in the VMA
 * @end:     in the VMA
 * @ops:     only pmd_entry is used; it leaves walk->action alone
 * @private: for pmd_entry
 *
 * Context: may sleep.
 * Return: 0, what pmd_entry returned, or -EREMOTE at an entry that only the
 * kernel's own walker can deal with: a huge one above the PMD, or a bad one.
 */
int mmopt_walk_vma(struct vm_area_struct *vma, unsigned long start,
		   unsigned long end, const struct mm_walk_ops *ops,
		   void *private)
{
	struct mm_walk walk = {
		.ops = ops,
		.mm = vma->vm_mm,
		.vma = vma,
		.private = private,
	};
	unsigned long addr, next;
	pgd_t *pgd;
	p4d_t *p4d;
	pud_t *pud;
	pud_t entry;
	int err;

	for (addr = start; addr < end; addr = next) {
		next = pgd_addr_end(addr, end);
		pgd = pgd_offset(walk.mm, addr);
		if (pgd_none(*pgd))
			continue;
		if (pgd_bad(*pgd))
			return -EREMOTE;
		next = p4d_addr_end(addr, next);
		p4d = p4d_offset(pgd, addr);
		if (p4d_none(*p4d))
			continue;
		if (p4d_bad(*p4d))
			return -EREMOTE;
		next = pud_addr_end(addr, next);
		pud = pud_offset(p4d, addr);
		entry = READ_ONCE(*pud);
		if (pud_none(entry))
			continue;
		if (pud_leaf(entry) || pud_bad(entry))
			return -EREMOTE;
		err = walk_pmds(pud, addr, next, &walk);
		if (err)
			return err;
	}
	return 0;
}
