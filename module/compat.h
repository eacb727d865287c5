/* SPDX-License-Identifier: GPL-2.0 */
/* Differences between kernel versions: the only place that asks for one. */
#ifndef MMOPT_COMPAT_H
#define MMOPT_COMPAT_H

#include <linux/pagewalk.h>
#include <linux/version.h>

/*
 * Series that the test suite runs on. Another kernel is not refused for its
 * number, since each path verifies what it relies on, but it needs
 * allow_untested=1.
 */
#define MMOPT_SERIES(a, b) (KERNEL_VERSION(a, b, 0) >> 8 == LINUX_VERSION_CODE >> 8)
#define MMOPT_KERNEL_TESTED \
	(MMOPT_SERIES(6, 1) || MMOPT_SERIES(6, 12) || MMOPT_SERIES(7, 3))

/* __assign_str() lost its second argument in 6.10. */
#if KERNEL_VERSION(6, 10, 0) <= LINUX_VERSION_CODE
#define mmopt_assign_str(dst, src) __assign_str(dst)
#else
#define mmopt_assign_str(dst, src) __assign_str(dst, src)
#endif

/* What a function's entry saved for tracers; hidden in a struct since 6.12. */
#if KERNEL_VERSION(6, 12, 0) <= LINUX_VERSION_CODE
#define mmopt_entry_regs(fregs)	(&arch_ftrace_regs(fregs)->regs)
#else
#define mmopt_entry_regs(fregs)	(&(fregs)->regs)
#endif

/* The kernel's patching of live text, renamed in 6.16. */
#if KERNEL_VERSION(6, 16, 0) <= LINUX_VERSION_CODE
#define MMOPT_TEXT_POKE		"smp_text_poke_single"
#else
#define MMOPT_TEXT_POKE		"text_poke_bp"
#endif

/*
 * Since 7.0 process_madvise takes a path of its own to the work, and the page
 * walker can walk under a VMA read lock.
 */
#define MMOPT_WALK_BTF \
	"int (struct vm_area_struct *, long unsigned int, long unsigned int, " \
	"const struct mm_walk_ops *, void *)"
#define MMOPT_VECTOR_MADVISE (KERNEL_VERSION(7, 0, 0) <= LINUX_VERSION_CODE)

/* What KSM looks pages up with (struct folio_walk) is of 6.12. */
#define MMOPT_KSM_FOLIO_WALK (KERNEL_VERSION(6, 12, 0) <= LINUX_VERSION_CODE)
#define MMOPT_FOLIO_WALK_BTF \
	"struct folio * (struct folio_walk *, struct vm_area_struct *, " \
	"long unsigned int, folio_walk_flags_t)"

/* On 6.x pte_offset_map_lock() is an inline around this. */
#if KERNEL_VERSION(7, 0, 0) <= LINUX_VERSION_CODE
#define MMOPT_PTE_MAP_LOCK	pte_offset_map_lock
#else
#define MMOPT_PTE_MAP_LOCK	__pte_offset_map_lock
#endif

/* A VMA's lock: a count of readers since 6.15, whose flag was renamed in 7.0. */
#if defined(VM_REFCNT_EXCLUDE_READERS_FLAG)
#define MMOPT_VMA_CONTENDED(vma) \
	(refcount_read(&(vma)->vm_refcnt) & VM_REFCNT_EXCLUDE_READERS_FLAG)
#elif defined(VMA_LOCK_OFFSET)
#define MMOPT_VMA_CONTENDED(vma)	(refcount_read(&(vma)->vm_refcnt) & VMA_LOCK_OFFSET)
#else
#define MMOPT_VMA_CONTENDED(vma)	rwsem_is_contended(&(vma)->vm_lock->lock)
#endif

/* move_page_tables() begins with a whole PMD if it can. */
#define MMOPT_REALIGN (KERNEL_VERSION(6, 7, 0) <= LINUX_VERSION_CODE)

/*
 * What userfaultfd_clear_vma() takes away write protection with: since 7.0 an
 * inlined uffd_wp_range().
 */
#if KERNEL_VERSION(7, 0, 0) <= LINUX_VERSION_CODE
#define MMOPT_UFFD_CLEAR	change_protection
#define MMOPT_UFFD_CLEAR_PARAMS \
	struct mmu_gather *tlb, struct vm_area_struct *vma, unsigned long start, \
	unsigned long end, unsigned long flags
#define MMOPT_UFFD_CLEAR_ARGS	tlb, vma, start, end, flags
#define MMOPT_UFFD_CLEAR_BTF \
	"long int (struct mmu_gather *, struct vm_area_struct *, " \
	"long unsigned int, long unsigned int, long unsigned int)"
#else
#define MMOPT_UFFD_CLEAR	uffd_wp_range
#define MMOPT_UFFD_CLEAR_PARAMS \
	struct vm_area_struct *vma, unsigned long start, unsigned long len, bool enable
#define MMOPT_UFFD_CLEAR_ARGS	vma, start, len, enable
#define MMOPT_UFFD_CLEAR_BTF \
	"long int (struct vm_area_struct *, long unsigned int, long unsigned int, bool)"
#endif

