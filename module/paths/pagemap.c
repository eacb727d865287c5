// SPDX-License-Identifier: GPL-2.0
/*
 * The path pagemap: PAGEMAP_SCAN walks large VMAs under the read lock of each, and runs of
 * small ones in short holds of mmap_lock, instead of the whole range in one.
 *
 * Hooks. do_pagemap_scan() takes mmap_lock, tells mmu notifiers if it is going to protect,
 * walks, and undoes both, once for each buffer full of results. These calls are turned to us.
 * The lock notes in "walks" that this task walks without mmap_lock, and pins mm_users; the
 * walk runs the kernel's own callbacks by its __walk_page_range(), which asks for no lock;
 * the unlock goes by the note. No walk is half ours: that is decided once, at the lock,
 * which is turned last and turned back first; then the count of those inside, kept from lock
 * to unlock, falls to zero before any other site is turned back.
 *
 * Why a VMA read lock and a pin of mm_users are enough for the walk.
 *  - The mm. A lockless lookup after exit_mmap() has begun would walk a freed tree.
 *  - The VMA. Range, flags and userfaultfd context change under its write lock, which waits
 *    for us: munmap, mremap (old and new place), mprotect, mlock, mbind, split, merge, fork
 *    (until it has flushed), prctl, clear_refs, userfaultfd register, release of a context.
 *  - Upper page tables go with the VMA; munmap of a neighbour leaves what is shared.
 *    Collapse write-locks the VMA. Page tables proper may go under mmap_lock too
 *    (retract_page_tables(), PT_RECLAIM): the callback's pte_offset_map_lock() looks again.
 *  - Huge PMDs are split, and holes filled, as by faults and MADV_DONTNEED under VMA locks.
 *  - Readers of mmap_lock (NUMA balancing, UFFDIO_WRITEPROTECT, OOM reaper, GUP), rmap walks
 *    and GUP-fast never were kept off. uprobes hold it for writing, and no VMA lock, but
 *    replace a page under the page table lock, as they must for faults.
 *
 * Two things did depend on mmap_lock.
 *  - Mmu notifiers. One that registers between the calls before and after the walk would be
 *    told of an end without its start. Registration takes mmap_lock and write-locks each
 *    VMA (mm_take_all_locks()), so we make both calls for each VMA, under either lock, as
 *    MADV_DONTNEED does, and stock's own two calls do nothing.
 *  - Taking a range out of userfaultfd first clears the write protection of its entries and
 *    then write-locks the VMA. A walk in between would leave protected entries to a VMA that
 *    is not registered, and a later registration would take them for unwritten. The call that
 *    clears is turned to one that first write-locks the VMA. For those who passed there before
 *    it was turned, a scan that protects takes mmap_lock once at its start, and lets it go.
 *
 * Flushes of PM_SCAN_WP_MATCHING, one for each PMD in stock, are put off to before the lock
 * is let go of. Until then other CPUs may write by entries that they have cached, to pages
 * that this very scan reports, or that nobody asked about. UFFDIO_WRITEPROTECT does so too,
 * under either lock and with the same count of pending flushes: those who would copy or
 * merge such a page look at it (do_wp_page(), write_protect_page()), and gathers and scans
 * that overlap flush all. Those who do not flush what is protected already (mprotect, fork,
 * clear_refs) need mmap_lock and the VMA's for writing, and rmap walks flush what is present
 * or dirty in any case.
 *
 * A writer that waits for the VMA is let in after each PIECE, and waited for by mmap_lock,
 * since nobody can wait for a VMA lock. Small VMAs would cost more to lock than to walk:
 * these are walked under mmap_lock, until a large one comes, or others wait and it has been
 * held for PATIENCE_NS; so is hugetlbfs, whose walk has locks of its own. An exiting process,
 * or more tasks than "walks" has room for, keep mmap_lock. Never is it taken under a VMA
 * lock. Its tracepoints fire for elided locks too. IBT: see ksym.h.
 */
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/hugetlb.h>
#include <linux/ktime.h>
#include <linux/mm_inline.h>
#include <linux/pagewalk.h>
#include <linux/sched/mm.h>
#include <linux/userfaultfd_k.h>

#include "../compat.h"
#include "../hook/hook.h"
#include "../ksym.h"
#include "../notify.h"
#include "../path.h"
#include "../trace.h"
#include "../vmalock.h"

