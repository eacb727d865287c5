// SPDX-License-Identifier: GPL-2.0
/*
 * The path ksm: ksmd comes to pages, looks at candidates in its trees and merges
 * under the read lock of the VMA at hand, instead of mmap_lock for each of these.
 *
 * Hooks. ksmd works in ksm_scan_thread(), where the functions that take mmap_lock
 * are inlined. Between down_read() and up_read(), a region, it looks a VMA up
 * (mtree_load()) or goes from VMA to VMA (mas_find()), and walks page tables. All
 * these calls are turned to us, there and in what was not inlined. The lock pins
 * mm_users only; the lookup, or the step to the next VMA, takes a VMA lock; the
 * unlock lets go of it. Whatever lies between is the kernel's code.
 *
 * Why no region is half ours. All of this runs in ksmd under ksm_thread_mutex, and
 * no region extends beyond a hold of it; the sites are turned under that mutex. It
 * also protects "hold". And whether a region is elided is decided once, at its lock:
 * the other replacements do what stock does unless "hold" says otherwise.
 *
 * What outlasts a region: the pin, until ksmd turns to another process or gives
 * ksm_thread_mutex back, a call that is turned too. And the VMA after a look at a page,
 * until the next region: a search in a tree is a chain of such looks, between which
 * ksmd compares, and sleeps in cond_resched() at most. A writer that waits is seen
 * at the next look; break_cow(), which takes mmap_lock, drops the VMA.
 *
 * Why a VMA read lock and a pin of mm_users are enough.
 *  - The mm. ksmd has a reference to the struct only (mm_count). In stock, the
 *    process may exit meanwhile, and exit_mmap() waits for ksmd by the mmap_lock
 *    that __ksm_exit() takes for a moment. Nobody waits for a reader of a VMA, and
 *    a lockless lookup in a tree that is taken down walks freed memory; to test
 *    mm_users and look up after that, as ksm_test_exit() invites to, has that race.
 *    So mm_users is raised, which fails for an mm that is exiting (that one is left to
 *    stock code), and dropped by mmput_async(): exit_mmap() in ksmd would come back to
 *    KSM. So a process may still have its memory when its parent is told of its end, as
 *    when /proc is read. Where nobody but us is left, walks end as in stock.
 *    A new mm comes to KSM's lists when its tree is complete (dup_mmap() calls
 *    ksm_fork() after mt_set_in_rcu()) or grows in the normal way (exec).
 *  - The VMA. Its range, flags, file, pgoff and a set anon_vma change under its write
 *    lock, which waits for us: munmap, mremap, mprotect, mlock, split, merge, growth,
 *    MADV_*, prctl, fork of the parent until it has flushed, soft-dirty, collapse. So
 *    does MADV_UNMERGEABLE before it breaks COW, hence nothing is merged behind it.
 *  - Page tables. Those above the last level go with the VMA; the last level can go
 *    under RCU (retract_page_tables(), PT_RECLAIM), here as in stock: walkers map
 *    it by pte_offset_map_lock() and look again.
 *  - Everyone else. What held mmap_lock for reading never was kept off by ksmd's, nor
 *    faults and MADV_DONTNEED under VMA locks, rmap, GUP-fast, the OOM reaper: page
 *    lock, page table lock and the count of references arbitrate, as in reclaim,
 *    which holds neither lock. mm_tlb_flush_pending() is asked under the page table
 *    lock. Mmu notifiers, allocations and folio locks come under a VMA lock in faults.
 *  - KSM's own lists. Stock drops an mm with nothing mergeable from them after it has
 *    gone through all VMAs in one hold of mmap_lock, which keeps out MADV_MERGEABLE
 *    and mmap() that see the mm listed. A lockless pass proves nothing: if it began at
 *    address 0 and has come to no VMA, mmap_lock is taken and stock's mas_find() goes
 *    through all of them again. A pass that began elsewhere or came to a VMA leaves
 *    ksm_scan.address above 0, with which stock never drops an mm. A VMA missed in
 *    a lockless step, just being made or moved, is found by the next scan.
 *  - run=2, sysfs writers and memory hot-remove take ksm_thread_mutex.
 *
 * Why replaced pages may stay in TLBs for a while. A merge flushes the address when
 * it write-protects a page, and again when the merged page has replaced it. Only
 * the second flush is put off, for up to 32 pages, or until ksmd turns away from
 * the process: what it serves is that nobody reads a page that has been freed.
 *  - Each page keeps a reference till then. Nor does its content change: it is mapped
 *    read-only at most, here since the first flush; another process that has it as
 *    well does not own it, and to write in it needs the only reference.
 *  - The old entry gives the same bytes and no more rights than the new one. Whoever
 *    takes rights from that, or puts another page there, flushes the address before
 *    he relies on it. A merged page is never made writable: a write copies it.
 *  - GUP goes by page tables, KVM by notifiers; devices (SVA) are in the flush.
 *  - That a call is the second one is known by its address: a region merges one page,
 *    and only a call that finds what the first has flushed, still read-only and clean, is
 *    put off. The first cannot be: COW would miss writes through a writable old entry.
 *
 * mmap_lock is taken as before for an mm that is exiting, without a VMA lock (a gap, or
 * a writer at work), for the last look above, and by break_cow(), since it faults.
 * Order: never mmap_lock while holding a VMA lock. The unlock may run under
 * ksm_mmlist_lock, so it does not sleep. The tracepoints of mmap_lock fire for elided
 * locks too. Latencies are not measured: two clock reads are dear for a page.
 */
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/pagewalk.h>
#include <linux/sched/mm.h>

