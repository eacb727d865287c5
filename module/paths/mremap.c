// SPDX-License-Identifier: GPL-2.0
/*
 * The path mremap: page tables are moved in batches, with one rmap lock cycle
 * and one TLB flush for many PMDs where stock takes both for each.
 *
 * Hook. The entry of move_page_tables() is taken over for moves of at least
 * two PMDs that are not just whole PUDs. The range is cut into pieces from its
 * start on: pieces that can be batched are moved here, each other piece (unaligned
 * ends, huge pages that do not fit, whole PUDs, which stock moves with one flush
 * each) by stock code, called for that piece. So the return value, how far the
 * move got, is as exact as stock's, and the caller's recovery, which moves that
 * much back, finds what it expects.
 *
 * If old and new address are congruent modulo PMD_SIZE, PMD entries move, those
 * of huge pages among them; else PTEs do, one by one: stock's batches for large
 * folios ask pte_batch_hint(), which on x86 says 1. Tables of the destination are
 * allocated before any lock: reclaim takes the rmap locks.
 *
 * Locks. The caller holds mmap_lock for writing and, where there are VMA locks,
 * has both VMAs write-locked. We add, for each batch, i_mmap_rwsem and
 * anon_vma->root->rwsem for writing, always and not only when need_rmap_locks
 * says that rmap might meet the new place first (CVE-2022-41222), and the page
 * table locks of each PMD in turn, old and new, in the order of their addresses
 * (see mmopt_lock_ptls()). All but the latter are held from the first entry that
 * is cleared until the flush is done.
 *
 * Why one late flush is sound. Until the flush another CPU may use the old
 * translation, or walk the new one. Neither may reach a page that was freed,
 * reused or made read-only meanwhile (CVE-2018-18281), so nobody may take the
 * page away before the flush:
 *  - rmap (reclaim, migration, mkclean, KSM, hwpoison, DAX) and truncate find the
 *    page through i_mmap or the anon_vma tree and wait for the locks; pages that
 *    a parent faulted in hang on another anon_vma with the same root, and the
 *    lock is the root's;
 *  - faults, zaps (munmap, MADV_DONTNEED, guard pages), mprotect, fork, collapse
 *    of anonymous memory, userfaultfd, clear_refs, PAGEMAP_SCAN need mmap_lock or
 *    a VMA lock, and wait for it or go away again (the OOM reaper, NUMA balancing,
 *    MADV_* under VMA locks);
 *  - GUP-fast, lockless, takes a reference to a page that is mapped in either
 *    place. It frees nothing, and rechecks the entry after it has the reference;
 *  - hardware sets accessed and dirty bits in the entry itself: a PMD takes its
 *    PTEs along, and no bit of a PTE gets lost (mmopt_take_pte()), after which the
 *    old translation can only write if its dirty bit was set and so has been moved.
 * The flush covers the old range with freed_tables set, which also drops cached
 * upper levels on lazy CPUs, as stock does.
 *
 * Page tables that stay: since 6.6 retract_page_tables() frees those of files
 * without mmap_lock (CVE-2024-50066), also an empty one just made for the new
 * place. It holds i_mmap_rwsem, so once we have that, an entry that is looked
 * at under it is final; both sides are, and if one has gone, the batch ends there
 * and the next one starts afresh.
 *
 * Huge entries are told from tables under the lock, whatever made them
 * (CVE-2020-10757). The spare page table that an anonymous one has must come along
 * when it goes to another PMD table, or exit finds it missing. Entries that are
 * not present, migration entries for one, are left to stock code.
 *
 * Left to stock code as a whole, before anything has moved:
 *  - one VMA moving within itself (exec's stack, where the places overlap, or
 *    memory never touched that merged with its copy);
 *  - hugetlb, PFNMAP and MIXEDMAP mappings;
 *  - either VMA registered with userfaultfd: with remap events off, the bits must
 *    be cleared on the way (CVE-2025-21696), in both directions of a recovery;
 *  - an mm that has, or once had, mmu notifiers, which are not exported to bracket
 *    a batch with. Registering one takes mmap_lock for writing, so there is none
 *    until the end.
 * KSM pages are unmerged by the caller. Soft-dirty is set by PTE moves and not by
 * PMD moves, as in stock. MREMAP_DONTUNMAP and MREMAP_FIXED differ only in what
 * the caller does before and after.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rmap.h>
#include <linux/userfaultfd_k.h>
#include <asm/pgalloc.h>

#include "../compat.h"
#include "../hook/hook.h"
#include "../ksym.h"
#include "../path.h"
#include "../pgtable.h"
#include "../trace.h"

enum fallback {
	MMOPT_MREMAP_FALLBACKS(MMOPT_AS_FALLBACK)
	NO_FALLBACK
};

static const char *const fallback_name[] = { MMOPT_MREMAP_FALLBACKS(MMOPT_AS_NAME) };

enum extra { MMOPT_MREMAP_COUNTERS(MMOPT_AS_EXTRA) };

static const char *const extra_name[] = { MMOPT_MREMAP_COUNTERS(MMOPT_AS_NAME) };

/* What is left of a move: @from up to @end goes to @to. */
struct move {
	struct vm_area_struct *old, *new;
	unsigned long from, to, end;
	bool need_rmap_locks;
};

