// SPDX-License-Identifier: GPL-2.0
/*
 * The path copy: fork copies the page tables of large private mappings in a short
 * loop, where stock asks for every rare case at each page, and on several CPUs.
 *
 * Hook. The one call of copy_page_range(), which fork makes for each VMA, is turned
 * to us. Small VMAs, and those without anon_vma, of which stock copies nothing, cost
 * two compares. Of any other we list the page tables, some hundred at a time, and make
 * the child's, which can fail; then copy what is listed, which cannot; then let stock
 * do what is left, each stretch by a call with a VMA on the stack that covers no more.
 *
 * Helpers (crew.c) share the middle part, one page table at a time. They allocate
 * nothing: memory, with its cgroup, policy, reclaim and failure, is the forking task's
 * business, before, and so is stock code, after. It waits for them, so what the caller
 * holds is held for them; nothing here asks who holds it. Two tables have nothing in
 * common but counters and, at times, pages: those are atomic.
 *
 * What is copied here: present entries of order-0 pages, anonymous (KSM's too) or of
 * a file, of single pages of a file's large folio, and of the zero page. At any other
 * (swapped, migrating or poisoned pages, markers, pages that may be pinned, runs of a
 * large folio) we stop, stock copies from exactly there to the end of a small block,
 * twice as large a one each time that this leads to little, and we go on. Huge entries
 * in place of a table are stock's. Every page is copied exactly once, by one or the other.
 *
 * Locks. The caller, dup_mmap(), holds mmap_lock of both for writing, and where
 * there are VMA locks has written-locked the parent's. So there are no faults, zaps,
 * mprotect, collapse of anonymous memory or userfaultfd in the range, on either side,
 * and the child runs nowhere. Others come by rmap and take the page table locks
 * (reclaim, migration, KSM, truncate), which we hold, the child's first, as stock.
 *  - Page tables stay: those of files are retracted without mmap_lock, but never in
 *    a VMA that has an anon_vma, and both have one. A neighbour may share the first
 *    and the last, and free one only if it has all of it. A huge entry can become a
 *    table at any time, but not the reverse; we ask again when we copy.
 *  - A table's locks are held for its 512 entries, where stock looks after every few
 *    whether somebody waits: rmap can, nobody else.
 *  - The order of rmap (the child's VMA after the parent's) is that of VMAs, not of
 *    pages, and stays what dup_mmap() made it.
 *
 * Pins. GUP-fast, lockless, must not pin a page that becomes shared here: it backs
 * off if write_protect_seq is odd, or not the same after it has its references. So
 * within a write section there are no new pins: whether the mm has any is asked
 * once, behind a full barrier, and if it has, each page is asked by the same inline
 * as in stock. Stock has one section for a VMA and we several, since its calls for
 * what is left bring their own and they must not nest (the count would look even
 * in the middle). The forking task alone begins and ends them. In between, what has
 * been copied is read-only and not exclusive, so that GUP-fast leaves it to the slow
 * path, which waits for mmap_lock; what has not can be pinned, and the next section
 * finds the pin.
 *
 * Copying on write. The parent's entry loses its write bit atomically, unless hardware
 * has set all other bits of it that it can. Until dup_mmap() flushes the TLB, under the
 * same mmap_lock, threads may write through stale entries, as with stock: the child
 * does not run yet.
 *
 * The accounting is stock's: references, mapcounts, PG_anon_exclusive and rss by kind
 * change as there, under both locks; the forking task makes page tables, so its memory
 * cgroup is charged and its policy places them; soft-dirty bits are inherited; those of
 * userfaultfd cleared, as the VMA is not registered. There is no trace event rss_stat.
 *
 * Only making a table fails, with -ENOMEM, like stock's; dup_mmap() unmaps what has
 * been copied. Fatal signals are its business.
 *
 * The VMA on the stack is the parent's with another start, end and offset. Stock reads
 * it, also where it splits a huge page that is pinned, and keeps no reference: what gets
 * linked anywhere is the child's, which stays whole. Huge pages are never cut by it.
 *
 * Left to stock as a whole: hugetlb, PFNMAP, MIXEDMAP and DAX, whose entries may be no
 * ordinary pages; mappings that are not copied on write; those registered with
 * userfaultfd, whose bits the child may inherit; an mm that has mmu notifiers, which
 * are not exported to bracket the copy with. Registering one takes mmap_lock.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/rmap.h>
#include <linux/slab.h>
#include <linux/userfaultfd_k.h>

#include "../compat.h"
#include "../crew.h"
#include "../hook/hook.h"
#include "../ksym.h"
#include "../path.h"
#include "../pgtable.h"
#include "../trace.h"

enum fallback {
	MMOPT_COPY_FALLBACKS(MMOPT_AS_FALLBACK)
	NO_FALLBACK
};

static const char *const fallback_name[] = { MMOPT_COPY_FALLBACKS(MMOPT_AS_NAME) };

enum extra { MMOPT_COPY_COUNTERS(MMOPT_AS_EXTRA) };

static const char *const extra_name[] = { MMOPT_COPY_COUNTERS(MMOPT_AS_NAME) };

/* How many tables are listed at a time: in a page, or on the stack. */
#define LIST_MANY	(PAGE_SIZE / sizeof(unsigned long))
#define LIST_FEW	16