#include "../compat.h"
#include "../hook/hook.h"
#include "../ksym.h"
#include "../path.h"
#include "../pgtable.h"
#include "../trace.h"
#include "../vmalock.h"
#include "../walk.h"

enum extra { MMOPT_KSM_COUNTERS(MMOPT_AS_EXTRA) };

static const char *const extra_name[] = { MMOPT_KSM_COUNTERS(MMOPT_AS_NAME) };

enum fallback { MMOPT_KSM_FALLBACKS(MMOPT_AS_FALLBACK) };

static const char *const fallback_name[] = { MMOPT_KSM_FALLBACKS(MMOPT_AS_NAME) };

#if defined(CONFIG_PER_VMA_LOCK) && MMOPT_KSM_FOLIO_WALK

pte_t proto_clear_flush(struct vm_area_struct *vma, unsigned long addr, pte_t *ptep);

MMOPT_DEFINE_KFUNC(folio_walk_start, folio_walk_start);
MMOPT_DEFINE_KFUNC(vm_normal_page, vm_normal_page);
MMOPT_DEFINE_KFUNC(vm_normal_page_pmd, vm_normal_page_pmd);
DEFINE_STATIC_CALL_NULL(k_ksm_walk, walk_page_range_vma);
DEFINE_STATIC_CALL_NULL(k_pte_map_lock, MMOPT_PTE_MAP_LOCK);
DEFINE_STATIC_CALL_NULL(k_ptep_clear_flush, proto_clear_flush);
DEFINE_STATIC_CALL_NULL(k_ksm_flush, proto_flush);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(folio_walk_start),
	MMOPT_KFUNC(vm_normal_page),
	MMOPT_KFUNC(vm_normal_page_pmd),
	MMOPT_KFUNC_AS("walk_page_range_vma", k_ksm_walk),
	MMOPT_KFUNC_AS(__stringify(MMOPT_PTE_MAP_LOCK), k_pte_map_lock),
	MMOPT_KFUNC_AS("ptep_clear_flush", k_ptep_clear_flush),
	MMOPT_KFUNC_AS("flush_tlb_mm_range", k_ksm_flush),
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(down_read, "void (struct rw_semaphore *)"),
	MMOPT_WANT_FUNC(up_read, "void (struct rw_semaphore *)"),
	MMOPT_WANT_FUNC(mutex_unlock, "void (struct mutex *)"),
	MMOPT_WANT_FUNC(mtree_load, "void * (struct maple_tree *, long unsigned int)"),
	MMOPT_WANT_FUNC(mas_find, "void * (struct ma_state *, long unsigned int)"),
	MMOPT_WANT_FUNC(walk_page_range_vma, MMOPT_WALK_BTF),
	MMOPT_WANT_FUNC(folio_walk_start, MMOPT_FOLIO_WALK_BTF),
	MMOPT_WANT_FUNC(vm_normal_page,
			"struct page * (struct vm_area_struct *, long unsigned int, pte_t)"),
	MMOPT_WANT_FUNC(vm_normal_page_pmd,
			"struct page * (struct vm_area_struct *, long unsigned int, pmd_t)"),
	{ .kind = MMOPT_BTF_FUNC, .name = __stringify(MMOPT_PTE_MAP_LOCK),
	  .proto = "pte_t * (struct mm_struct *, pmd_t *, long unsigned int, spinlock_t **)" },
	MMOPT_WANT_FUNC(ptep_clear_flush,
			"pte_t (struct vm_area_struct *, long unsigned int, pte_t *)"),
	MMOPT_WANT_FUNC(flush_tlb_mm_range, MMOPT_FLUSH_BTF),
	MMOPT_WANT_MEMBER(struct mm_struct, mm_users),
	MMOPT_WANT_MEMBER(struct mm_struct, mm_mt),
	MMOPT_WANT_MEMBER(struct mm_struct, mmap_lock),
	MMOPT_WANT_MEMBER(struct ma_state, tree),
	MMOPT_WANT_MEMBER(struct ma_state, index),
	MMOPT_WANT_SIZE(struct ma_state),
	MMOPT_WANT_SIZE(struct mm_walk_ops),
	MMOPT_WANT_MEMBER(struct mm_walk_ops, pmd_entry),
	MMOPT_WANT_ENUM(enum page_walk_lock, PGWALK_RDLOCK, PGWALK_RDLOCK),
	MMOPT_WANT_WALK,
	MMOPT_WANT_FOLIO_WALK,
};