static struct mmopt_entry entry;
static DEFINE_STATIC_KEY_FALSE(fast);

/*
 * How much a batch covers, in bytes, which bounds how long the rmap locks are held.
 * Their holder is not rescheduled: others of the tree, who may matter more, wait.
 */
static unsigned long batch_bytes = SZ_64M;

static const struct mmopt_tunable tunables[] = {
	MMOPT_MREMAP_TUNABLES(MMOPT_TUNABLE)
	{ }
};

/* Prototypes of unexported functions; compared with the kernel's BTF. */
pgtable_t proto_withdraw(struct mm_struct *mm, pmd_t *pmd);
void proto_deposit(struct mm_struct *mm, pmd_t *pmd, pgtable_t table);

MMOPT_DEFINE_KFUNC(flush_tlb_mm_range, proto_flush);
MMOPT_DEFINE_KFUNC(pgtable_trans_huge_withdraw, proto_withdraw);
MMOPT_DEFINE_KFUNC(pgtable_trans_huge_deposit, proto_deposit);

#if MMOPT_MOVE_CONTROL

/* As in the kernel's mm/internal.h; compared with its BTF. */
struct pagetable_move_control {
	struct vm_area_struct *old;
	struct vm_area_struct *new;
	unsigned long old_addr;
	unsigned long old_end;
	unsigned long new_addr;
	unsigned long len_in;
	bool need_rmap_locks;
	bool for_stack;
};

unsigned long proto_move(struct pagetable_move_control *pmc);
#define MOVE_PROTO "long unsigned int (struct pagetable_move_control *)"

#else

unsigned long proto_move(MMOPT_MOVE_PARAMS);
#define MOVE_PROTO MMOPT_MOVE_BTF

#endif

MMOPT_DEFINE_KFUNC(move_page_tables, proto_move);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(flush_tlb_mm_range),
	MMOPT_KFUNC(pgtable_trans_huge_withdraw),
	MMOPT_KFUNC(pgtable_trans_huge_deposit),
	MMOPT_KFUNC_PAST(move_page_tables),
};

#define CONTROL(member) MMOPT_WANT_MEMBER(struct pagetable_move_control, member)

/* What batches go around; the hook itself claims move_page_tables(). */
static const char *const bypassed[] = {
	"get_old_pud", "get_old_pmd", "alloc_new_pud", "alloc_new_pmd", "move_pgt_entry",
	"move_normal_pmd", "move_huge_pmd", "move_ptes", NULL
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(flush_tlb_mm_range, MMOPT_FLUSH_BTF),
	MMOPT_WANT_FUNC(pgtable_trans_huge_withdraw,
			"pgtable_t (struct mm_struct *, pmd_t *)"),
	MMOPT_WANT_FUNC(pgtable_trans_huge_deposit,
			"void (struct mm_struct *, pmd_t *, pgtable_t)"),
	MMOPT_WANT_FUNC(move_page_tables, MOVE_PROTO),
#if MMOPT_MOVE_CONTROL
	MMOPT_WANT_SIZE(struct pagetable_move_control),
	CONTROL(old), CONTROL(new), CONTROL(old_addr), CONTROL(old_end), CONTROL(new_addr),
	CONTROL(len_in), CONTROL(need_rmap_locks), CONTROL(for_stack),
#endif
	MMOPT_WANT_SIZE(struct anon_vma),
	MMOPT_WANT_MEMBER(struct anon_vma, root),
	MMOPT_WANT_MEMBER(struct anon_vma, rwsem),
};