/* What is said of a listed page table, in the low bits of where its copy has got to. */
#define DONE		1UL	/* nothing is left */
#define STEP		2UL	/* stock goes on to a multiple of BLOCK, doubled for each */
#define STEPS		(7 * STEP)
#define LEAVE		(5 * STEP)	/* the rest is for stock */

/* How much stock copies of a table, at first, before we try again. */
#define BLOCK		(PMD_SIZE / 32)

/* The copy of one VMA. */
struct job {
	struct vm_area_struct *dst, *src;	/* the child's, the parent's */
	unsigned long *table;			/* what is listed: */
	unsigned int nr, room;			/* how much is, and can be */
	unsigned int tables;			/* how much of it is for us */
	bool pins;				/* the parent may have pinned pages */
	atomic_long_t copied;			/* bytes of the range, by anybody here */
	unsigned long left;			/* bytes that stock copied */
};

static struct mmopt_callsites sites;
static DEFINE_STATIC_KEY_FALSE(fast);

/* The kernel's highest page frame; entries beyond are corrupt. */
static const unsigned long *highest_pfn;

/* Smaller VMAs are left alone; a helper is asked for each such chunk of a larger one. */
static unsigned long min_bytes = SZ_1M, min_chunk_bytes = SZ_32M;

/* How many copy one VMA at most, the forking task among them. */
static unsigned long threads = 8;

static const struct mmopt_tunable tunables[] = {
	MMOPT_COPY_TUNABLES(MMOPT_TUNABLE)
	{ }
};

int proto_copy(struct vm_area_struct *dst_vma, struct vm_area_struct *src_vma);

MMOPT_DEFINE_KFUNC(copy_page_range, proto_copy);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(copy_page_range),
};

static const char *const bypassed[] = {
	"copy_page_range", "copy_p4d_range", "copy_pud_range", "copy_pmd_range",
	"copy_pte_range", "copy_present_ptes", "copy_present_pte", NULL
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(copy_page_range,
			"int (struct vm_area_struct *, struct vm_area_struct *)"),
	MMOPT_WANT_SIZE(struct vm_area_struct),
	MMOPT_WANT_MEMBER(struct vm_area_struct, vm_start),
	MMOPT_WANT_MEMBER(struct vm_area_struct, vm_end),
	MMOPT_WANT_MEMBER(struct vm_area_struct, vm_pgoff),
	MMOPT_WANT_MEMBER(struct vm_area_struct, anon_vma),
	MMOPT_WANT_MEMBER(struct mm_struct, write_protect_seq),
	MMOPT_WANT_MEMBER(struct mm_struct, rss_stat),
	MMOPT_WANT_ENUM(enum pageflags, PG_anon_exclusive, PG_anon_exclusive),
};

static unsigned long table_end(const struct job *job, unsigned long addr)
{
	return pmd_addr_end(addr, job->src->vm_end);
}

/* As the kernel's, for an order-0 page, which needs less; false if it may be pinned. */
static __always_inline bool dup_anon(const struct job *job, struct folio *folio)
{
	if (unlikely(job->pins))
		return !mmopt_dup_anon(folio, job->dst, job->src);
	if (test_bit(PG_anon_exclusive, mmopt_page_flags(&folio->page)))
		ClearPageAnonExclusive(&folio->page);
	atomic_inc(&folio->_mapcount);
	return true;
}

static void share_file(const struct job *job, struct folio *folio, struct page *page, int *rss)
{
	folio_get(folio);
	mmopt_dup_file(folio, page, job->dst);
	rss[folio_test_swapbacked(folio) ? MM_SHMEMPAGES : MM_FILEPAGES]++;
}

