// SPDX-License-Identifier: GPL-2.0
/*
 * The path madvise: MADV_COLD and MADV_PAGEOUT of the caller's own memory under
 * the read lock of each VMA in turn, instead of mmap_lock over the whole range.
 *
 * Hooks. The calls of do_madvise() in its system calls and in io_uring are
 * turned to us, on 7.x also the one of vector_madvise() in process_madvise().
 * Any other advice costs a compare there. For each VMA we do the few steps of the
 * kernel's madvise_cold() and madvise_pageout(), which are inlined on 6.12 and
 * insist on mmap_lock; the work on pages is the kernel's own
 * madvise_cold_or_pageout_pte_range(). On 7.x the kernel's walker calls it, which
 * has a mode for VMA read locks, on 6.12 ours.
 *
 * Why a VMA read lock is enough. What the walk needs is
 *  - vm_flags, vm_file, vm_start and vm_end that stay: writers of these hold
 *    the VMA write lock, which waits for us (munmap, mprotect, mlock, mremap,
 *    fork, MADV_* that change flags, userfaultfd register);
 *  - upper page tables that stay: free_pgtables() and mremap write-lock the
 *    VMA too; page tables proper may go under RCU (retract_page_tables(),
 *    collapse), which the callback handles by pte_offset_map_lock();
 *  - an mm that stays: it is current->mm, so mm_users is ours;
 *  - nothing of any other VMA, and no anon_vma to be made.
 * Everyone else synchronises with the callback through page table locks and
 * folio locks and never could rely on mmap_lock, which both sides held for
 * reading: faults, rmap (reclaim, migration, KSM), NUMA balancing, the OOM
 * reaper, GUP-fast, MADV_DONTNEED (under a VMA read lock itself). Reclaim from
 * here takes no mmap_lock: faults enter it under a VMA lock as well.
 * Mmu notifiers are called by the rmap walks that reclaim does, as in stock.
 * The young bits of MADV_COLD are flushed before the VMA lock drops. A CPU that
 * has not seen the flush yet only fails to set one again; on x86 the kernel leaves
 * them unflushed elsewhere, and entries stay present, so nobody skips a flush.
 *
 * What sends a call, or the rest of it, to stock do_madvise():
 *  - another mm (process_madvise): mm_users would not be ours, and the address
 *    tag mask of another mm is protected by its mmap_lock;
 *  - no VMA lock: a gap (stock finds and reports it, -ENOMEM), or a writer;
 *  - a VMA registered with userfaultfd, as stock decides for MADV_DONTNEED;
 *  - a huge or bad entry above the PMD, on 6.12.
 * The rest is exact, since the part that was done had no gap and no error.
 * A range is a hint per page, so VMAs need not be looked at in one instant.
 *
 * A livepatch of a function that we go around would not see the calls we take:
 * the path does not go on while there is one, and trips when one comes.
 *
 * IBT: see ksym.h. Unload: calls are counted in mmopt_drain around the whole
 * operation; other advice leaves by a tail call, so no frame of ours is below
 * it (the test suite looks at the object code).
 */
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagewalk.h>
#include <linux/uio.h>
#include <linux/userfaultfd_k.h>

#include "../compat.h"
#include "../hook/hook.h"
#include "../ksym.h"
#include "../path.h"
#include "../trace.h"
#include "../vmalock.h"
#include "../walk.h"

enum fallback {
	MMOPT_MADVISE_FALLBACKS(MMOPT_AS_FALLBACK)
	NO_FALLBACK
};

static const char *const fallback_name[] = { MMOPT_MADVISE_FALLBACKS(MMOPT_AS_NAME) };

#ifdef CONFIG_PER_VMA_LOCK

/* Hidden from modules, though <asm/tlb.h> has inlines that call it. */
void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int stride_shift,
			bool freed_tables);
#include <asm/tlb.h>

/* As in the kernel's mm/madvise.c; compared with its BTF. */
struct madvise_walk_private {
	struct mmu_gather *tlb;
	bool pageout;
};

int proto_pmd_entry(pmd_t *pmd, unsigned long addr, unsigned long next,
		    struct mm_walk *walk);
void proto_drain(void);

