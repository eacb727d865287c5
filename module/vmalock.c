// SPDX-License-Identifier: GPL-2.0
#include <linux/kernel.h>
#include <linux/maple_tree.h>

#include "ksym.h"
#include "vmalock.h"

#ifdef CONFIG_PER_VMA_LOCK
MMOPT_DEFINE_KFUNC(lock_vma_under_rcu, lock_vma_under_rcu);

/**
 * mmopt_vmalock_init() - find the kernel's VMA lock
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Return: 0 or a negative errno.
 */
int mmopt_vmalock_init(char *why, size_t why_len)
{
	static const struct mmopt_kfunc fn[] = { MMOPT_KFUNC(lock_vma_under_rcu) };
	static const struct mmopt_btf_want want[] = {
		MMOPT_WANT_FUNC(lock_vma_under_rcu,
				"struct vm_area_struct * (struct mm_struct *, long unsigned int)"),
	};
	int err;

	err = mmopt_kfunc_bind(fn, ARRAY_SIZE(fn), why, why_len);
	return err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
}

/**
 * mmopt_vma_lock() - read-lock the VMA at an address
 * @mm:   whose mm_users the caller holds for as long as it uses the VMA; the
 *        lookup is lockless and would walk a freed tree after exit_mmap()
 * @addr: in the VMA
 *
 * Fails where there is no VMA and where the VMA is write-locked or just being
 * replaced, and cannot tell these apart: only mmap_lock can. A caller that
 * goes on to take mmap_lock drops the VMA lock first, or a writer that waits
 * for both deadlocks with it.
 *
 * Context: does not sleep. Release with vma_end_read().
 * Return: the VMA, its range, flags, file and existence stable, or NULL.
 */
struct vm_area_struct *mmopt_vma_lock(struct mm_struct *mm, unsigned long addr)
{
	return static_call(k_lock_vma_under_rcu)(mm, addr);
}

/**
 * mmopt_vma_next() - where the next VMA begins
 * @mm:   as for mmopt_vma_lock()
 * @from: address to start at
 * @end:  address to stop at
 *
 * Nothing is locked, so that it may be otherwise by now: a guess, which a VMA lock
 * puts right.
 *
 * Return: @from if a VMA has it, or the start of the first one behind it, or @end.
 */
unsigned long mmopt_vma_next(struct mm_struct *mm, unsigned long from, unsigned long end)
{
	MA_STATE(mas, &mm->mm_mt, from, from);
	unsigned long at = end;

	rcu_read_lock();
	if (mas_find(&mas, end - 1))
		at = max(from, mas.index);
	rcu_read_unlock();
	return at;
}
#endif