/* One page of a large folio of a file. What maps more of it is cheaper done at once. */
static noinline bool share_large(const struct job *job, const pte_t *src, unsigned long pfn,
				 int *rss)
{
	struct page *page = pfn_to_page(pfn);
	const pte_t *next = src + 1;

	if (folio_test_anon(page_folio(page)) ||
	    (!PAGE_ALIGNED(next) && mmopt_pte_pfn(*next) == pfn + 1))
		return false;
	share_file(job, page_folio(page), page, rss);
	return true;
}

/*
 * Takes what the child's entry will hold: a reference and a mapping of the page.
 * Says whether that could be had here. Both page tables are locked.
 */
static __always_inline bool share(const struct job *job, const pte_t *src, pte_t pte, int *rss)
{
	unsigned long pfn = mmopt_pte_pfn(pte);
	struct folio *folio;
	struct page *page;

	/* nobody counts the zero page */
	if (unlikely(pte_special(pte)))
		return is_zero_pfn(pfn);
	if (unlikely(pfn > *highest_pfn))
		return false;
	page = pfn_to_page(pfn);
	if (unlikely(PageCompound(page)))
		return share_large(job, src, pfn, rss);
	/* what page_folio() would find out once more */
	folio = (struct folio *)page;
	if (unlikely(!folio_test_anon(folio))) {
		share_file(job, folio, page, rss);
		return true;
	}
	folio_get(folio);
	if (!dup_anon(job, folio)) {
		folio_put(folio);
		return false;
	}
	rss[MM_ANONPAGES]++;
	return true;
}

/* Returns where it met an entry that is for stock code, or @end. */
static unsigned long copy_ptes(const struct job *job, pmd_t *dst_pmd, pmd_t *src_pmd,
			       unsigned long addr, unsigned long end)
{
	struct mm_struct *dst_mm = job->dst->vm_mm, *src_mm = job->src->vm_mm;
	spinlock_t *dst_ptl = pte_lockptr(dst_mm, dst_pmd);
	spinlock_t *src_ptl = pte_lockptr(src_mm, src_pmd);
	pte_t *dst = pte_offset_kernel(dst_pmd, addr);
	pte_t *src = pte_offset_kernel(src_pmd, addr);
	int rss[NR_MM_COUNTERS] = {}, kind;

	spin_lock(dst_ptl);
	spin_lock_nested(src_ptl, SINGLE_DEPTH_NESTING);
	for (; addr < end; addr += PAGE_SIZE, dst++, src++) {
		pte_t pte = ptep_get(src);

		if (pte_none(pte))
			continue;
		if (!pte_present(pte) || !share(job, src, pte, rss))
			break;
		if (pte_write(pte))
			pte = mmopt_wrprotect_pte(src_mm, addr, src, pte);
		set_pte_at(dst_mm, addr, dst, mmopt_pte_clear_uffd(pte_mkold(pte)));
	}
	spin_unlock(src_ptl);
	for (kind = 0; kind < NR_MM_COUNTERS; kind++)
		if (rss[kind])
			mmopt_add_rss(dst_mm, kind, rss[kind]);
	spin_unlock(dst_ptl);
	return addr;
}

/* One that is listed; notes how far it got. Also runs in helpers. */
static void copy_listed(void *arg, unsigned int i)
{
	struct job *job = arg;
	unsigned long addr = job->table[i] & PAGE_MASK, reached = addr;
	unsigned long step = job->table[i] & STEPS;
	pmd_t *src, *dst;

	if (step == LEAVE)
		return;
	src = mmopt_find_pmd(job->src->vm_mm, addr);
	dst = mmopt_find_pmd(job->dst->vm_mm, addr);
	if (src && dst && mmopt_is_table(READ_ONCE(*src)) && mmopt_is_table(READ_ONCE(*dst)))
		reached = copy_ptes(job, dst, src, addr, table_end(job, addr));
	atomic_long_add(reached - addr, &job->copied);
	if (reached == table_end(job, addr))
		reached |= DONE;
	else if (reached == addr && (!(addr & ~PMD_MASK) || addr == job->src->vm_start))
		reached |= LEAVE;
	else if (reached - addr < BLOCK)
		reached |= step + STEP;
	job->table[i] = reached;
}

static void copy_tables(struct job *job)
{
	unsigned int helpers = min(job->tables / (READ_ONCE(min_chunk_bytes) >> PMD_SHIFT),
				   READ_ONCE(threads) - 1);
	seqcount_t *seq = &job->src->vm_mm->write_protect_seq;
	unsigned int helped;

	raw_write_seqcount_begin(seq);
	/* pairs with the locked operations of GUP-fast: see above */
	smp_mb();
	job->pins = mmopt_mm_pins(job->src->vm_mm);
	helped = mmopt_crew_do(copy_listed, job, job->nr, helpers);
	raw_write_seqcount_end(seq);
	this_cpu_add(mmopt_path_copy.stats.cpu->extra[EXTRA_helped], helped);
}