/* A VMA from this on is walked under its own lock. */
static unsigned long large_bytes = SZ_8M;

static const struct mmopt_tunable tunables[] = {
	MMOPT_PAGEMAP_TUNABLES(MMOPT_TUNABLE)
	{ }
};

enum extra { MMOPT_PAGEMAP_COUNTERS(MMOPT_AS_EXTRA) };

static const char *const extra_name[] = { MMOPT_PAGEMAP_COUNTERS(MMOPT_AS_NAME) };

enum fallback { MMOPT_PAGEMAP_FALLBACKS(MMOPT_AS_FALLBACK) };

static const char *const fallback_name[] = { MMOPT_PAGEMAP_FALLBACKS(MMOPT_AS_NAME) };

#if defined(CONFIG_PER_VMA_LOCK) && defined(PAGEMAP_SCAN)

/* What the kernel's private data begins with; compared with its BTF. */
struct pagemap_scan_private {
	struct pm_scan_arg arg;
};

int proto_walk(unsigned long start, unsigned long end, struct mm_walk *walk);
int proto_hole(unsigned long addr, unsigned long end, int depth, struct mm_walk *walk);

MMOPT_DEFINE_KFUNC(walk_page_range, walk_page_range);
MMOPT_DEFINE_KFUNC(__walk_page_range, proto_walk);
MMOPT_DEFINE_KFUNC(pagemap_scan_test_walk, proto_walk);
MMOPT_DEFINE_KFUNC(pagemap_scan_pte_hole, proto_hole);
DEFINE_STATIC_CALL_NULL(k_pagemap_flush, proto_flush);
DEFINE_STATIC_CALL_NULL(k_uffd_clear, MMOPT_UFFD_CLEAR);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(walk_page_range),
	MMOPT_KFUNC(__walk_page_range),
	MMOPT_KFUNC(pagemap_scan_test_walk),
	MMOPT_KFUNC(pagemap_scan_pte_hole),
	MMOPT_KFUNC_AS("flush_tlb_mm_range", k_pagemap_flush),
	MMOPT_KFUNC_AS(__stringify(MMOPT_UFFD_CLEAR), k_uffd_clear),
};

#define RANGE_BTF "int (struct mm_struct *, long unsigned int, long unsigned int, " \
	"const struct mm_walk_ops *, void *)"
#define WALK_BTF "int (long unsigned int, long unsigned int, struct mm_walk *)"

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(down_read_killable, "int (struct rw_semaphore *)"),
	MMOPT_WANT_FUNC(up_read, "void (struct rw_semaphore *)"),
	MMOPT_WANT_FUNC(walk_page_range, RANGE_BTF),
	MMOPT_WANT_FUNC(__walk_page_range, WALK_BTF),
	MMOPT_WANT_FUNC(pagemap_scan_test_walk, WALK_BTF),
	MMOPT_WANT_FUNC(pagemap_scan_pte_hole,
			"int (long unsigned int, long unsigned int, int, struct mm_walk *)"),
	MMOPT_WANT_FUNC(flush_tlb_mm_range, MMOPT_FLUSH_BTF),
	{ .kind = MMOPT_BTF_FUNC, .name = __stringify(MMOPT_UFFD_CLEAR),
	  .proto = MMOPT_UFFD_CLEAR_BTF },
	MMOPT_WANT_MEMBER(struct pagemap_scan_private, arg),
	MMOPT_WANT_MEMBER(struct pm_scan_arg, flags),
	MMOPT_WANT_MEMBER(struct pm_scan_arg, walk_end),
	MMOPT_WANT_MEMBER(struct mm_struct, mm_users),
	MMOPT_WANT_MEMBER(struct mm_struct, mm_mt),
	MMOPT_WANT_MEMBER(struct mm_struct, mmap_lock),
	MMOPT_WANT_MEMBER(struct mm_struct, tlb_flush_pending),
	MMOPT_WANT_SIZE(struct mm_walk_ops),
	MMOPT_WANT_SIZE(struct mm_walk),
	MMOPT_WANT_MEMBER(struct mm_walk, ops),
	MMOPT_WANT_MEMBER(struct mm_walk, mm),
	MMOPT_WANT_MEMBER(struct mm_walk, vma),
	MMOPT_WANT_MEMBER(struct mm_walk, private),
};

