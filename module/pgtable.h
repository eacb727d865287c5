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
void mmopt_lock_ptls(spinlock_t *a, spinlock_t *b) __acquires(a) __acquires(b);
void mmopt_unlock_ptls(spinlock_t *a, spinlock_t *b) __releases(a) __releases(b);

#endif /* MMOPT_PGTABLE_H */