static noinline int copy_stock(struct job *job, unsigned long from, unsigned long to)
{
	struct vm_area_struct part = *job->src;

	if (from == to)
		return 0;
	job->left += to - from;
	mmopt_vma_skip(&part, (from - part.vm_start) >> PAGE_SHIFT);
	part.vm_end = to;
	return static_call(k_copy_page_range)(job->dst, &part);
}

/*
 * Lets stock code copy what the listed tables lack next, in as few calls as can be,
 * and keeps listed those of which we may copy more.
 */
static int copy_left(struct job *job)
{
	unsigned long from = 0, to = 0, at, end, step;
	unsigned int i, keep = 0;
	int err = 0;

	for (i = 0; i < job->nr && !err; i++) {
		if (job->table[i] & DONE)
			continue;
		at = job->table[i] & PAGE_MASK;
		if (at != to) {
			err = copy_stock(job, from, to);
			from = at;
		}
		end = table_end(job, at);
		step = job->table[i] & STEPS;
		to = min(ALIGN(at + 1, BLOCK << step / STEP), end);
		if (to != end)
			job->table[keep++] = to | step;
	}
	job->nr = keep;
	job->tables = keep;
	return err ?: copy_stock(job, from, to);
}

/* Up to @end, below one PMD table on either side; returns 0 if memory is short. */
static unsigned long list_pmds(struct job *job, pmd_t *dst, pmd_t *src,
			       unsigned long at, unsigned long end)
{
	for (; at < end && job->nr < job->room; at = pmd_addr_end(at, end), dst++, src++) {
		pmd_t pmd = READ_ONCE(*src);
		bool table = mmopt_is_table(pmd);

		if (pmd_none(pmd))
			continue;
		if (table && pmd_none(*dst) && mmopt_make_ptes(job->dst->vm_mm, dst))
			return 0;
		job->table[job->nr++] = table ? at : at | LEAVE;
		job->tables += table;
	}
	return at;
}

/*
 * Lists what there is from @at on, as much as there is room for, and makes the
 * child's tables for it and above it, just those that stock would make. Returns
 * where it got, or 0 if memory is short.
 */
static unsigned long list_tables(struct job *job, unsigned long at)
{
	unsigned long end = job->src->vm_end, next;
	struct mm_struct *dst_mm = job->dst->vm_mm;
	pud_t *src, pud;
	pmd_t *dst;

	job->nr = 0;
	job->tables = 0;
	for (; at < end && job->nr < job->room; at = next) {
		src = mmopt_find_pud(job->src->vm_mm, at);
		if (!src) {
			next = p4d_addr_end(at, end);
			continue;
		}
		next = pud_addr_end(at, end);
		pud = READ_ONCE(*src);
		if (pud_none(pud)) {
			if (!mmopt_make_pud(dst_mm, at))
				return 0;
		} else if (pud_bad(pud)) {
			next = pmd_addr_end(at, end);
			job->table[job->nr++] = at | LEAVE;
		} else {
			dst = mmopt_make_pmd(dst_mm, at);
			if (!dst)
				return 0;
			next = list_pmds(job, dst, pmd_offset(&pud, at), at, next);
			if (!next)
				return 0;
		}
	}
	return at;
}