/* Walks go without mmap_lock. The sites may be armed without it, to observe. */
static DEFINE_STATIC_KEY_FALSE(fast);
static struct mmopt_callsites sites;

/* How long smaller ones go on under mmap_lock while others wait for it. */
#define PATIENCE_NS	(2 * NSEC_PER_MSEC)

/* In a scan's own copy of its flags, where the kernel has none: once is enough. */
#define PASSED		BIT_ULL(63)

/* The walks under way. A task claims an entry by cmpxchg(), and only it looks inside. */
#define WALKS_SHIFT	6
static struct walk_note {
	struct task_struct *task;
	u64 begin;
	bool elided;	/* without mmap_lock, mm_users pinned */
	bool fell_back;	/* took it for a part nevertheless */
	bool deferring;	/* flushes: it has a VMA or mmap_lock read-locked */
	unsigned long pages;	/* walked */
	unsigned long flush_start, flush_end;	/* end 0: nothing to flush */
} walks[1 << WALKS_SHIFT];

static struct walk_note *find_note(struct task_struct *task)
{
	unsigned int i, first = hash_ptr(current, WALKS_SHIFT);
	struct walk_note *note;

	for (i = 0; i < ARRAY_SIZE(walks); i++) {
		note = &walks[(first + i) % ARRAY_SIZE(walks)];
		if (READ_ONCE(note->task) != task)
			continue;
		if (task || !cmpxchg(&note->task, NULL, current))
			return note;
	}
	return NULL;
}

static void fell_back(struct walk_note *note, enum fallback why)
{
	if (note)
		note->fell_back = true;
	this_cpu_inc(mmopt_path_pagemap.stats.cpu->fallback[why]);
	trace_mmopt_fallback("pagemap", fallback_name[why]);
}

/* Leaves the drain only if no unlock will follow, or none that knows. */
static noinline int pagemap_lock(struct rw_semaphore *sem)
{
	struct mm_struct *mm = container_of(sem, struct mm_struct, mmap_lock);
	struct mmopt_stats *stats = &mmopt_path_pagemap.stats;
	bool on = static_branch_unlikely(&fast);
	struct walk_note *note;
	int err;

	mmopt_enter(&sites.drain);
	mmopt_count(stats, MMOPT_calls, 1);
	note = find_note(NULL);
	if (note) {
		note->begin = ktime_get_ns();
		note->fell_back = false;
		note->pages = 0;
		note->elided = on && mmget_not_zero(mm);
		if (note->elided)
			return 0;
	}
	if (on)
		fell_back(note, note ? FALLBACK_exiting : FALLBACK_crowded);
	err = down_read_killable(sem);
	if (note && !err)
		return 0;
	if (note)
		WRITE_ONCE(note->task, NULL);
	mmopt_count(stats, MMOPT_stock, 1);
	mmopt_leave(&sites.drain);
	return err;
}

static noinline void pagemap_unlock(struct rw_semaphore *sem)
{
	struct mmopt_stats *stats = &mmopt_path_pagemap.stats;
	struct walk_note *note = find_note(current), walk;
	bool taken;

	if (!note) {
		up_read(sem); /* the lock was not ours, or had no note */
		return;
	}
	walk = *note;
	/* All of it has been read: another task may claim it. */
	smp_store_release(&note->task, NULL);
	if (walk.elided)
		mmput(container_of(sem, struct mm_struct, mmap_lock));
	else
		up_read(sem);
	taken = walk.elided && !walk.fell_back;
	mmopt_count(stats, taken ? MMOPT_taken : MMOPT_stock, 1);
	mmopt_count(stats, MMOPT_pages, walk.pages);
	mmopt_count_latency(stats, taken ? MMOPT_HIST_TAKEN : MMOPT_HIST_STOCK,
			    ktime_get_ns() - walk.begin);
	mmopt_leave(&sites.drain);
}

#ifdef CONFIG_MMU_NOTIFIER
/* The kernel's own two calls, for the whole range. */
static noinline int pagemap_notify_start(struct mmu_notifier_range *range)
{
	struct walk_note *note = find_note(current);
	int err = 0;

	mmopt_enter(&sites.drain);
	if (!note || !note->elided)
		err = mmopt_notify_start_range(range);
	mmopt_leave(&sites.drain);
	return err;
}