/* Regions are elided. The sites may be armed without it, to observe. */
static DEFINE_STATIC_KEY_FALSE(fast);
static struct mmopt_callsites sites;

/* What ksmd holds, under ksm_thread_mutex. */
static struct {
	enum { NOTHING, PINNED, LOCKED } mode; /* of the region; LOCKED: mmap_lock after all */
	struct mm_struct *mm;		/* mm_users pinned, or NULL */
	struct vm_area_struct *vma;	/* read-locked, or NULL */
	bool found;			/* this region has got a VMA */
	bool keep;			/* it only looked at a page */
	bool stepping;			/* mas_find() has been called */
	unsigned long from;		/* where the next VMA is looked for */
	unsigned long flushed;		/* address whose PTE this region has flushed, or 1 */
	unsigned long low, high;	/* where replaced pages may still be in a TLB */
	struct page *replaced[32];	/* these */
	unsigned int nr_replaced;
} hold;

/* The first time since the path was switched on is told. */
static void impossible(const char *what)
{
	if (READ_ONCE(mmopt_path_ksm.state) != MMOPT_STATE_tripped)
		mmopt_path_trip(&mmopt_path_ksm, what);
}

static void fell_back(enum fallback why)
{
	this_cpu_inc(mmopt_path_ksm.stats.cpu->fallback[why]);
	trace_mmopt_fallback("ksm", fallback_name[why]);
}

static void drop_vma(void)
{
	if (hold.vma)
		vma_end_read(hold.vma);
	hold.vma = NULL;
}

static void flush_replaced(void)
{
	if (!hold.nr_replaced)
		return;
	static_call(k_ksm_flush)(hold.mm, hold.low, hold.high, PAGE_SHIFT, false);
	while (hold.nr_replaced)
		put_page(hold.replaced[--hold.nr_replaced]);
}

static void let_go(void)
{
	drop_vma();
	flush_replaced();
	if (hold.mm)
		mmput_async(hold.mm);
	hold.mm = NULL;
}

static void lock_counted(struct rw_semaphore *sem)
{
	this_cpu_inc(mmopt_path_ksm.stats.cpu->extra[EXTRA_mmap_locks]);
	down_read(sem);
}

/* For break_cow(), which faults, and often in another process. */
static noinline void ksm_lock_for_fault(struct rw_semaphore *sem)
{
	let_go();
	lock_counted(sem);
}

static noinline void ksm_leave(struct mutex *mutex)
{
	let_go();
	hold.mode = NOTHING;
	mutex_unlock(mutex);
}

/* Nobody but us uses the mm any more: what ksm_test_exit() would say. */
static bool exiting(const struct mm_struct *mm)
{
	return atomic_read(&mm->mm_users) == 1;
}

/* The last pin will do, if there is one and the process has not exited since. */
static bool pin(struct mm_struct *mm)
{
	if (hold.mm == mm && !exiting(mm))
		return true;
	let_go();
	if (mmget_not_zero(mm))
		hold.mm = mm;
	return hold.mm;
}

static noinline void ksm_lock(struct rw_semaphore *sem)
{
	mmopt_count(&mmopt_path_ksm.stats, MMOPT_calls, 1);
	if (hold.mode != NOTHING) {
		impossible("ksmd locks again what it has not unlocked");
		drop_vma();
	} else if (!static_branch_likely(&fast)) {
		let_go();
	} else {
		if (pin(container_of(sem, struct mm_struct, mmap_lock))) {
			hold.mode = PINNED;
			hold.found = false;
			hold.keep = false;
			hold.stepping = false;
			hold.flushed = 1;
			return;
		}
		fell_back(FALLBACK_exiting);
	}
	mmopt_count(&mmopt_path_ksm.stats, MMOPT_stock, 1);
	lock_counted(sem);
}

