// SPDX-License-Identifier: GPL-2.0
/* Scenarios whose lines are the same with the path off and on: ksm_same NAME */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ksm.h"

#define PAGES	512

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE	67
#endif

struct area {
	const char *name;
	enum kind kind;
	char *p;
};

static struct area areas[16];
static size_t nareas;
static long skipped;

static struct area *keep(const char *name, enum kind kind, char *p)
{
	struct area *a = &areas[nareas++];

	a->name = name;
	a->kind = kind;
	a->p = p;
	return a;
}

static unsigned int tag_of(const struct area *a)
{
	return a - areas + 1;
}

static void fill_area(const struct area *a)
{
	ksm_fill(a->p, PAGES, a->kind, tag_of(a));
}

/* Filled, mergeable memory, with nothing else around it. */
static struct area *make(const char *name, enum kind kind)
{
	struct area *a = keep(name, kind, map_fenced(PAGES));

	if (madvise(a->p, PAGES * PAGE, MADV_NOHUGEPAGE))
		die("cannot keep huge pages out");
	fill_area(a);
	if (madvise(a->p, PAGES * PAGE, MADV_MERGEABLE))
		die("cannot merge");
	return a;
}

static void show(const char *when)
{
	static const char *const global[] = {
		"pages_shared", "pages_sharing", "pages_unshared", "pages_volatile",
		"pages_skipped", "ksm_zero_pages", "stable_node_chains", "stable_node_dups",
	};
	static const char *const own[] = {
		"ksm_rmap_items", "ksm_zero_pages", "ksm_merging_pages", "ksm_process_profit",
	};

	printf("%s:\n", when);
	for (size_t i = 0; i < ARRAY_SIZE(global); i++) {
		long value = ksm_get(global[i]);

		/* This one is never set back. */
		if (!strcmp(global[i], "pages_skipped"))
			value -= skipped;
		printf("\t%s %ld\n", global[i], value);
	}
	skipped = ksm_get("pages_skipped");
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		printf("\town %s %ld\n", own[i], ksm_stat(own[i]));
	for (size_t i = 0; i < nareas; i++)
		printf("\t%s: %zu pages of KSM%s\n", areas[i].name,
		       ksm_pages(areas[i].p, PAGES),
		       ksm_intact(areas[i].p, PAGES, areas[i].kind, tag_of(&areas[i])) ?
		       "" : ", DAMAGED");
	fflush(stdout);
}

static void basic(void)
{
	struct area *same, *pairs;

	same = make("identical", IDENTICAL);
	pairs = make("pairs", PAIRS);
	make("unique", UNIQUE);
	for (int i = 1; i <= 3; i++) {
		ksm_scan(1);
		show("scanned once more");
	}
	/* written again, which breaks COW, and partly dropped */
	ksm_fill(pairs->p, PAGES, PAIRS, tag_of(pairs));
	show("written");
	ksm_scan(3);
	show("and scanned");
	madvise(same->p, PAGES / 2 * PAGE, MADV_DONTNEED);
	ksm_scan(2);
	printf("half dropped: %ld shared, %ld sharing\n", ksm_get("pages_shared"),
	       ksm_get("pages_sharing"));
	fill_area(same);
	ksm_scan(3);
	show("and filled");
}

static char *map_or_die(char *p)
{
	if (p == MAP_FAILED)
		die("cannot map");
	return p;
}

/* Memory of the kernel that no page structure stands for (VM_PFNMAP). */
static void *kernel_memory(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[256];

	while (f && !start && fgets(line, sizeof(line), f))
		if (strstr(line, "[vvar]"))
			start = strtoul(line, NULL, 16);
	if (!start)
		die("no [vvar]");
	fclose(f);
	return (void *)start;
}