static noinline void pagemap_notify_end(struct mmu_notifier_range *range)
{
	struct walk_note *note = find_note(current);

	mmopt_enter(&sites.drain);
	if (!note || !note->elided)
		mmopt_notify_end_range(range);
	mmopt_leave(&sites.drain);
}
#endif

/* The kernel's callback has write-protected entries, and has the page table lock. */
static noinline void pagemap_flush(struct mm_struct *mm, unsigned long start, unsigned long end,
				   unsigned int stride_shift, bool freed_tables)
{
	struct walk_note *note = find_note(current);

	mmopt_enter(&sites.drain);
	if (!note || !note->deferring) {
		static_call(k_pagemap_flush)(mm, start, end, stride_shift, freed_tables);
	} else {
		if (!note->flush_end)
			note->flush_start = start;
		note->flush_end = end;
		this_cpu_inc(mmopt_path_pagemap.stats.cpu->extra[EXTRA_deferred]);
	}
	mmopt_leave(&sites.drain);
}

static void defer_flushes(struct walk_note *note, struct mm_struct *mm)
{
	note->flush_end = 0;
	note->deferring = true;
	inc_tlb_flush_pending(mm);
}

static void flush_deferred(struct walk_note *note, struct mm_struct *mm)
{
	if (!note->deferring)
		return;
	note->deferring = false;
	/* Somebody else may have protected what we did not have to. */
	if (mm_tlb_flush_nested(mm)) {
		note->flush_start = 0;
		note->flush_end = TLB_FLUSH_ALL;
	}
	if (note->flush_end) {
		static_call(k_pagemap_flush)(mm, note->flush_start, note->flush_end,
					     PAGE_SHIFT, true);
		this_cpu_inc(mmopt_path_pagemap.stats.cpu->extra[EXTRA_flushes]);
	}
	dec_tlb_flush_pending(mm);
}

/*
 * The kernel's own, which gathers: our count of pending flushes would make it flush all,
 * and is taken back for it, when nothing is pending any more.
 */
static int pagemap_hole(unsigned long addr, unsigned long end, int depth, struct mm_walk *walk)
{
	struct walk_note *note = find_note(current);
	bool deferring = note->deferring && walk->vma;
	int err;

	if (deferring)
		flush_deferred(note, walk->mm);
	err = static_call(k_pagemap_scan_pte_hole)(addr, end, depth, walk);
	if (deferring)
		defer_flushes(note, walk->mm);
	return err;
}

/* Under its own lock, a VMA is left to a writer who waits after so much of it. */
#define PIECE		SZ_32M

/* What of the range is in @walk->vma, under mmap_lock; or its lock, maybe to *@stop only. */
static int walk_vma(struct walk_note *note, struct mm_walk *walk, unsigned long at,
		    unsigned long end, unsigned long *stop)
{
	struct pagemap_scan_private *private = walk->private;
	bool whole = is_vm_hugetlb_page(walk->vma), notified;
	struct mmu_notifier_range range;
	unsigned long next;
	int err = static_call(k_pagemap_scan_test_walk)(at, end, walk);

	if (err)
		return min(err, 0); /* above 0: not of interest */
	notified = private->arg.flags & PM_SCAN_WP_MATCHING &&
		   mmopt_notify_start(&range, walk->mm, at, end);
	do {
		next = whole ? end : min(end, round_down(at, PIECE) + PIECE);
		err = static_call(k___walk_page_range)(at, next, walk);
		if (!err || err == -ENOSPC)
			note->pages += ((err ? private->arg.walk_end : next) - at) >> PAGE_SHIFT;
		at = next;
	} while (!err && at < end && !(stop && mmopt_vma_contended(walk->vma)));
	if (stop)
		*stop = at;
	if (notified)
		mmopt_notify_end_range(&range);
	return err;
}

/*
 * Under mmap_lock: whatever is at @at, and all that is small behind it, but not for
 * long while others wait. *@stop says how far that was.
 */