MMOPT_DEFINE_KFUNC(do_madvise, do_madvise);
MMOPT_DEFINE_KFUNC(lru_add_drain, proto_drain);
DEFINE_STATIC_CALL_NULL(k_flush_young, flush_tlb_mm_range);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(do_madvise),
	MMOPT_KFUNC(lru_add_drain),
	MMOPT_KFUNC_AS("flush_tlb_mm_range", k_flush_young),
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(do_madvise,
			"int (struct mm_struct *, long unsigned int, size_t, int)"),
	MMOPT_WANT_FUNC(madvise_cold_or_pageout_pte_range,
			"int (pmd_t *, long unsigned int, long unsigned int, struct mm_walk *)"),
	MMOPT_WANT_SIZE(struct madvise_walk_private),
	MMOPT_WANT_MEMBER(struct madvise_walk_private, tlb),
	MMOPT_WANT_MEMBER(struct madvise_walk_private, pageout),
	MMOPT_WANT_SIZE(struct mmu_gather),
	MMOPT_WANT_MEMBER(struct mmu_gather, mm),
	MMOPT_WANT_MEMBER(struct mmu_gather, start),
	MMOPT_WANT_MEMBER(struct mmu_gather, end),
	MMOPT_WANT_FUNC(flush_tlb_mm_range, MMOPT_FLUSH_BTF),
	MMOPT_WANT_FUNC(lru_add_drain, "void (void)"),
};

/* Calls take the fast way. The sites may be armed without it, to observe. */
static DEFINE_STATIC_KEY_FALSE(fast);
static struct mmopt_callsites sites;

static int walk_vma(struct vm_area_struct *vma, unsigned long start,
		    unsigned long end, struct madvise_walk_private *private);

/*
 * What madvise_cold() and madvise_pageout() do with a VMA, in their order. The
 * callback only notes in the gather where it took young bits away. We flush for
 * that as stock does, but do not open the gather: the kernel takes gathers that
 * overlap for frees that do, and would have every munmap() meanwhile, which
 * stock's mmap_lock kept out, flush the whole address space, and us as well.
 */
static long advise_lru(struct vm_area_struct *vma, unsigned long start,
		       unsigned long end, bool pageout)
{
	struct mmu_gather tlb = { .mm = vma->vm_mm };
	struct madvise_walk_private private = { .tlb = &tlb, .pageout = pageout };
	struct file *file = vma->vm_file;
	int err;

	if (vma->vm_flags & (VM_LOCKED | VM_PFNMAP | VM_HUGETLB))
		return -EINVAL;
	/*
	 * Page cache may be paged out by those who may write the file, or it
	 * would tell others what is cached. Private pages of a private mapping
	 * are the caller's own in any case; the callback picks them out.
	 */
	if (pageout && !vma_is_anonymous(vma) && (vma->vm_flags & VM_MAYSHARE) &&
	    !(file && (file_owner_or_capable(file) ||
		       !file_permission(file, MAY_WRITE))))
		return 0;

	static_call(k_lru_add_drain)();
	__tlb_reset_range(&tlb);
	err = walk_vma(vma, start, end, &private);
	if (tlb.end)
		static_call(k_flush_young)(tlb.mm, tlb.start, tlb.end,
					   tlb_get_unmap_shift(&tlb), false);
	/* A fatal signal ends the walk and is no error. */
	return err == -EREMOTE ? err : 0;
}

#if MMOPT_VECTOR_MADVISE

ssize_t proto_vector(struct mm_struct *mm, struct iov_iter *iter, int behavior);

MMOPT_DEFINE_KFUNC(vector_madvise, proto_vector);
MMOPT_DEFINE_KFUNC(walk_page_range_vma, walk_page_range_vma);

static const struct mmopt_kfunc funcs_here[] = {
	MMOPT_KFUNC(vector_madvise),
	MMOPT_KFUNC(walk_page_range_vma),
};

static const struct mmopt_btf_want want_here[] = {
	MMOPT_WANT_FUNC(vector_madvise,
			"ssize_t (struct mm_struct *, struct iov_iter *, int)"),
	MMOPT_WANT_FUNC(walk_page_range_vma,
			MMOPT_WALK_BTF),
	MMOPT_WANT_SIZE(struct mm_walk_ops),
	MMOPT_WANT_ENUM(enum page_walk_lock, PGWALK_VMA_RDLOCK_VERIFY,
			PGWALK_VMA_RDLOCK_VERIFY),
};

static const char *const bypassed[] = {
	"do_madvise", "vector_madvise", "madvise_lock", "madvise_unlock",
	"madvise_do_behavior", "madvise_vma_behavior", "madvise_cold",
	"madvise_pageout", NULL
};

