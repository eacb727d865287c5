// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages: transparent ones as a whole, in part and partly mapped, and
 * hugetlb. Of what size the transparent ones are is set by whoever runs this.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "semantics.h"

#define PAGES	(HUGE / PAGE)

/* Two units of huge page size, aligned, the first of them ours. */
static char *map_aligned(void)
{
	char *p = mmap(NULL, 3 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned = (char *)(((unsigned long)p + HUGE) & ~(HUGE - 1));

	if (p == MAP_FAILED || mprotect(aligned, HUGE, PROT_READ | PROT_WRITE))
		die("cannot map huge pages");
	munmap(p, aligned - p);
	munmap(aligned + 2 * HUGE, p + HUGE - aligned);
	return aligned;
}

static void tell(const char *name, const char *when, const char *p)
{
	printf("%s, %s: huge %ld kB, rss %ld kB, referenced %ld kB, swap %ld kB\n", name, when,
	       smaps_kb("AnonHugePages", p, HUGE), smaps_kb("Rss", p, HUGE),
	       smaps_kb("Referenced", p, HUGE), smaps_kb("Swap", p, HUGE));
}

static const struct part {
	const char *name;
	size_t from, pages;	/* advised */
	size_t cut;		/* pages unmapped at the end, before */
	bool read_only;		/* the second half, so that there are two VMAs */
} parts[] = {
	{ "whole", 0, PAGES, 0, false },
	{ "first half", 0, PAGES / 2, 0, false },
	{ "middle", 100, 200, 0, false },
	{ "one page", 7, 1, 0, false },
	{ "over two VMAs", 0, PAGES, 0, true },
	{ "mapped by half", 0, PAGES / 2, PAGES / 2, false },
	{ "mapped by half, in part", 16, 32, PAGES / 2, false },
};

static void part(const struct part *c, const struct advice *a)
{
	char *p = map_aligned(), name[96];

	if (madvise(p, HUGE, MADV_HUGEPAGE))
		die("MADV_HUGEPAGE");
	fill(p, PAGES);
	if (c->cut)
		munmap(p + HUGE - c->cut * PAGE, c->cut * PAGE);
	if (c->read_only)
		mprotect(p + HUGE / 2, HUGE / 2, PROT_READ);
	snprintf(name, sizeof(name), "%s %s", c->name, a->name);
	tell(name, "before", p);
	printf("%s: %s\n", name, outcome(madvise(p + c->from * PAGE, c->pages * PAGE, a->value)));
	tell(name, "after", p);
	printf("%s: %s\n", name, intact(p, PAGES - c->cut) ? "intact" : "DAMAGED");
	munmap(p, 2 * HUGE);
}

static void hugetlb(const struct advice *a)
{
	char *p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		die("no hugetlb page");
	fill(p, PAGES);
	printf("hugetlb %s: %s\n", a->name, outcome(madvise(p, HUGE, a->value)));
	printf("hugetlb, a small page of it, %s: %s\n", a->name,
	       outcome(madvise(p + PAGE, PAGE, a->value)));
	printf("hugetlb %s: %s\n", a->name, intact(p, PAGES) ? "intact" : "DAMAGED");
	munmap(p, HUGE);
}

void huge(void)
{
	for_each_advice(a) {
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			part(&parts[i], a);
		hugetlb(a);
	}
}