static int copy_range(struct job *job)
{
	unsigned long at = job->src->vm_start, end = job->src->vm_end, next;
	unsigned long tables = ((end - 1) >> PMD_SHIFT) - (at >> PMD_SHIFT) + 1;
	unsigned long few[LIST_FEW], *many = NULL;
	int err = 0;

	if (tables > LIST_FEW)
		many = kmalloc_array(min(tables, LIST_MANY), sizeof(*many),
				     GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	job->table = many ?: few;
	job->room = many ? min(tables, LIST_MANY) : LIST_FEW;
	for (; at < end && !err; at = next) {
		next = list_tables(job, at);
		err = next ? 0 : -ENOMEM;
		while (!err && job->nr) {
			if (job->tables)
				copy_tables(job);
			err = copy_left(job);
		}
	}
	kfree(many);
	return err;
}

static enum fallback why_not(struct vm_area_struct *src)
{
	if (src->vm_flags & (VM_HUGETLB | VM_PFNMAP | VM_MIXEDMAP | VM_SHARED) ||
	    !(src->vm_flags & VM_MAYWRITE) || vma_is_dax(src))
		return FALLBACK_special;
	if (userfaultfd_armed(src))
		return FALLBACK_userfaultfd;
	if (mm_has_notifiers(src->vm_mm))
		return FALLBACK_notifiers;
	return NO_FALLBACK;
}

static int copy(struct vm_area_struct *dst, struct vm_area_struct *src)
{
	struct mmopt_stats *stats = &mmopt_path_copy.stats;
	bool on = static_branch_unlikely(&fast);
	enum fallback why = on ? why_not(src) : NO_FALLBACK;
	struct job job = { .dst = dst, .src = src };
	bool taken = on && why == NO_FALLBACK;
	u64 begin = ktime_get_ns();
	unsigned long copied = 0;
	int err;

	if (taken) {
		err = copy_range(&job);
		copied = atomic_long_read(&job.copied);
		taken = copied || !job.left;
		if (!taken)
			why = FALLBACK_unbatched;
	} else {
		err = static_call(k_copy_page_range)(dst, src);
	}
	if (why != NO_FALLBACK) {
		this_cpu_inc(stats->cpu->fallback[why]);
		trace_mmopt_fallback("copy", fallback_name[why]);
	}
	if (taken)
		this_cpu_add(stats->cpu->extra[EXTRA_left], job.left >> PAGE_SHIFT);
	mmopt_count(stats, MMOPT_calls, 1);
	mmopt_count(stats, taken ? MMOPT_taken : MMOPT_stock, 1);
	mmopt_count(stats, MMOPT_pages, copied >> PAGE_SHIFT);
	mmopt_count_latency(stats, taken ? MMOPT_HIST_TAKEN : MMOPT_HIST_STOCK,
			    ktime_get_ns() - begin);
	return err;
}

static noinline int copy_counted(struct vm_area_struct *dst, struct vm_area_struct *src)
{
	int err;

	mmopt_enter(&sites.drain);
	err = copy(dst, src);
	mmopt_leave(&sites.drain);
	return err;
}

/* Both ways out are tail calls: other VMAs must not pass through a frame. */
static noinline int mmopt_copy_page_range(struct vm_area_struct *dst,
					  struct vm_area_struct *src)
{
	if (src->vm_end - src->vm_start < READ_ONCE(min_bytes) || !src->anon_vma)
		return static_call(k_copy_page_range)(dst, src);
	return copy_counted(dst, src);
}

/* dup_mmap() may be inlined into its callers. */
static const char *const callers[] = { "dup_mmap", "dup_mm", "copy_mm", "copy_process" };

static struct mmopt_callsite want_site = {
	.callee = "copy_page_range",
	.replacement = mmopt_copy_page_range,
	.nr = 1,
};

static struct mmopt_callsites sites = {
	.want = &want_site,
	.nr_want = 1,
};

static int copy_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	unsigned int i = 0;
	int err;

	path->fast = &fast;
	path->sites = &sites;
	if (cpu_feature_enabled(X86_FEATURE_XENPV)) {
		/* stock changes many entries with one call of the hypervisor */
		snprintf(why, why_len, "a Xen PV guest, whose page table entries cost calls each");
		return -EOPNOTSUPP;
	}
	while (i < ARRAY_SIZE(callers) - 1 && !mmopt_ksym(callers[i]))
		i++;
	want_site.in = callers[i];
	highest_pfn = (unsigned long *)mmopt_ksym("highest_memmap_pfn");
	if (!highest_pfn) {
		snprintf(why, why_len, "no symbol highest_memmap_pfn");
		return -ENOENT;
	}
	err = mmopt_pgtable_init(why, why_len);
	err = err ?: mmopt_crew_init(why, why_len);
	err = err ?: mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);
	err = err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
	return err ?: mmopt_callsites_init(&sites, why, why_len);
}

static int copy_start(struct mmopt_path *path, char *why, size_t why_len)
{
	return mmopt_crew_start(why, why_len);
}

static void copy_stop(struct mmopt_path *path)
{
	mmopt_crew_stop();
}

static const struct mmopt_path_ops copy_ops = {
	.probe = copy_probe,
	.start = copy_start,
	.stop = copy_stop,
};

struct mmopt_path mmopt_path_copy = {
	.name = "copy",
	.ops = &copy_ops,
	.tunables = tunables,
	.bypassed = bypassed,
	.stats = {
		.fallback = fallback_name,
		.nr_fallbacks = ARRAY_SIZE(fallback_name),
		.extra = extra_name,
		.nr_extras = ARRAY_SIZE(extra_name),
	},
};