static noinline void ksm_unlock(struct rw_semaphore *sem)
{
	if (hold.mode == NOTHING || sem != &hold.mm->mmap_lock) {
		if (hold.mode != NOTHING)
			impossible("ksmd unlocks what it has not locked");
		up_read(sem);
		return;
	}
	/* Between regions ksmd may give the CPU away; no writer shall wait for that. */
	if (!hold.vma || !hold.keep || need_resched() || mmopt_vma_contended(hold.vma))
		drop_vma();
	if (hold.mode == LOCKED)
		up_read(sem);
	mmopt_count(&mmopt_path_ksm.stats, hold.mode == LOCKED ? MMOPT_stock : MMOPT_taken, 1);
	hold.mode = NOTHING;
}

/* The rest of the region is stock. */
static void lock_after_all(enum fallback why)
{
	drop_vma();
	flush_replaced(); /* a writer may wait for memory */
	fell_back(why);
	lock_counted(&hold.mm->mmap_lock);
	hold.mode = LOCKED;
}

/* The VMA that was kept will do, unless somebody waits for it. */
static struct vm_area_struct *lock_vma(unsigned long addr)
{
	if (!hold.vma || addr < hold.vma->vm_start || addr >= hold.vma->vm_end ||
	    mmopt_vma_contended(hold.vma)) {
		drop_vma();
		hold.vma = mmopt_vma_lock(hold.mm, addr);
	}
	hold.found = hold.vma;
	return hold.vma;
}

static noinline void *ksm_lookup(struct maple_tree *mt, unsigned long addr)
{
	struct vm_area_struct *vma;

	if (hold.mode != PINNED)
		return mtree_load(mt, addr);
	if (mt != &hold.mm->mm_mt || hold.found) {
		impossible("ksmd looks for a second VMA, or in another process");
		return NULL;
	}
	vma = lock_vma(addr);
	if (vma)
		return vma;
	lock_after_all(FALLBACK_vma_lock);
	return mtree_load(mt, addr);
}

/*
 * The start, from @from on, of the next VMA that seems mergeable, or ULONG_MAX.
 * What the tree says is good for a guess only, which the VMA lock puts right.
 */
static unsigned long next_mergeable(struct mm_struct *mm, unsigned long from,
				    unsigned long max)
{
	MA_STATE(mas, &mm->mm_mt, from, from);
	unsigned long at = ULONG_MAX;
	struct vm_area_struct *vma;

	rcu_read_lock();
	do {
		vma = mas_find(&mas, max);
	} while (vma && !(READ_ONCE(vma->vm_flags) & VM_MERGEABLE));
	if (vma)
		at = max(from, mas.index);
	rcu_read_unlock();
	return at;
}

static noinline void *ksm_next(struct ma_state *mas, unsigned long max)
{
	unsigned long at;

	if (hold.mode == NOTHING)
		return mas_find(mas, max);
	if (mas->tree != &hold.mm->mm_mt) {
		impossible("ksmd steps through another process");
		return NULL;
	}
	if (hold.mode == LOCKED)
		return exiting(hold.mm) ? NULL : mas_find(mas, max);
	if (hold.stepping && hold.vma) {
		hold.from = hold.vma->vm_end;
	} else {
		hold.from = mas->index;
		hold.stepping = true;
		/* Not the first page of a process: most often the VMA is there. */
		if (hold.from && lock_vma(hold.from))
			return hold.vma;
	}

	drop_vma();
	at = exiting(hold.mm) ? ULONG_MAX : next_mergeable(hold.mm, hold.from, max);
	if (at != ULONG_MAX) {
		/* The first VMA that stock gets decides whether the mm stays listed. */
		if (lock_vma(at) && (hold.from || hold.vma->vm_flags & VM_MERGEABLE))
			return hold.vma;
		lock_after_all(FALLBACK_vma_lock);
	} else if (!hold.from) {
		/* Stock may drop the mm from KSM's lists: see above. */
		lock_after_all(FALLBACK_nothing);
	} else {
		return NULL;
	}
	mas_set(mas, hold.from);
	return mas_find(mas, max);
}

/* ksmd's own operations, of which our walk knows pmd_entry(). */
static const struct mm_walk_ops *stock_ops;

