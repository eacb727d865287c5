/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module and the command line share: the names of paths, states,
 * counters and files. Each list is written once, as an X-macro, and both
 * sides build their tables from it.
 *
 * Whoever changes the format of a file in debugfs raises its version.
 */
#ifndef MMOPT_ABI_H
#define MMOPT_ABI_H

#define MMOPT_VERSION		"0.1.0"
#define MMOPT_STATS_VERSION	1
#define MMOPT_EXPLAIN_VERSION	1

/* Below the debugfs mount. */
#define MMOPT_DIR		"mmopt"
#define MMOPT_FILE_VERSION	"version"
#define MMOPT_FILE_STATUS	"status"

/* In the folder of each path. */
#define MMOPT_FILE_ENABLED	"enabled"
#define MMOPT_FILE_OBSERVE	"observe"
#define MMOPT_FILE_STATE	"state"
#define MMOPT_FILE_STATS	"stats"
#define MMOPT_FILE_RESET	"reset"
#define MMOPT_FILE_EXPLAIN	"explain"

/* X(identifier, the kernel operation it makes faster) */
#define MMOPT_PATHS(X) \
	X(copy, "fork copies large mappings in a short loop, on several CPUs") \
	X(mremap, "one TLB flush for many page tables moved") \
	X(madvise, "MADV_COLD and MADV_PAGEOUT under per-VMA locks") \
	X(ksm, "ksmd scans and merges under per-VMA locks") \
	X(pagemap, "PAGEMAP_SCAN under per-VMA locks")

/* X(identifier): the first word of the file "state" and of a status line. */
#define MMOPT_STATES(X) \
	X(off) \
	X(on) \
	X(draining) \
	X(unavailable) \
	X(tripped)

/*
 * X(identifier, meaning): counters that every path keeps. A call is one
 * execution of the path's own operation, and calls = taken + stock.
 */
#define MMOPT_COUNTERS(X) \
	X(calls, "calls that reached mmopt") \
	X(taken, "calls done the fast way") \
	X(stock, "calls that stock code did, in whole or from some point on") \
	X(pages, "pages in the ranges done the fast way")

/* X(identifier, meaning): further counters of the path copy. */
#define MMOPT_COPY_COUNTERS(X) \
	X(left, "pages in parts of such ranges that stock code did") \
	X(helped, "page tables that helpers took")

/* X(identifier, least, greatest, meaning): numbers of the path copy that can be set. */
#define MMOPT_COPY_TUNABLES(X) \
	X(min_bytes, 4096, 1UL << 46, "smaller mappings are none of its business") \
	X(threads, 1, 16, "how many CPUs copy one mapping at most") \
	X(min_chunk_bytes, 2097152, 1UL << 46, "a helper is asked for each such piece")

/* X(identifier, meaning): why the path copy left a call to stock code. */
#define MMOPT_COPY_FALLBACKS(X) \
	X(special, "a hugetlb, PFNMAP, MIXEDMAP or DAX mapping, or one that is shared") \
	X(userfaultfd, "a mapping that is registered with userfaultfd") \
	X(notifiers, "memory that a device or a virtual machine shares") \
	X(unbatched, "nothing but holes, huge pages, swapped or pinned pages to copy")

/* X(identifier, meaning): further counters of the path mremap. */
#define MMOPT_MREMAP_COUNTERS(X) \
	X(flushes, "TLB flushes done for batches")

/* X(identifier, least, greatest, meaning): numbers of the path mremap that can be set. */
#define MMOPT_MREMAP_TUNABLES(X) \
	X(batch_bytes, 2097152, 1073741824, "how much of a move is one batch")

/* X(identifier, meaning): why the path mremap left a call to stock code. */
#define MMOPT_MREMAP_FALLBACKS(X) \
	X(special, "a hugetlb, PFNMAP or MIXEDMAP mapping") \
	X(userfaultfd, "a mapping that is registered with userfaultfd") \
	X(notifiers, "memory that a device or a virtual machine shares") \
	X(unbatched, "nothing but holes, whole PUDs or ends that do not fit to move")