static int walk_small(struct walk_note *note, struct mm_walk *walk, unsigned long at,
		      unsigned long end, unsigned long *stop)
{
	VMA_ITERATOR(vmi, walk->mm, at);
	unsigned long next, first = at, large = READ_ONCE(large_bytes);
	struct rw_semaphore *sem = &walk->mm->mmap_lock;
	struct vm_area_struct *vma = vma_next(&vmi);
	u64 begin = ktime_get_ns();
	int err;

	do {
		if (!vma || at < vma->vm_start) {
			next = vma ? min(end, vma->vm_start) : end;
			walk->vma = NULL;
			err = static_call(k_pagemap_scan_pte_hole)(at, next, -1, walk);
			continue;
		}
		next = min(end, vma->vm_end);
		if (is_vm_hugetlb_page(vma))
			fell_back(note, FALLBACK_hugetlb);
		else if (next - at >= large && at > first)
			break;
		walk->vma = vma;
		err = walk_vma(note, walk, at, next, NULL);
		vma = vma_next(&vmi);
	} while (at = next, !err && at < end &&
		 !(rwsem_is_contended(sem) && ktime_get_ns() - begin > PATIENCE_NS));
	*stop = at;
	return err;
}

/* The VMA at @at under its lock, if that is worth it; *@missed: a writer has the lock. */
static struct vm_area_struct *lock_large(struct mm_struct *mm, unsigned long at,
					 unsigned long end, bool *missed)
{
	struct vm_area_struct *vma = mmopt_vma_lock(mm, at);

	*missed = !vma;
	if (vma && (min(end, vma->vm_end) - at < READ_ONCE(large_bytes) ||
		    is_vm_hugetlb_page(vma))) {
		vma_end_read(vma);
		vma = NULL;
	}
	return vma;
}

static struct mm_walk_ops scan_ops; /* the kernel's, but for the hole */

static int walk_range(struct walk_note *note, struct mm_walk *walk,
		      unsigned long at, unsigned long end)
{
	struct pagemap_scan_private *private = walk->private;
	bool protect = private->arg.flags & PM_SCAN_WP_MATCHING;
	struct rw_semaphore *sem = &walk->mm->mmap_lock;
	struct vm_area_struct *vma;
	unsigned long next;
	bool missed;
	int err = 0;

	if (protect && !(private->arg.flags & PASSED)) {
		/* For those who pass userfaultfd_clear_vma() and began before us. */
		err = down_read_killable(sem);
		if (!err)
			up_read(sem);
		private->arg.flags |= PASSED;
	}
	for (; at < end && !err; at = next) {
		next = mmopt_vma_next(walk->mm, at, end);
		walk->vma = NULL;
		if (next > at) {
			err = static_call(k_pagemap_scan_pte_hole)(at, next, -1, walk);
			continue;
		}
		vma = lock_large(walk->mm, at, end, &missed);
		if (missed)
			fell_back(note, FALLBACK_vma_lock);
		err = vma ? 0 : down_read_killable(sem);
		if (err)
			break;
		/* The writer is gone: not all of a large one under mmap_lock. */
		if (missed) {
			vma = lock_large(walk->mm, at, end, &missed);
			if (vma)
				up_read(sem);
		}
		if (protect)
			defer_flushes(note, walk->mm);
		walk->vma = vma;
		next = vma ? min(end, vma->vm_end) : end;
		err = vma ? walk_vma(note, walk, at, next, &next) :
			    walk_small(note, walk, at, end, &next);
		flush_deferred(note, walk->mm);
		if (vma)
			vma_end_read(vma);
		else
			up_read(sem);
		this_cpu_inc(mmopt_path_pagemap.stats.cpu->extra[vma ? EXTRA_vmas : EXTRA_batches]);
	}
	return err;
}

static noinline int pagemap_walk(struct mm_struct *mm, unsigned long start,
				 unsigned long end, const struct mm_walk_ops *ops,
				 void *private)
{
	struct mm_walk walk = { .ops = &scan_ops, .mm = mm, .private = private };
	struct walk_note *note = find_note(current);
	int err;

	mmopt_enter(&sites.drain);
	if (note && note->elided)
		err = walk_range(note, &walk, start, end);
	else
		err = static_call(k_walk_page_range)(mm, start, end, ops, private);
	mmopt_leave(&sites.drain);
	return err;
}

/* What userfaultfd_clear_vma() calls: see above. */
static noinline long pagemap_uffd_clear(MMOPT_UFFD_CLEAR_PARAMS)
{
	long ret;

	mmopt_enter(&sites.drain);
	vma_start_write(vma);
	ret = static_call(k_uffd_clear)(MMOPT_UFFD_CLEAR_ARGS);
	mmopt_leave(&sites.drain);
	return ret;
}