/* pmd_entry is set at load; the kernel takes its address too, so IBT allows it. */
static struct mm_walk_ops walk_ops = { .walk_lock = PGWALK_VMA_RDLOCK_VERIFY };

static int walk_vma(struct vm_area_struct *vma, unsigned long start,
		    unsigned long end, struct madvise_walk_private *private)
{
	return static_call(k_walk_page_range_vma)(vma, start, end, &walk_ops, private);
}

#else /* !MMOPT_VECTOR_MADVISE */

MMOPT_DEFINE_KFUNC(madvise_cold_or_pageout_pte_range, proto_pmd_entry);

static const struct mmopt_kfunc funcs_here[] = {
	MMOPT_KFUNC(madvise_cold_or_pageout_pte_range),
};

static const struct mmopt_btf_want want_here[] = {
	MMOPT_WANT_WALK,
};

static const char *const bypassed[] = {
	"do_madvise", "walk_page_range", "__walk_page_range", "walk_pgd_range",
	"walk_p4d_range", "walk_pud_range", "walk_pmd_range", NULL
};

static int pmd_entry(pmd_t *pmd, unsigned long addr, unsigned long next,
		     struct mm_walk *walk)
{
	return static_call(k_madvise_cold_or_pageout_pte_range)(pmd, addr, next, walk);
}

static const struct mm_walk_ops walk_ops = { .pmd_entry = pmd_entry };

static int walk_vma(struct vm_area_struct *vma, unsigned long start,
		    unsigned long end, struct madvise_walk_private *private)
{
	return mmopt_walk_vma(vma, start, end, &walk_ops, private);
}

#endif /* !MMOPT_VECTOR_MADVISE */

/*
 * Advises VMA after VMA of current->mm from *@at on, until @end or something
 * that stock code must do; *@at tells how far it got.
 */
static int advise_vmas(unsigned long *at, unsigned long end, int behavior,
		       enum fallback *why)
{
	struct vm_area_struct *vma;
	struct blk_plug plug;
	unsigned long stop;
	int err = 0;

	blk_start_plug(&plug);
	while (*at < end) {
		vma = mmopt_vma_lock(current->mm, *at);
		if (!vma) {
			*why = FALLBACK_vma_lock;
			break;
		}
		if (userfaultfd_armed(vma)) {
			vma_end_read(vma);
			*why = FALLBACK_userfaultfd;
			break;
		}
		stop = min(vma->vm_end, end);
		err = advise_lru(vma, *at, stop, behavior == MADV_PAGEOUT);
		vma_end_read(vma);
		if (err == -EREMOTE) {
			err = 0;
			*why = FALLBACK_huge_pud;
			break;
		}
		if (err)
			break;
		mmopt_count(&mmopt_path_madvise.stats, MMOPT_pages,
			    (stop - *at) >> PAGE_SHIFT);
		*at = stop;
	}
	blk_finish_plug(&plug);
	return err;
}

static int advise(struct mm_struct *mm, unsigned long start, size_t len_in,
		  int behavior)
{
	struct mmopt_stats *stats = &mmopt_path_madvise.stats;
	enum fallback why = NO_FALLBACK;
	size_t len = PAGE_ALIGN(len_in);
	u64 begin = ktime_get_ns();
	bool on = static_branch_unlikely(&fast);
	bool taken = false;
	unsigned long end;
	int err;

	/* Nothing to do, or an error that stock code finds before any lock. */
	if (!PAGE_ALIGNED(start) || !len || start + len < start)
		return static_call(k_do_madvise)(mm, start, len_in, behavior);

	if (on && mm == current->mm) {
		start = untagged_addr(start);
		end = start + len;
		err = advise_vmas(&start, end, behavior, &why);
		taken = why == NO_FALLBACK;
		len = end - start;
	} else if (on) {
		why = FALLBACK_remote_mm;
	}
	if (why != NO_FALLBACK) {
		this_cpu_inc(stats->cpu->fallback[why]);
		trace_mmopt_fallback("madvise", fallback_name[why]);
	}
	if (!taken)
		err = static_call(k_do_madvise)(mm, start, len, behavior);

	mmopt_count(stats, MMOPT_calls, 1);
	mmopt_count(stats, taken ? MMOPT_taken : MMOPT_stock, 1);
	mmopt_count_latency(stats, taken ? MMOPT_HIST_TAKEN : MMOPT_HIST_STOCK,
			    ktime_get_ns() - begin);
	return err;
}