/* move_page_tables() takes a struct; before that, 6.7 added a parameter. */
#define MMOPT_MOVE_CONTROL (KERNEL_VERSION(7, 0, 0) <= LINUX_VERSION_CODE)
#define MMOPT_MOVE_PARAMS_6_1 \
	struct vm_area_struct *old, unsigned long from, struct vm_area_struct *new, \
	unsigned long to, unsigned long len, bool need_rmap_locks
#define MMOPT_MOVE_ARGS_6_1(m, len) \
	(m)->old, (m)->from, (m)->new, (m)->to, len, (m)->need_rmap_locks
#define MMOPT_MOVE_BTF_6_1 \
	"long unsigned int (struct vm_area_struct *, long unsigned int, " \
	"struct vm_area_struct *, long unsigned int, long unsigned int, bool"
#if KERNEL_VERSION(6, 7, 0) <= LINUX_VERSION_CODE
#define MMOPT_MOVE_PARAMS MMOPT_MOVE_PARAMS_6_1, bool for_stack
#define MMOPT_MOVE_ARGS(m, len) MMOPT_MOVE_ARGS_6_1(m, len), false
#define MMOPT_MOVE_BTF MMOPT_MOVE_BTF_6_1 ", bool)"
#else
#define MMOPT_MOVE_PARAMS MMOPT_MOVE_PARAMS_6_1
#define MMOPT_MOVE_ARGS(m, len) MMOPT_MOVE_ARGS_6_1(m, len)
#define MMOPT_MOVE_BTF MMOPT_MOVE_BTF_6_1 ")"
#endif

/* flush_tlb_mm_range(), which is hidden from modules. */
void proto_flush(struct mm_struct *mm, unsigned long start, unsigned long end,
		 unsigned int stride_shift, bool freed_tables);
#define MMOPT_FLUSH_BTF \
	"void (struct mm_struct *, long unsigned int, long unsigned int, " \
	"unsigned int, bool)"

/*
 * Another mapping of a page, whose page table entry is locked, for @dst; that of an
 * anonymous one, which has to be small, fails if it may be pinned.
 */
#if KERNEL_VERSION(6, 15, 0) <= LINUX_VERSION_CODE
#define mmopt_dup_anon(folio, dst, src) \
	folio_try_dup_anon_rmap_pte(folio, &(folio)->page, dst, src)
#define mmopt_dup_file(folio, page, dst)	folio_dup_file_rmap_pte(folio, page, dst)
#elif KERNEL_VERSION(6, 8, 0) <= LINUX_VERSION_CODE
#define mmopt_dup_anon(folio, dst, src) \
	folio_try_dup_anon_rmap_pte(folio, &(folio)->page, src)
#define mmopt_dup_file(folio, page, dst)	folio_dup_file_rmap_pte(folio, page)
#else
#define mmopt_dup_anon(folio, dst, src)	page_try_dup_anon_rmap(&(folio)->page, false, src)
#define mmopt_dup_file(folio, page, dst)	page_dup_file_rmap(page, false)
#endif

/* Flags of a page, and has an mm ever pinned one? Renamed in 6.18. */
#if KERNEL_VERSION(6, 18, 0) <= LINUX_VERSION_CODE
#define mmopt_page_flags(page)	(&(page)->flags.f)
#define mmopt_mm_pins(mm)	mm_flags_test(MMF_HAS_PINNED, mm)
#else
#define mmopt_page_flags(page)	(&(page)->flags)
#define mmopt_mm_pins(mm)	test_bit(MMF_HAS_PINNED, &(mm)->flags)
#endif

/* The bit by which userfaultfd marks an entry; renamed in 7.3. */
#if KERNEL_VERSION(7, 3, 0) <= LINUX_VERSION_CODE
#define mmopt_pte_clear_uffd(pte)	pte_clear_uffd(pte)
#else
#define mmopt_pte_clear_uffd(pte)	pte_clear_uffd_wp(pte)
#endif

/* How many pages of a kind an mm has; per CPU since 6.2. */
#if KERNEL_VERSION(6, 2, 0) <= LINUX_VERSION_CODE
#define mmopt_add_rss(mm, kind, n)	percpu_counter_add(&(mm)->rss_stat[kind], n)
#else
#define mmopt_add_rss(mm, kind, n)	atomic_long_add(n, &(mm)->rss_stat.count[kind])
#endif

/* Since 6.6 the scheduler tells whether a task's CPU time has a limit. */
#define MMOPT_TASK_LIMITED (KERNEL_VERSION(6, 6, 0) <= LINUX_VERSION_CODE)

/* Lets a VMA that is nobody else's begin @pages later. */
static inline void mmopt_vma_skip(struct vm_area_struct *vma, unsigned long pages)
{
#if KERNEL_VERSION(7, 3, 0) <= LINUX_VERSION_CODE
	pgoff_t anon = vma_start_anon_pgoff(vma) + pages;

	vma->__vm_anon_pgoff_lo = lower_32_bits(anon);
	vma->__vm_anon_pgoff_hi = upper_32_bits(anon);
#endif
	vma->vm_start += pages << PAGE_SHIFT;
	vma->vm_pgoff += pages;
}

#endif /* MMOPT_COMPAT_H */
