// SPDX-License-Identifier: GPL-2.0
/* Scenarios whose lines are the same with the path off and on: pagemap_same NAME */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scan.h"

#define MAX	8192
#define ALL	(WPALLOWED | WRITTEN | FILE_PAGE | PRESENT | SWAPPED | PFNZERO | \
		 HUGE_PAGE | SOFT_DIRTY)

static int pagemap;
static struct range vec[MAX];
static volatile char sink;

static char *map_small(size_t pages)
{
	char *p = map_fenced(pages);

	if (madvise(p, pages * PAGE, MADV_NOHUGEPAGE))
		die("cannot keep huge pages out");
	return p;
}

static void touch(char *p, size_t pages, size_t step)
{
	for (size_t i = 0; i < pages; i += step)
		p[i * PAGE] = 1;
}

static void read_pages(const char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		sink += p[i * PAGE];
}

/* How it went, where it ended, and each range, by pages from @base. */
static void show(const char *name, const char *base, struct scan scan)
{
	long n = scan_do(pagemap, &scan);
	uint64_t pages = 0;

	printf("%s: %s", name, n < 0 ? outcome(-1) : "");
	if (n >= 0) {
		for (long i = 0; scan.vec && i < n; i++)
			pages += (vec[i].end - vec[i].start) / PAGE;
		printf("%ld ranges, %lu pages", n, pages);
	}
	if (scan.walk_end)
		printf(", end %+ld of %ld\n",
		       (long)(scan.walk_end - (uintptr_t)base) / (long)PAGE,
		       (long)(scan.end - (uintptr_t)base) / (long)PAGE);
	else
		printf(", no end\n");
	for (long i = 0; scan.vec && i < n && i < 600; i++)
		printf("  %ld-%ld %lx\n",
		       (long)(vec[i].start - (uintptr_t)base) / (long)PAGE,
		       (long)(vec[i].end - (uintptr_t)base) / (long)PAGE,
		       vec[i].categories);
}

static struct scan present(const void *p, size_t pages, size_t len)
{
	struct scan scan = scan_of(p, pages, vec, len);

	scan.mask = PRESENT;
	scan.ret = PRESENT;
	return scan;
}

/* Ranges of what was written since the last one, and it begins anew. */
static struct scan written(const void *p, size_t pages, size_t len)
{
	struct scan scan = scan_of(p, pages, len ? vec : NULL, len);

	scan.flags = WP_MATCHING | CHECK_WPASYNC;
	scan.mask = WRITTEN;
	scan.ret = WRITTEN;
	return scan;
}

static struct scan everything(const void *p, size_t pages)
{
	struct scan scan = scan_of(p, pages, vec, MAX);

	scan.ret = ALL;
	return scan;
}

/* What stock refuses, and with which error: P01. */
static void errors(void)
{
	static const uint64_t bits[] = { 0x3f, 0x7f, 0xff, 0x1ff, 0x3ff, 0x7ff, 1ULL << 40 };
	char *p = map_small(64), name[32];
	struct scan scan;

	touch(p, 64, 2);
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		scan = scan_of(p, 64, vec, MAX);
		scan.ret = bits[i];
		snprintf(name, sizeof(name), "return mask %llx", (unsigned long long)bits[i]);
		show(name, p, scan);
	}
	scan = present(p, 64, 16);
	scan.flags = 4;
	show("unknown flag", p, scan);
	show("unaligned", p, present(p + 1, 64, 16));
	scan = present(p, 64, 16);
	scan.size = 8;
	show("small struct", p, scan);
	scan = present(p, 64, 16);
	scan.vec = 8;
	errno = 0;
	printf("bad vector: %ld\n", scan_do(pagemap, &scan));
	scan = present(p, 64, 16);
	scan.vec = 0;
	show("no vector, but a length", p, scan);
	show("nothing", p, present(p, 0, 16));
	show("beyond memory", (char *)(1UL << 63), present((void *)(1UL << 63), 1, 16));
	scan = written(p, 64, 16);
	show("protect what cannot be", p, scan);
	scan.flags = WP_MATCHING;
	show("skip what cannot be protected", p, scan);
	close(pagemap);
	errno = 0;
	show("closed", p, present(p, 64, 16));
}