/* What may not be merged, beside what may. */
static void eligible(void)
{
	const size_t len = PAGES * PAGE;
	const int rw = PROT_READ | PROT_WRITE;
	int shared = memfd_create("shared", 0), private = memfd_create("private", 0);
	size_t i;

	if (shared < 0 || private < 0 || ftruncate(shared, len) || ftruncate(private, len))
		die("no memfd");
	make("private", PAIRS);
	keep("shared anonymous", PAIRS,
	     map_or_die(mmap(NULL, len, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0)));
	keep("shared file", PAIRS, map_or_die(mmap(NULL, len, rw, MAP_SHARED, shared, 0)));
	keep("private file", PAIRS, map_or_die(mmap(NULL, len, rw, MAP_PRIVATE, private, 0)));
	keep("locked", PAIRS, map_fenced(PAGES));
	keep("fenced off", PAIRS, map_fenced(PAGES));
	keep("read-only", PAIRS, map_fenced(PAGES));
	keep("not advised", PAIRS, map_fenced(PAGES));
	keep("hugetlb", PAIRS, mmap(NULL, len, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
				    -1, 0));
	if (areas[nareas - 1].p == MAP_FAILED) {
		printf("no hugetlb pages\n");
		nareas--;
	}
	for (i = 1; i < nareas; i++) {
		madvise(areas[i].p, len, MADV_NOHUGEPAGE);
		fill_area(&areas[i]);
		if (strcmp(areas[i].name, "not advised"))
			printf("%s: advised %s\n", areas[i].name,
			       outcome(madvise(areas[i].p, len, MADV_MERGEABLE)));
	}
	printf("vvar: advised %s\n", outcome(madvise(kernel_memory(), PAGE, MADV_MERGEABLE)));
	if (mlock(areas[4].p, len) || mprotect(areas[6].p, len, PROT_READ) ||
	    mprotect(areas[5].p, len, PROT_NONE))
		die("cannot lock or protect");
	ksm_scan(5);
	if (mprotect(areas[5].p, len, rw))
		die("cannot protect");
	show("scanned");
	ksm_scan(5);
	show("scanned with the fenced off writable");
}

static void huge(void)
{
	char *p = map_fenced(6 * HUGE / PAGE), *at;
	const char *const names[] = { "huge a", "huge a again", "huge pairs", "huge zero" };
	volatile char sum = 0;

	at = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	if (madvise(at, 4 * HUGE, MADV_HUGEPAGE) || madvise(at, 4 * HUGE, MADV_MERGEABLE))
		die("cannot advise");
	for (size_t i = 0; i < 4; i++)
		keep(names[i], i < 2 ? UNIQUE : i == 2 ? PAIRS : ZERO, at + i * HUGE);
	ksm_fill(at, PAGES, UNIQUE, 1);
	ksm_fill(at + HUGE, PAGES, UNIQUE, 1);
	ksm_fill(at + 2 * HUGE, PAGES, PAIRS, 3);
	for (size_t i = 0; i < HUGE; i += PAGE)
		sum += at[3 * HUGE + i];
	printf("huge: %ld kB\n", smaps_kb("AnonHugePages", at, 4 * HUGE));
	ksm_scan(1);
	printf("first scan: huge: %ld kB\n", smaps_kb("AnonHugePages", at, 4 * HUGE));
	ksm_scan(4);
	printf("after: huge: %ld kB, %ld shared, %ld sharing\n",
	       smaps_kb("AnonHugePages", at, 4 * HUGE), ksm_get("pages_shared"),
	       ksm_get("pages_sharing"));
	printf("contents %s\n", ksm_intact(at, PAGES, UNIQUE, 1) &&
	       ksm_intact(at + HUGE, PAGES, UNIQUE, 1) &&
	       ksm_intact(at + 2 * HUGE, PAGES, PAIRS, 3) &&
	       ksm_intact(at + 3 * HUGE, PAGES, ZERO, 4) ? "right" : "DAMAGED");
}

static void zero(void)
{
	struct area *z;

	ksm_set("use_zero_pages", 1);
	z = make("zeroes", ZERO);
	make("unique", UNIQUE);
	ksm_scan(4);
	show("with zero pages");
	ksm_fill(z->p, PAGES / 2, ZERO, 0);
	show("half written");
	ksm_set("use_zero_pages", 0);
	ksm_scan(4);
	show("without");
}

static void sharing(void)
{
	ksm_set("max_page_sharing", 16);
	make("identical", IDENTICAL);
	make("more", IDENTICAL);
	ksm_fill(areas[1].p, PAGES, IDENTICAL, 1);
	ksm_scan(4);
	printf("%ld shared, %ld sharing, %ld chains, %ld dups\n", ksm_get("pages_shared"),
	       ksm_get("pages_sharing"), ksm_get("stable_node_chains"),
	       ksm_get("stable_node_dups"));
	printf("contents %s\n", ksm_intact(areas[0].p, PAGES, IDENTICAL, 1) &&
	       ksm_intact(areas[1].p, PAGES, IDENTICAL, 1) ? "right" : "DAMAGED");
}