/* X(identifier, meaning): why the path madvise left a call to stock code. */
#define MMOPT_MADVISE_FALLBACKS(X) \
	X(remote_mm, "advice about another process") \
	X(vma_lock, "a gap, or a VMA that was being changed") \
	X(userfaultfd, "a VMA that is registered with userfaultfd") \
	X(huge_pud, "a page table entry of 1 GiB")

/*
 * Of the path ksm, a call is what ksmd does between taking a process's mmap_lock
 * and giving it back: coming to the next page, looking at a page, merging one.
 *
 * X(identifier, meaning): further counters of it.
 */
#define MMOPT_KSM_COUNTERS(X) \
	X(scanned, "pages that ksmd came to, in whichever way") \
	X(mmap_locks, "times that ksmd took an mmap_lock") \
	X(flushes_put_off, "TLB flushes of replaced pages that were done up to 32 at once")

/* X(identifier, meaning): why ksmd took mmap_lock although the path was on. */
#define MMOPT_KSM_FALLBACKS(X) \
	X(exiting, "the process was exiting") \
	X(vma_lock, "a gap, or a VMA that was being changed") \
	X(nothing, "nothing to scan in a process, which stock code makes sure of")

/*
 * Of the path pagemap, a call is a walk: what PAGEMAP_SCAN does between taking
 * mmap_lock and giving it back, once for each 512 ranges that it finds.
 *
 * X(identifier, meaning): further counters of it.
 */
#define MMOPT_PAGEMAP_COUNTERS(X) \
	X(vmas, "large VMAs, walked under their own lock") \
	X(batches, "times that small ones were walked under mmap_lock") \
	X(deferred, "TLB flushes put off to the end of these") \
	X(flushes, "TLB flushes done for those")

/* X(identifier, least, greatest, meaning): numbers of the path pagemap that can be set. */
#define MMOPT_PAGEMAP_TUNABLES(X) \
	X(large_bytes, 4096, 1073741824, "a VMA from this on is walked under its own lock")

/* X(identifier, meaning): why the path pagemap took mmap_lock. */
#define MMOPT_PAGEMAP_FALLBACKS(X) \
	X(exiting, "the process was exiting") \
	X(crowded, "more walks at once than are kept track of") \
	X(vma_lock, "a VMA that was being changed") \
	X(hugetlb, "a VMA of huge pages from hugetlbfs")

/*
 * The file "stats" holds "v: version" and then "key value" lines: the counters
 * above by their identifier, "nmissed" (calls that a hook did not see, so that
 * stock code ran), each fallback as "fallback_" and its identifier, and the
 * latency histograms: "taken_ns_N" and "stock_ns_N" count the calls that took at least
 * N and less than 2 * N nanoseconds, N a power of two. Buckets that are empty
 * are left out. "taken_sum_ns" and "stock_sum_ns" are what these calls took in all.
 */
#define MMOPT_KEY_VERSION	"v"
#define MMOPT_KEY_NMISSED	"nmissed"
#define MMOPT_PREFIX_FALLBACK	"fallback_"
#define MMOPT_PREFIX_TAKEN_NS	"taken_ns_"
#define MMOPT_PREFIX_STOCK_NS	"stock_ns_"
#define MMOPT_KEY_TAKEN_SUM	"taken_sum_ns"
#define MMOPT_KEY_STOCK_SUM	"stock_sum_ns"

/*
 * The file "explain" holds "v: version" and then "key value" lines:
 *
 *	mechanism NAME                  of MMOPT_MECHANISMS; none if the path cannot be on
 *	site IN+0xN FUNCTION -> OURS    where in the kernel what is called instead
 *	bypasses FUNCTION               does not run when a call is taken
 *	tunable FILE VALUE MIN MAX
 */
#define MMOPT_KEY_MECHANISM	"mechanism"
#define MMOPT_KEY_SITE		"site"
#define MMOPT_KEY_BYPASSES	"bypasses"
#define MMOPT_KEY_TUNABLE	"tunable"

/* X(identifier, meaning): how a path gets at the kernel's calls. */
#define MMOPT_MECHANISMS(X) \
	X(callsite, "calls inside kernel functions are led elsewhere") \
	X(entry, "calls of a kernel function are taken over at its entry, by ftrace") \
	X(none, "nothing of the kernel is touched")

#endif /* MMOPT_ABI_H */
