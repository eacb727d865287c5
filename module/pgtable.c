// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>

#include "ksym.h"
#include "pgtable.h"

int proto_p4d_alloc(struct mm_struct *mm, pgd_t *pgd, unsigned long addr);
int proto_pud_alloc(struct mm_struct *mm, p4d_t *p4d, unsigned long addr);
int proto_pmd_alloc(struct mm_struct *mm, pud_t *pud, unsigned long addr);
int proto_pte_alloc(struct mm_struct *mm, pmd_t *pmd);

MMOPT_DEFINE_KFUNC(__p4d_alloc, proto_p4d_alloc);
MMOPT_DEFINE_KFUNC(__pud_alloc, proto_pud_alloc);
MMOPT_DEFINE_KFUNC(__pmd_alloc, proto_pmd_alloc);
MMOPT_DEFINE_KFUNC(__pte_alloc, proto_pte_alloc);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(__p4d_alloc),
	MMOPT_KFUNC(__pud_alloc),
	MMOPT_KFUNC(__pmd_alloc),
	MMOPT_KFUNC(__pte_alloc),
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(__p4d_alloc, "int (struct mm_struct *, pgd_t *, long unsigned int)"),
	MMOPT_WANT_FUNC(__pud_alloc, "int (struct mm_struct *, p4d_t *, long unsigned int)"),
	MMOPT_WANT_FUNC(__pmd_alloc, "int (struct mm_struct *, pud_t *, long unsigned int)"),
	MMOPT_WANT_FUNC(__pte_alloc, "int (struct mm_struct *, pmd_t *)"),
};

/**
 * mmopt_pgtable_init() - find what makes page tables
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Return: 0 or a negative errno.
 */
int mmopt_pgtable_init(char *why, size_t why_len)
{
	int err = mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);

	return err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
}

/**
 * mmopt_find_pud() - the PUD entry of an address
 * @mm:   upper tables cannot go: a VMA at @addr is locked
 * @addr: user address
 *
 * Return: the entry, whatever it holds, or NULL if the tables above are not
 * there.
 */
pud_t *mmopt_find_pud(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;

	if (pgd_none(*pgd) || pgd_bad(*pgd))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(*p4d) || p4d_bad(*p4d))
		return NULL;
	return pud_offset(p4d, addr);
}

/**
 * mmopt_find_pmd() - the PMD entry of an address
 * @mm:   as for mmopt_find_pud()
 * @addr: user address
 *
 * Return: the entry, whatever it holds, or NULL if there is no table of it.
 */
pmd_t *mmopt_find_pmd(struct mm_struct *mm, unsigned long addr)
{
	pud_t *pud = mmopt_find_pud(mm, addr);

	return pud && pud_present(*pud) && !pud_leaf(*pud) ? pmd_offset(pud, addr) : NULL;
}

/**
 * mmopt_make_pud() - the PUD entry of an address, with the tables above it made
 * @mm:   as for mmopt_find_pud()
 * @addr: user address
 *
 * Context: may sleep.
 * Return: the entry, or NULL if memory is short.
 */
pud_t *mmopt_make_pud(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;

	if (pgtable_l5_enabled() && pgd_none(*pgd) &&
	    static_call(k___p4d_alloc)(mm, pgd, addr))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(*p4d) && static_call(k___pud_alloc)(mm, p4d, addr))
		return NULL;
	return pud_offset(p4d, addr);
}

/**
 * mmopt_make_pmd() - the PMD entry of an address, with the tables above it made
 * @mm:   as for mmopt_find_pud()
 * @addr: user address
 *
 * Context: may sleep.
 * Return: the entry, or NULL if memory is short or a huge page is in the way.
 */
pmd_t *mmopt_make_pmd(struct mm_struct *mm, unsigned long addr)
{
	pud_t *pud = mmopt_make_pud(mm, addr);

	if (!pud || (pud_none(*pud) && static_call(k___pmd_alloc)(mm, pud, addr)))
		return NULL;
	return pud_leaf(*pud) ? NULL : pmd_offset(pud, addr);
}

/**
 * mmopt_make_ptes() - a page table for an empty PMD entry
 * @mm:  as for mmopt_find_pud()
 * @pmd: the entry
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int mmopt_make_ptes(struct mm_struct *mm, pmd_t *pmd)
{
	return static_call(k___pte_alloc)(mm, pmd);
}