/* Private, zero, file and swapped pages, and CRIU's choice of them: P02. */
static void categories(void)
{
	char *anon = map_small(64), *zero = map_small(16), *file, *shared;
	int fd = memfd_create("file", 0);
	struct scan scan;

	if (fd < 0 || ftruncate(fd, 16 * PAGE))
		die("no file");
	file = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	shared = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED || shared == MAP_FAILED)
		die("cannot map");
	touch(anon, 64, 3);
	touch(shared, 16, 2);
	read_pages(file, 16);
	file[3 * PAGE] = 1;
	read_pages(zero, 8);
	if (madvise(anon + 32 * PAGE, 16 * PAGE, MADV_PAGEOUT))
		die("cannot page out");

	show("anon", anon, everything(anon, 64));
	show("zero", zero, everything(zero, 16));
	show("private file", file, everything(file, 16));
	show("shared file", shared, everything(shared, 16));
	scan = scan_of(file, 16, vec, MAX);
	scan.inverted = PFNZERO | FILE_PAGE;
	scan.mask = PFNZERO | FILE_PAGE;
	scan.anyof = PRESENT | SWAPPED;
	scan.ret = PRESENT | SWAPPED;
	show("CRIU, private file", file, scan);
	scan.start = (uintptr_t)anon;
	scan.end = scan.start + 64 * PAGE;
	show("CRIU, anon", anon, scan);
}

/* Small vectors and limits, resumed where the last scan ended: P04. */
static void resume(void)
{
	char *p = map_small(400);
	static const size_t lens[] = { 1, 2, 32, 199, 200, 201 };

	touch(p, 400, 2);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		size_t pages = 0, calls = 0;
		uint64_t at = (uintptr_t)p, end = at + 400 * PAGE;

		while (at < end) {
			struct scan scan = present((void *)at, (end - at) / PAGE, lens[i]);
			long n = scan_do(pagemap, &scan);

			for (long k = 0; k < n; k++)
				pages += (vec[k].end - vec[k].start) / PAGE;
			calls++;
			if (n < 0 || scan.walk_end <= at)
				die("no progress with %zu", lens[i]);
			at = scan.walk_end;
		}
		printf("vector of %zu: %zu pages in %zu calls\n", lens[i], pages, calls);
	}
	for (size_t max = 1; max < 12; max += 5) {
		struct scan scan = present(p, 400, MAX);

		scan.max_pages = max;
		show("limited", p, scan);
	}
}

/* Where stock says it ended when there is more than one of its buffers: P05. */
static void ends(void)
{
	static const size_t wanted[] = { 100, 511, 512, 513, 700, 2000, 4000 };

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		size_t pages = 2 * wanted[i] + 64;
		char *p = map_small(pages);
		struct scan scan = present(p, pages, 4096);

		touch(p, 2 * wanted[i], 2);
		printf("%zu wanted, %ld found", wanted[i], scan_do(pagemap, &scan));
		printf(", %ld pages left\n", (long)(scan.end - scan.walk_end) / (long)PAGE);
		unmap_fenced(p, pages);
	}
}

/* What was written, and what is not there: P03 and P07. */
static void tracked(const char *name, char *p, size_t pages)
{
	char what[64];

	snprintf(what, sizeof(what), "%s, first", name);
	show(what, p, written(p, pages, MAX));
	snprintf(what, sizeof(what), "%s, nothing written", name);
	show(what, p, written(p, pages, MAX));
	p[5 * PAGE]++;
	p[6 * PAGE]++;
	p[(pages - 1) * PAGE]++;
	read_pages(p + 100 * PAGE, 2);
	snprintf(what, sizeof(what), "%s, three written, two read", name);
	show(what, p, written(p, pages, MAX));
	p[7 * PAGE]++;
	snprintf(what, sizeof(what), "%s, without a vector", name);
	show(what, p, written(p, pages, 0));
	if (madvise(p + 20 * PAGE, 20 * PAGE, MADV_DONTNEED))
		die("cannot drop");
	snprintf(what, sizeof(what), "%s, all", name);
	show(what, p, everything(p, pages));
	snprintf(what, sizeof(what), "%s, after a drop", name);
	show(what, p, written(p, pages, MAX));
}