static const char *const bypassed[] = {
	"ksm_scan_thread", "try_to_merge_with_ksm_page", "break_cow", "folio_walk_start",
	"walk_page_range_vma", "__walk_page_range", "walk_pgd_range", "walk_p4d_range",
	"walk_pud_range", "walk_pmd_range", "ptep_clear_flush", NULL
};

static noinline int ksm_walk(struct vm_area_struct *vma, unsigned long start,
			     unsigned long end, const struct mm_walk_ops *ops,
			     void *private)
{
	int found = 0;

	if (hold.mode == PINNED && (vma != hold.vma || ops != stock_ops))
		impossible("ksmd walks what it has not locked");
	else if (hold.mode == PINNED && !exiting(hold.mm))
		found = mmopt_walk_vma(vma, start, end, ops, private);
	else if (hold.mode == NOTHING || !exiting(hold.mm))
		found = static_call(k_ksm_walk)(vma, start, end, ops, private);

	if (found < 0)
		impossible("a mergeable VMA has a bad or huge entry above the PMD");
	if (found <= 0)
		return 0;
	this_cpu_inc(mmopt_path_ksm.stats.cpu->extra[EXTRA_scanned]);
	if (hold.mode == PINNED)
		mmopt_count(&mmopt_path_ksm.stats, MMOPT_pages, 1);
	return found;
}

/* What folio_walk_start() does without flags, for which it insists on mmap_lock. */
static struct folio *walk_to_folio(struct folio_walk *fw, struct vm_area_struct *vma,
				   unsigned long addr)
{
	pmd_t *pmdp = mmopt_find_pmd(vma->vm_mm, addr);
	pmd_t pmd = pmdp ? pmdp_get_lockless(pmdp) : __pmd(0);

	if (pmd_none(pmd))
		return NULL;
	fw->page = NULL;
	if (!pmd_present(pmd) || pmd_leaf(pmd)) {
		fw->level = FW_LEVEL_PMD;
		fw->pmdp = pmdp;
		fw->ptl = pmd_lock(vma->vm_mm, pmdp);
		pmd = READ_ONCE(*pmdp);
		fw->pmd = pmd;
		if (pmd_present(pmd) && pmd_leaf(pmd))
			fw->page = static_call(k_vm_normal_page_pmd)(vma, addr, pmd);
		if (fw->page) {
			fw->page += (addr & ~PMD_MASK) >> PAGE_SHIFT;
			__release(fw->ptl);
			return page_folio(fw->page);
		}
		spin_unlock(fw->ptl);
		if (!pmd_present(pmd) || pmd_leaf(pmd))
			return NULL;
	}

	fw->level = FW_LEVEL_PTE;
	fw->ptep = static_call(k_pte_map_lock)(vma->vm_mm, pmdp, addr, &fw->ptl);
	if (!fw->ptep)
		return NULL;
	fw->pte = ptep_get(fw->ptep);
	if (pte_present(fw->pte))
		fw->page = static_call(k_vm_normal_page)(vma, addr, fw->pte);
	if (fw->page)
		return page_folio(fw->page);
	__acquire(RCU);		/* by k_pte_map_lock, as was the lock */
	__acquire(fw->ptl);
	pte_unmap_unlock(fw->ptep, fw->ptl);
	return NULL;
}

static noinline struct folio *ksm_folio_walk(struct folio_walk *fw,
					     struct vm_area_struct *vma,
					     unsigned long addr,
					     folio_walk_flags_t flags)
{
	if (hold.mode != PINNED)
		return static_call(k_folio_walk_start)(fw, vma, addr, flags);
	if (vma != hold.vma || flags || addr < vma->vm_start || addr >= vma->vm_end) {
		impossible("ksmd looks for a page where it has not locked");
		return NULL;
	}
	hold.keep = true;
	return walk_to_folio(fw, vma, addr);
}

/* The first call of a region write-protects, the second replaces: under the PTL. */
static noinline pte_t ksm_clear_flush(struct vm_area_struct *vma, unsigned long addr,
				      pte_t *ptep)
{
	pte_t pte = ptep_get(ptep);

	if (hold.mode == NOTHING || vma->vm_mm != hold.mm || addr != hold.flushed ||
	    !pte_present(pte) || pte_write(pte) || pte_dirty(pte) ||
	    PageAnonExclusive(pte_page(pte))) {
		hold.flushed = addr;
		return static_call(k_ptep_clear_flush)(vma, addr, ptep);
	}
	if (hold.nr_replaced == ARRAY_SIZE(hold.replaced))
		flush_replaced();
	hold.low = hold.nr_replaced ? min(hold.low, addr) : addr;
	hold.high = max(hold.nr_replaced ? hold.high : 0, addr + PAGE_SIZE);
	hold.replaced[hold.nr_replaced] = pte_page(pte);
	get_page(hold.replaced[hold.nr_replaced++]);
	this_cpu_inc(mmopt_path_ksm.stats.cpu->extra[EXTRA_flushes_put_off]);
	return ptep_get_and_clear(vma->vm_mm, addr, ptep);
}