/* Lets stock code move the next @len bytes; returns how many it moved. */
static unsigned long move_stock(const struct move *m, unsigned long len)
{
#if MMOPT_MOVE_CONTROL
	struct pagetable_move_control pmc = {
		.old = m->old,
		.new = m->new,
		.old_addr = m->from,
		.old_end = m->from + len,
		.new_addr = m->to,
		.len_in = len,
		.need_rmap_locks = m->need_rmap_locks,
	};

	return static_call(k_move_page_tables)(&pmc);
#else
	return static_call(k_move_page_tables)(MMOPT_MOVE_ARGS(m, len));
#endif
}

static bool is_table(pmd_t pmd)
{
	return pmd_present(pmd) && !pmd_leaf(pmd);
}

static bool congruent(const struct move *m)
{
	return !((m->from ^ m->to) & ~PMD_MASK);
}

static unsigned long up_to(unsigned long addr, unsigned long size)
{
	return size - (addr & (size - 1));
}

/* Nothing at @at: how far does that reach? */
static unsigned long hole(const struct move *m, unsigned long at, const pmd_t *pmd)
{
	unsigned long from = m->from + at;

	return min(up_to(from, pmd ? PMD_SIZE : PUD_SIZE), m->end - from);
}

/* One step of a move: what lies below one PMD entry on either side. */
static unsigned long extent(const struct move *m, unsigned long at)
{
	unsigned long from = m->from + at, to = m->to + at;

	return min3(up_to(from, PMD_SIZE), up_to(to, PMD_SIZE), m->end - from);
}

/*
 * Does stock move this as a whole PUD, with one flush? Where both VMAs begin it
 * rounds down to a PMD, if nothing is in the way.
 */
static bool whole_pud(const struct move *m, unsigned long from, unsigned long to,
		      unsigned long end)
{
	if (MMOPT_REALIGN && congruent(m) && from == m->old->vm_start && to == m->new->vm_start) {
		from &= PMD_MASK;
		to &= PMD_MASK;
	}
	return !((from | to | end) & ~PUD_MASK);
}

enum piece { HOLE, BATCH, STOCK, NOMEM };

/*
 * Who moves what is at @at, and how much of it: @len. For a batch the tables of
 * the destination are made. If they cannot be, the move ends there, as stock's
 * does: asking again would call the OOM killer once more.
 */
static enum piece look(const struct move *m, unsigned long at, unsigned long *len)
{
	unsigned long from = m->from + at, to = m->to + at;
	struct mm_struct *mm = m->old->vm_mm;
	pud_t *pudp = mmopt_find_pud(mm, from);
	pud_t pud = pudp ? READ_ONCE(*pudp) : __pud(0);
	pmd_t pmd, *new;

	*len = hole(m, at, NULL);
	if (pud_none(pud))
		return HOLE;
	if (pud_leaf(pud) || whole_pud(m, from, to, from + *len))
		return STOCK;
	pmd = READ_ONCE(*pmd_offset(&pud, from));
	if (pmd_none(pmd)) {
		*len = min(up_to(from, PMD_SIZE), m->end - from);
		return HOLE;
	}
	*len = extent(m, at);
	if (congruent(m) ? !pmd_present(pmd) || *len < PMD_SIZE : !is_table(pmd))
		return STOCK;
	new = mmopt_make_pmd(mm, to);
	if (!new)
		return NOMEM;
	if (congruent(m))
		return pmd_none(*new) ? BATCH : STOCK;
	if (pmd_none(*new) && mmopt_make_ptes(mm, new))
		return NOMEM;
	return is_table(*new) ? BATCH : STOCK;
}

static void move_huge(const struct move *m, unsigned long at, pmd_t *old, pmd_t *new,
		      bool same_table)
{
	struct mm_struct *mm = m->old->vm_mm;
	pmd_t pmd = pmdp_huge_get_and_clear(mm, m->from + at, old);

	if (!same_table && vma_is_anonymous(m->old)) {
		pgtable_t spare = static_call(k_pgtable_trans_huge_withdraw)(mm, old);

		static_call(k_pgtable_trans_huge_deposit)(mm, new, spare);
	}
	if (IS_ENABLED(CONFIG_MEM_SOFT_DIRTY))
		pmd = pmd_mksoft_dirty(pmd);
	set_pmd_at(mm, m->to + at, new, pmd);
}