static bool ours(int behavior)
{
	return behavior == MADV_COLD || behavior == MADV_PAGEOUT;
}

static noinline int advise_counted(struct mm_struct *mm, unsigned long start,
				   size_t len, int behavior)
{
	int err;

	mmopt_enter(&sites.drain);
	err = advise(mm, start, len, behavior);
	mmopt_leave(&sites.drain);
	return err;
}

/* Both ways out are tail calls: other advice must not pass through a frame. */
static noinline int mmopt_do_madvise(struct mm_struct *mm, unsigned long start,
				     size_t len, int behavior)
{
	if (!ours(behavior))
		return static_call(k_do_madvise)(mm, start, len, behavior);
	return advise_counted(mm, start, len, behavior);
}

#if MMOPT_VECTOR_MADVISE
/*
 * Segment by segment, where stock keeps one lock over all of them. As there,
 * an error ends the loop, and counts only if it is the first segment's.
 */
static noinline ssize_t advise_vector(struct mm_struct *mm, struct iov_iter *iter,
				      int behavior)
{
	size_t total = iov_iter_count(iter);
	ssize_t err = 0;

	mmopt_enter(&sites.drain);
	while (iov_iter_count(iter)) {
		size_t len = iter_iov_len(iter);

		err = advise(mm, (unsigned long)iter_iov_addr(iter), len, behavior);
		if (err < 0)
			break;
		iov_iter_advance(iter, len);
	}
	mmopt_leave(&sites.drain);
	return (total - iov_iter_count(iter)) ?: err;
}

static noinline ssize_t mmopt_vector_madvise(struct mm_struct *mm,
					     struct iov_iter *iter, int behavior)
{
	if (!ours(behavior))
		return static_call(k_vector_madvise)(mm, iter, behavior);
	return advise_vector(mm, iter, behavior);
}
#endif

#define SITE(function, fn, opt) \
	{ .in = #function, .callee = #fn, .replacement = mmopt_##fn, .nr = 1, \
	  .optional = opt }

static const struct mmopt_callsite want_sites[] = {
	SITE(__x64_sys_madvise, do_madvise, false),
	SITE(__ia32_sys_madvise, do_madvise, true),
	SITE(io_madvise, do_madvise, true),
#if MMOPT_VECTOR_MADVISE
	SITE(__do_sys_process_madvise, vector_madvise, false),
#else
	SITE(__do_sys_process_madvise, do_madvise, false),
#endif
};

static struct mmopt_callsites sites = {
	.want = want_sites,
	.nr_want = ARRAY_SIZE(want_sites),
};

static int madvise_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	int err;

	path->fast = &fast;
	path->sites = &sites;
	err = mmopt_vmalock_init(why, why_len);
	if (!err)
		err = mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);
	if (!err)
		err = mmopt_kfunc_bind(funcs_here, ARRAY_SIZE(funcs_here), why, why_len);
	if (!err)
		err = mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
	if (!err)
		err = mmopt_verify(want_here, ARRAY_SIZE(want_here), why, why_len);
#if MMOPT_VECTOR_MADVISE
	walk_ops.pmd_entry = (void *)mmopt_ksym("madvise_cold_or_pageout_pte_range");
	if (!err && !walk_ops.pmd_entry) {
		snprintf(why, why_len, "no symbol madvise_cold_or_pageout_pte_range");
		err = -ENOENT;
	}
#endif
	return err ?: mmopt_callsites_init(&sites, why, why_len);
}

#else /* !CONFIG_PER_VMA_LOCK */

static int madvise_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	snprintf(why, why_len, "no per-VMA lock: needs Linux 6.4 with CONFIG_PER_VMA_LOCK");
	return -EOPNOTSUPP;
}

static const char *const bypassed[] = { NULL };

#endif /* !CONFIG_PER_VMA_LOCK */

static const struct mmopt_path_ops madvise_ops = {
	.probe = madvise_probe,
};

struct mmopt_path mmopt_path_madvise = {
	.name = "madvise",
	.ops = &madvise_ops,
	.bypassed = bypassed,
	.stats = {
		.fallback = fallback_name,
		.nr_fallbacks = ARRAY_SIZE(fallback_name),
	},
};