static const struct mmopt_role roles[] = {
	{ "unlock", "up_read", pagemap_unlock, 1, 2 },
#ifdef CONFIG_MMU_NOTIFIER
	{ "notify", "__mmu_notifier_invalidate_range_end", pagemap_notify_end, 1, 2 },
	{ "notify", "__mmu_notifier_invalidate_range_start", pagemap_notify_start, 1, 2 },
#endif
	{ "flush", "flush_tlb_mm_range", pagemap_flush, 1, 3 },
	{ "walk", "walk_page_range", pagemap_walk, 1, 1 },
	{ "lock", "down_read_killable", pagemap_lock, 1, 1 },
};

static const char *const region_in[] = {
	"do_pagemap_scan", "pagemap_scan_pmd_entry", "pagemap_scan_thp_entry", NULL
};

static const char *const alien[] = {
	"mmap_", "down_", "up_", "__down_", "__up_", "rwsem_", "vma_", "lock_vma",
	"lock_next_vma", "find_", "mas_", "mtree_", "mt_", "walk_", "__walk",
	"mmu_", "__mmu_", "flush_", "native_flush_", NULL
};

static const struct mmopt_region region = {
	.in = region_in,
	.role = roles,
	.nr_roles = ARRAY_SIZE(roles),
	.alien = alien,
	.harmless = &alien[ARRAY_SIZE(alien) - 1],	/* none */
};

static const struct mmopt_callsite want_sites[] = {
	{ "userfaultfd_clear_vma", __stringify(MMOPT_UFFD_CLEAR), pagemap_uffd_clear, .nr = 1 },
};

static struct mmopt_callsites sites = {
	.want = want_sites,
	.nr_want = ARRAY_SIZE(want_sites),
	.region = &region,
};

static const char *const bypassed[] = {
	"do_pagemap_scan", "walk_page_range", "walk_page_range_mm_unsafe",
	"walk_page_test", "userfaultfd_clear_vma", NULL
};

/* We call two of them directly, one of these also by ours, the rest by the kernel's walker. */
static int check_ops(char *why, size_t why_len)
{
	const struct mm_walk_ops *ops = (void *)mmopt_ksym("pagemap_scan_ops");
	struct mm_walk_ops right;

	memset(&right, 0, sizeof(right));
	right.pmd_entry = ops ? ops->pmd_entry : NULL;
	right.hugetlb_entry = ops ? ops->hugetlb_entry : NULL;
	right.test_walk = (void *)mmopt_ksym("pagemap_scan_test_walk");
	right.pte_hole = (void *)mmopt_ksym("pagemap_scan_pte_hole");
	right.walk_lock = PGWALK_RDLOCK;
	if (!right.pmd_entry || memcmp(ops, &right, sizeof(right))) {
		snprintf(why, why_len, "no pagemap_scan_ops, or it has other operations");
		return -EINVAL;
	}
	scan_ops = right;
	scan_ops.pte_hole = pagemap_hole;
	return 0;
}

static int pagemap_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	int err;

	path->fast = &fast;
	path->sites = &sites;
	err = mmopt_vmalock_init(why, why_len) ?:
	      mmopt_notify_init(why, why_len) ?:
	      mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len) ?:
	      mmopt_verify(want, ARRAY_SIZE(want), why, why_len) ?:
	      check_ops(why, why_len);
	return err ?: mmopt_callsites_init(&sites, why, why_len);
}

#else /* no per-VMA lock or no PAGEMAP_SCAN */

static int pagemap_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	snprintf(why, why_len, "no PAGEMAP_SCAN before 6.7");
	return -EOPNOTSUPP;
}

static const char *const bypassed[] = { NULL };

#endif

static const struct mmopt_path_ops pagemap_ops = { .probe = pagemap_probe };

struct mmopt_path mmopt_path_pagemap = {
	.name = "pagemap",
	.ops = &pagemap_ops,
	.tunables = tunables,
	.bypassed = bypassed,
	.stats = {
		.extra = extra_name,
		.nr_extras = ARRAY_SIZE(extra_name),
		.fallback = fallback_name,
		.nr_fallbacks = ARRAY_SIZE(fallback_name),
	},
};