static bool move_pmd(const struct move *m, unsigned long at, pmd_t *old, pmd_t *new)
{
	struct mm_struct *mm = m->old->vm_mm;
	spinlock_t *old_ptl = pmd_lockptr(mm, old);
	spinlock_t *new_ptl = pmd_lockptr(mm, new);
	bool movable;
	pmd_t pmd;

	mmopt_lock_ptls(old_ptl, new_ptl);
	pmd = *old;
	movable = pmd_present(pmd) && pmd_none(*new);
	if (movable && pmd_leaf(pmd)) {
		move_huge(m, at, old, new, old_ptl == new_ptl);
	} else if (movable) {
		pmd_clear(old);
		pmd_populate(mm, new, pmd_pgtable(pmd));
	}
	mmopt_unlock_ptls(old_ptl, new_ptl);
	return movable || pmd_none(pmd);
}

static pte_t soft_dirty(pte_t pte)
{
	if (!IS_ENABLED(CONFIG_MEM_SOFT_DIRTY))
		return pte;
	return pte_present(pte) ? pte_mksoft_dirty(pte) : pte_swp_mksoft_dirty(pte);
}

/* With i_mmap_rwsem held, tables that are there stay. */
static bool move_ptes(struct mm_struct *mm, pmd_t *old, unsigned long from,
		      pmd_t *new, unsigned long to, unsigned long len)
{
	unsigned long end = from + len;
	spinlock_t *old_ptl, *new_ptl;
	pte_t *old_pte, *new_pte, pte;

	if (!is_table(READ_ONCE(*old)) || !is_table(READ_ONCE(*new)))
		return pmd_none(*old);
	old_ptl = pte_lockptr(mm, old);
	new_ptl = pte_lockptr(mm, new);
	mmopt_lock_ptls(old_ptl, new_ptl);
	old_pte = pte_offset_kernel(old, from);
	new_pte = pte_offset_kernel(new, to);
	for (; from < end; from += PAGE_SIZE, to += PAGE_SIZE, old_pte++, new_pte++) {
		if (pte_none(READ_ONCE(*old_pte)))
			continue;
		pte = mmopt_take_pte(mm, from, old_pte);
		set_pte_at(mm, to, new_pte, soft_dirty(pte));
	}
	mmopt_unlock_ptls(old_ptl, new_ptl);
	return true;
}

/*
 * Moves the next @len bytes, all of them holes or batchable when looked at.
 * Returns how many it moved; less if a table has gone since.
 */
static unsigned long move_batch(const struct move *m, unsigned long len)
{
	struct address_space *mapping = m->old->vm_file ? m->old->vm_file->f_mapping : NULL;
	struct anon_vma *anon_vma = m->old->anon_vma;
	struct mm_struct *mm = m->old->vm_mm;
	unsigned long at, step;
	pmd_t *old, *new;
	bool moved;

	if (mapping)
		i_mmap_lock_write(mapping);
	if (anon_vma)
		down_write(&anon_vma->root->rwsem);
	for (at = 0; at < len; at += step) {
		old = mmopt_find_pmd(mm, m->from + at);
		if (!old || pmd_none(READ_ONCE(*old))) {
			step = hole(m, at, old);
			continue;
		}
		step = extent(m, at);
		new = mmopt_find_pmd(mm, m->to + at);
		if (!new)
			break;
		moved = congruent(m) ? move_pmd(m, at, old, new) :
			move_ptes(mm, old, m->from + at, new, m->to + at, step);
		if (!moved)
			break;
	}
	/* Also for what reclaim has cleared and not flushed yet. */
	static_call(k_flush_tlb_mm_range)(mm, m->from, m->from + len, PAGE_SHIFT, true);
	if (anon_vma)
		up_write(&anon_vma->root->rwsem);
	if (mapping)
		i_mmap_unlock_write(mapping);
	this_cpu_inc(mmopt_path_mremap.stats.cpu->extra[EXTRA_flushes]);
	return at;
}

/* As move_page_tables(), piece by piece; @batched: bytes that went in batches. */
static unsigned long move_pieces(struct move *m, unsigned long *batched)
{
	unsigned long most = READ_ONCE(batch_bytes);
	unsigned long start = m->from;
	unsigned long len, next, done;
	bool populated, stock;
	enum piece piece;

	while (m->from < m->end) {
		cond_resched();
		piece = look(m, 0, &len);
		if (piece == NOMEM)
			break;
		stock = piece == STOCK;
		populated = piece == BATCH;
		/* A run for stock code is bounded only to keep this loop short. */
		while (len < m->end - m->from && len < (stock ? PUD_SIZE : most)) {
			piece = look(m, len, &next);
			if (stock ? piece != STOCK : piece == STOCK || piece == NOMEM)
				break;
			populated |= piece == BATCH;
			len += next;
		}
		if (stock)
			done = move_stock(m, len);
		else
			done = populated ? move_batch(m, len) : len;
		if (populated)
			*batched += done;
		m->from += done;
		m->to += done;
		if (piece == NOMEM || (stock && done < len))
			break;
	}
	return m->from - start;
}