static void unmerge(void)
{
	struct area *same = make("identical", IDENTICAL);

	make("pairs", PAIRS);
	ksm_scan(4);
	printf("unmerging: %s\n", outcome(madvise(same->p, PAGES * PAGE, MADV_UNMERGEABLE)));
	show("one is not mergeable any more");
	ksm_scan(3);
	show("scanned");
	ksm_reset();
	show("unmerged");
	ksm_scan(4);
	show("merged again");
}

static void smart(void)
{
	ksm_set("smart_scan", 1);
	make("unique", UNIQUE);
	make("pairs", PAIRS);
	ksm_scan(4);
	show("four scans");
	ksm_scan(6);
	show("ten scans");
	ksm_fill(areas[0].p, PAGES, UNIQUE, 1);
	ksm_scan(9);
	show("nineteen scans");
}

static void wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		die("the child failed: %d", status);
}

/* prctl() for the whole process, inherited by fork. */
static void all(void)
{
	char *p;
	pid_t child;

	if (prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0))
		die("no PR_SET_MEMORY_MERGE");
	p = map_fenced(PAGES);
	madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
	ksm_fill(p, PAGES, PAIRS, 1);
	ksm_scan(4);
	printf("%zu pages of KSM\n", ksm_pages(p, PAGES));
	fflush(stdout);
	child = fork();
	if (!child) {
		char *q = map_fenced(PAGES);

		madvise(q, PAGES * PAGE, MADV_NOHUGEPAGE);
		ksm_fill(q, PAGES, PAIRS, 2);
		ksm_scan(4);
		printf("child: %zu and %zu pages of KSM, contents %s\n", ksm_pages(p, PAGES),
		       ksm_pages(q, PAGES), ksm_intact(p, PAGES, PAIRS, 1) &&
		       ksm_intact(q, PAGES, PAIRS, 2) ? "right" : "DAMAGED");
		fflush(stdout);
		_exit(0);
	}
	wait_for(child);
	printf("off: %s\n", outcome(prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0)));
	printf("%zu pages of KSM, contents %s\n", ksm_pages(p, PAGES),
	       ksm_intact(p, PAGES, PAIRS, 1) ? "right" : "DAMAGED");
}

static void forked(void)
{
	pid_t child;

	make("identical", IDENTICAL);
	make("pairs", PAIRS);
	make("unique", UNIQUE);
	ksm_scan(3);
	show("before");
	child = fork();
	if (!child) {
		areas[1].kind = UNIQUE;
		fill_area(&areas[1]);
		ksm_scan(4);
		show("child, which wrote");
		_exit(0);
	}
	wait_for(child);
	ksm_scan(2);
	show("parent");
}

/* Swapped out and in again, and moved by the compaction of memory. */
static void moved(void)
{
	struct area *a;
	FILE *f;
	char *to;

	make("identical", IDENTICAL);
	make("pairs", PAIRS);
	make("unique", UNIQUE);
	ksm_scan(3);
	for (size_t i = 0; i < nareas; i++)
		madvise(areas[i].p, PAGES * PAGE, MADV_PAGEOUT);
	f = fopen("/proc/sys/vm/compact_memory", "we");
	if (!f || fputs("1", f) < 0 || fclose(f))
		die("cannot compact");
	ksm_scan(2);
	for (size_t i = 0; i < nareas; i++)
		ksm_intact(areas[i].p, PAGES, areas[i].kind, tag_of(&areas[i]));
	ksm_scan(4);
	show("came back");
	a = &areas[1];
	to = mremap(a->p, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    map_fenced(PAGES));
	if (to == MAP_FAILED)
		die("cannot move");
	a->p = to;
	show("moved");
	ksm_scan(3);
	show("scanned there");
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "basic", basic }, { "eligible", eligible }, { "huge", huge }, { "zero", zero },
	{ "sharing", sharing }, { "unmerge", unmerge }, { "smart", smart }, { "all", all },
	{ "forked", forked }, { "moved", moved },
};

int main(int argc, char **argv)
{
	ksm_reset();
	skipped = ksm_get("pages_skipped");
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (argc != 2 || strcmp(argv[1], scenarios[i].name))
			continue;
		scenarios[i].run();
		return 0;
	}
	die("no such scenario");
}