/* Of Debian's kernels, and of one with KASAN and lockdep, which has more unlocks. */
static const struct mmopt_role roles[] = {
	{ "leave", "mutex_unlock", ksm_leave, 1, 2 },
	{ "unlock", "up_read", ksm_unlock, 4, 20 },
	{ "flush", "ptep_clear_flush", ksm_clear_flush, 2, 2 },
	{ "walk", "folio_walk_start", ksm_folio_walk, 1, 1 },
	{ "walk", "walk_page_range_vma", ksm_walk, 1, 1 },
	{ "step", "mas_find", ksm_next, 1, 1 },
	{ "lookup", "mtree_load", ksm_lookup, 1, 3 },
	{ "lock", "down_read", ksm_lock, 4, 4 },
};

static const char *const region_in[] = {
	"ksm_scan_thread", "try_to_merge_with_ksm_page", "try_to_merge_with_zero_page",
	"get_mergeable_page", "find_mergeable_vma", "scan_get_next_rmap_item",
	"unstable_tree_search_insert", "cmp_and_merge_page", "ksm_do_scan", "replace_page",
	"try_to_merge_one_page", "write_protect_page", "write_protect_page.constprop.0", NULL
};

static const char *const alien[] = {
	"mmap_", "down_", "up_", "__down_", "__up_", "rwsem_", "vma_", "lock_vma",
	"lock_next_vma", "find_", "mas_", "mtree_", "mt_", "walk_", "folio_walk", NULL
};

static const struct mmopt_region region = {
	.in = region_in,
	.role = roles,
	.nr_roles = ARRAY_SIZE(roles),
	.alien = alien,
	.harmless = (const char *const []){ "vma_pgtable_walk_end", NULL },
};

static const struct mmopt_callsite break_cow_site = {
	"break_cow", "down_read", ksm_lock_for_fault, .nr = 1
};

static struct mmopt_callsites sites = {
	.want = &break_cow_site,
	.nr_want = 1,
	.region = &region,
	.guard = "ksm_thread_mutex",
};

/* Our walkers know of pmd_entry() only, and hand over no other lock. */
static int check_ops(char *why, size_t why_len)
{
	struct mm_walk_ops right;

	stock_ops = (const struct mm_walk_ops *)mmopt_ksym("ksm_next_page_ops");
	if (!stock_ops) {
		snprintf(why, why_len, "no symbol ksm_next_page_ops");
		return -ENOENT;
	}
	memset(&right, 0, sizeof(right));
	right.pmd_entry = stock_ops->pmd_entry;
	right.walk_lock = PGWALK_RDLOCK;
	if (!right.pmd_entry || memcmp(stock_ops, &right, sizeof(right))) {
		snprintf(why, why_len, "ksm_next_page_ops has more than pmd_entry");
		return -EINVAL;
	}
	return 0;
}

static int ksm_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	int err;

	path->fast = &fast;
	path->sites = &sites;
	err = mmopt_vmalock_init(why, why_len);
	if (!err)
		err = mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);
	if (!err)
		err = mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
	if (!err)
		err = check_ops(why, why_len);
	return err ?: mmopt_callsites_init(&sites, why, why_len);
}

#else /* no per-VMA lock, or another lookup of pages */

static int ksm_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	snprintf(why, why_len, "no per-VMA lock, or another KSM: needs Linux 6.12");
	return -EOPNOTSUPP;
}

static const char *const bypassed[] = { NULL };

#endif

static const struct mmopt_path_ops ksm_ops = { .probe = ksm_probe };

struct mmopt_path mmopt_path_ksm = {
	.name = "ksm",
	.ops = &ksm_ops,
	.bypassed = bypassed,
	.stats = {
		.extra = extra_name,
		.nr_extras = ARRAY_SIZE(extra_name),
		.fallback = fallback_name,
		.nr_fallbacks = ARRAY_SIZE(fallback_name),
	},
};