static enum fallback why_not(const struct move *m)
{
	if ((m->old->vm_flags | m->new->vm_flags) & (VM_HUGETLB | VM_PFNMAP | VM_MIXEDMAP))
		return FALLBACK_special;
	if (userfaultfd_armed(m->old) || userfaultfd_armed(m->new))
		return FALLBACK_userfaultfd;
	if (mm_has_notifiers(m->old->vm_mm))
		return FALLBACK_notifiers;
	return NO_FALLBACK;
}

static unsigned long move(struct move m)
{
	struct mmopt_stats *stats = &mmopt_path_mremap.stats;
	bool on = static_branch_unlikely(&fast);
	enum fallback why = on ? why_not(&m) : NO_FALLBACK;
	unsigned long moved, batched = 0;
	u64 begin = ktime_get_ns();

	if (on && why == NO_FALLBACK) {
		moved = move_pieces(&m, &batched);
		if (!batched)
			why = FALLBACK_unbatched;
	} else {
		moved = move_stock(&m, m.end - m.from);
	}
	if (why != NO_FALLBACK) {
		this_cpu_inc(stats->cpu->fallback[why]);
		trace_mmopt_fallback("mremap", fallback_name[why]);
	}
	mmopt_count(stats, MMOPT_calls, 1);
	mmopt_count(stats, batched ? MMOPT_taken : MMOPT_stock, 1);
	mmopt_count(stats, MMOPT_pages, batched >> PAGE_SHIFT);
	mmopt_count_latency(stats, batched ? MMOPT_HIST_TAKEN : MMOPT_HIST_STOCK,
			    ktime_get_ns() - begin);
	mmopt_leave(&entry.drain);
	return moved;
}

/*
 * Is there anything to gain? Below two PMDs stock hardly flushes at all, and
 * whole PUDs it moves with one flush each, as fast as that can be done.
 */
static bool notrace worthwhile(unsigned long from, unsigned long to, unsigned long len)
{
	return len >= 2 * PMD_SIZE && ((from | to | len) & ~PUD_MASK);
}

#if MMOPT_MOVE_CONTROL

static bool notrace eligible(struct pt_regs *regs)
{
	const struct pagetable_move_control *pmc = (void *)regs->di;

	return pmc->old != pmc->new && !pmc->for_stack &&
		worthwhile(pmc->old_addr, pmc->new_addr, pmc->len_in);
}

static unsigned long mmopt_move_page_tables(struct pagetable_move_control *pmc)
{
	return move((struct move){
		pmc->old, pmc->new, pmc->old_addr, pmc->new_addr, pmc->old_end,
		pmc->need_rmap_locks });
}

#else

/* Exec moves its stack within one VMA. */
static bool notrace eligible(struct pt_regs *regs)
{
	return regs->di != regs->dx && worthwhile(regs->si, regs->cx, regs->r8);
}

static unsigned long mmopt_move_page_tables(MMOPT_MOVE_PARAMS)
{
	return move((struct move){
		old, new, from, to, from + len, need_rmap_locks });
}

#endif

static struct mmopt_entry entry = {
	.symbol = "move_page_tables",
	.replacement = mmopt_move_page_tables,
	.eligible = eligible,
};

static int mremap_probe(struct mmopt_path *path, char *why, size_t why_len)
{
	int err;

	path->fast = &fast;
	path->entry = &entry;
	entry.addr = mmopt_ksym(entry.symbol);
	err = mmopt_pgtable_init(why, why_len);
	if (!err)
		err = mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);
	if (!err)
		err = mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
	return err ?: mmopt_drain_init(&entry.drain);
}

static const struct mmopt_path_ops mremap_ops = {
	.probe = mremap_probe,
};

struct mmopt_path mmopt_path_mremap = {
	.name = "mremap",
	.ops = &mremap_ops,
	.tunables = tunables,
	.bypassed = bypassed,
	.stats = {
		.fallback = fallback_name,
		.nr_fallbacks = ARRAY_SIZE(fallback_name),
		.extra = extra_name,
		.nr_extras = ARRAY_SIZE(extra_name),
		.nmissed = &entry.nmissed,
	},
};