static void protect(void)
{
	char *dense = map_small(600), *holes = map_small(600), *huge;
	int uffd = open_uffd();

	touch(dense, 600, 1);
	touch(holes, 600, 3);
	huge = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (huge == MAP_FAILED)
		die("cannot map");
	huge += HUGE - (uintptr_t)huge % HUGE;
	if (madvise(huge, 2 * HUGE, MADV_HUGEPAGE))
		die("no huge pages");
	touch(huge, 1024, 512);
	if (register_wp(uffd, dense, 600) || register_wp(uffd, holes, 600) ||
	    register_wp(uffd, huge, 1024))
		die("cannot register");
	tracked("dense", dense, 600);
	tracked("holes", holes, 600);
	show("huge, half of one", huge, written(huge, 256, MAX));
	tracked("huge", huge, 1024);
	if (unregister_wp(uffd, dense, 600))
		die("cannot unregister");
	show("not registered", dense, everything(dense, 600));
}

/* Many VMAs of many kinds, and gaps, in one scan. */
static void mixed(void)
{
	enum { SLOTS = 64, EACH = 16 };
	char *p = map_fenced(SLOTS * EACH), *at = p;
	int fd = memfd_create("file", 0), uffd = open_uffd();
	struct scan scan;

	if (fd < 0 || ftruncate(fd, EACH * PAGE))
		die("no file");
	madvise(p, SLOTS * EACH * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < SLOTS; i++, at += EACH * PAGE) {
		touch(at, EACH, i % 5 + 1);
		if (i % 7 == 1 && munmap(at, EACH * PAGE))
			die("cannot unmap");
		if (i % 7 == 3 && mprotect(at, EACH * PAGE, PROT_READ))
			die("cannot protect");
		if (i % 7 == 4 && mmap(at, EACH * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED,
				       fd, 0) == MAP_FAILED)
			die("cannot map a file");
		if (i % 7 == 4)
			read_pages(at, EACH / 2);
		if (i % 7 == 5 && register_wp(uffd, at, EACH))
			die("cannot register");
		if (i % 7 == 6 && madvise(at, EACH * PAGE, MADV_DONTFORK))
			die("cannot advise");
	}
	show("all of it", p, everything(p, SLOTS * EACH));
	show("present", p, present(p - PAGE, SLOTS * EACH + 2, MAX));
	scan = everything(p, SLOTS * EACH);
	scan.mask = WPALLOWED;
	show("registered", p, scan);
	scan = written(p, SLOTS * EACH, MAX);
	show("checked", p, scan);
	scan.flags = WP_MATCHING;
	show("protected where it can be", p, scan);
	show("then", p, everything(p, SLOTS * EACH));
	/* From the middle of one VMA to the middle of another. */
	show("part", p, everything(p + 3 * PAGE, SLOTS * EACH - 7));
}

static void hugetlb(void)
{
	char *p = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	int uffd = open_uffd();

	if (p == MAP_FAILED)
		die("no pages in hugetlbfs");
	p[0] = 1;
	p[2 * HUGE] = 1;
	show("hugetlb", p, everything(p, 2048));
	if (register_wp(uffd, p, 2048))
		die("cannot register");
	show("hugetlb, written", p, written(p, 2048, MAX));
	p[HUGE] = 1;
	show("hugetlb, one written", p, written(p, 2048, MAX));
	show("hugetlb, part", p, written(p, 256, MAX));
}

/* Another process, and one that is gone. */
static void remote(void)
{
	char *p = map_small(64);
	pid_t child;

	touch(p, 64, 2);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	close(pagemap);
	pagemap = open_pagemap(child);
	show("child", p, present(p, 64, MAX));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	show("no child", p, present(p, 64, MAX));
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{ "errors", errors },
	{ "categories", categories },
	{ "resume", resume },
	{ "ends", ends },
	{ "protect", protect },
	{ "mixed", mixed },
	{ "hugetlb", hugetlb },
	{ "remote", remote },
};

int main(int argc, char **argv)
{
	pin();
	pagemap = open_pagemap(getpid());
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (argc != 2 || strcmp(argv[1], scenarios[i].name))
			continue;
		scenarios[i].run();
		return 0;
	}
	die("no such scenario");
}
