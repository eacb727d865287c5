// SPDX-License-Identifier: GPL-2.0
/*
 * mremap_moves GROUP: moves memory and prints what has become of it, line by
 * line, for a comparison with the path off and on.
 *
 * "same" says that every entry of the page map is what it was before, apart from
 * the soft-dirty bit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mremap.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL	102
#endif

#define SIZE		(10 * MIB)
#define PAGES		(SIZE / PAGE)

/* Layouts: where from and where to. */
static const struct layout {
	const char *name;
	size_t from, to;
} layouts[] = {
	{ "aligned", 2 * MIB, GIB + 4 * MIB },
	{ "congruent", 2 * MIB + 7 * PAGE, GIB + 6 * MIB + 7 * PAGE },
	{ "unaligned", 2 * MIB, GIB + 4 * MIB + PAGE },
	{ "across", GIB - 4 * MIB, 3 * GIB - 2 * MIB },
	{ "odd", 4 * MIB - 3 * PAGE, 2 * GIB - 4 * MIB + 11 * PAGE },
};

static void sums(const char *p, size_t len)
{
	static const char *const fields[] = {
		"Size", "Rss", "Pss", "Private_Dirty", "Anonymous", "AnonHugePages",
		"ShmemPmdMapped", "Swap", "Locked",
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		printf(" %s %ld", fields[i], smaps_kb(fields[i], p, len));
	printf(" VmPTE %ld VmSwap %ld", status_kb(getpid(), "VmPTE"), status_kb(getpid(), "VmSwap"));
}

static bool same_entries(const uint64_t *a, const uint64_t *b, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		if ((a[i] ^ b[i]) & ~PM_SOFT_DIRTY)
			return false;
	return true;
}

/* One move, described; the pages that are tagged must stay so. */
static void moved(const char *what, char *from, char *to, size_t pages,
		  bool (*good)(const char *p))
{
	uint64_t *before = pagemap(from, pages), *after;

	move(from, pages * PAGE, pages * PAGE, 0, to);
	after = pagemap(to, pages);
	printf("%s: entries %s,", what, same_entries(before, after, pages) ? "same" : "DIFFER");
	sums(to, pages * PAGE);
	printf(" contents %s\n", good(to) ? "intact" : "DAMAGED");
	free(before);
	free(after);
}

/* How the pages of a mapping are made, and what they must hold afterwards. */

static bool whole(const char *p)
{
	return tagged(p, PAGES, 0);
}

static void make_whole(char *p)
{
	tag(p, PAGES, 0);
}

/* Every third page, two blocks without a table, one of zero pages. */
static int sort_of_hole(size_t page)
{
	size_t block = page / 512;

	if (block == 1 || block == 3)
		return 0;
	if (block == 2)
		return 'z';
	return page % 3 ? 0 : 't';
}

static void make_holes(char *p)
{
	volatile char sink;

	for (size_t i = 0; i < PAGES; i++) {
		if (sort_of_hole(i) == 't')
			tag_one(p + i * PAGE, i);
		else if (sort_of_hole(i) == 'z')
			sink = p[i * PAGE];
	}
	(void)sink;
}

static bool holes(const char *p)
{
	for (size_t i = 0; i < PAGES; i++) {
		bool good = sort_of_hole(i) == 't' ? tagged_one(p + i * PAGE, i) :
			    !*(volatile uint64_t *)(p + i * PAGE);

		if (!good)
			return false;
	}
	return true;
}

/* Of a private file: odd pages written, even ones only read. */
static void make_half_written(char *p)
{
	volatile char sink;

	for (size_t i = 0; i < PAGES; i++) {
		if (i & 1)
			tag_one(p + i * PAGE, i);
		else
			sink = p[i * PAGE];
	}
	(void)sink;
}

static bool half_written(const char *p)
{
	for (size_t i = 0; i < PAGES; i++)
		if (i & 1 ? !tagged_one(p + i * PAGE, i) : p[i * PAGE] != 0)
			return false;
	return true;
}

static void make_swapped(char *p)
{
	make_whole(p);
	for (size_t i = 0; i < PAGES; i += 64)
		if (madvise(p + i * PAGE, 32 * PAGE, MADV_PAGEOUT))
			die("MADV_PAGEOUT");
}

/* Not where a file lies crosswise to huge pages. */
static void make_collapsed(char *p)
{
	char *begin = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));

	make_whole(p);
	if (madvise(p, SIZE, MADV_HUGEPAGE))
		die("MADV_HUGEPAGE");
	printf("collapse: %s\n",
	       outcome(madvise(begin, (p + SIZE - begin) & ~(HUGE - 1), MADV_COLLAPSE)));
}

/* Huge pages whose entries have been split. */
static void make_split(char *p)
{
	make_whole(p);
	for (size_t at = 0; at < SIZE; at += HUGE) {
		if (mprotect(p + at + HUGE / 2, PAGE, PROT_READ) ||
		    mprotect(p + at + HUGE / 2, PAGE, PROT_READ | PROT_WRITE))
			die("mprotect");
	}
}

static void make_locked(char *p)
{
	if (mlock(p, SIZE))
		die("mlock");
	make_whole(p);
}

static void make_readonly(char *p)
{
	make_whole(p);
	if (mprotect(p, SIZE, PROT_READ))
		die("mprotect");
}

/* Lightweight guards where the kernel has them: entries that are markers. */
static void make_guarded(char *p)
{
	make_whole(p);
	if (madvise(p + 100 * PAGE, 8 * PAGE, MADV_GUARD_INSTALL))
		printf("guards: %s\n", outcome(-1));
}

static bool around_guards(const char *p)
{
	int fds[2];
	bool held;

	if (pipe(fds))
		die("pipe");
	/* tells by EFAULT instead of a signal */
	held = write(fds[1], p + 103 * PAGE, 1) < 0 && errno == EFAULT;
	printf(" guards %s", held ? "hold" : "none");
	close(fds[0]);
	close(fds[1]);
	return tagged(p, 100, 0) && tagged(p + 108 * PAGE, PAGES - 108, 108) &&
	       (held || tagged(p + 100 * PAGE, 8, 100));
}

static const struct {
	const char *name;
	enum kind kind;
	void (*make)(char *p);
	bool (*good)(const char *p);
} memories[] = {
	{ "plain", ANON, make_whole, whole },
	{ "holes", ANON, make_holes, holes },
	{ "thp", THP, make_whole, whole },
	{ "thp, split", THP, make_split, whole },
	{ "thp, holes", THP, make_holes, holes },
	{ "collapsed", ANON, make_collapsed, whole },
	{ "swapped by half", ANON, make_swapped, whole },
	{ "shared file", SHARED, make_whole, whole },
	{ "shared file, holes", SHARED, make_holes, holes },
	{ "shared file, collapsed", SHARED, make_collapsed, whole },
	{ "shared file, swapped by half", SHARED, make_swapped, whole },
	{ "private file", PRIVATE, make_half_written, half_written },
	{ "locked", ANON, make_locked, whole },
	{ "read-only", ANON, make_readonly, whole },
	{ "guarded", ANON, make_guarded, around_guards },
};

static void kinds(void)
{
	char what[128], *from, *to;

	for (size_t m = 0; m < ARRAY_SIZE(memories); m++) {
		for (size_t l = 0; l < ARRAY_SIZE(layouts); l++) {
			from = map_at(window(0) + layouts[l].from, SIZE, memories[m].kind);
			to = window(1) + layouts[l].to;
			memories[m].make(from);
			snprintf(what, sizeof(what), "%s %s", memories[m].name, layouts[l].name);
			moved(what, from, to, PAGES, memories[m].good);
			strcat(what, " back");
			moved(what, to, from, PAGES, memories[m].good);
			unmap(from, SIZE);
		}
	}
}

/* Heads and tails of all sorts: the whole mapping, at every small offset. */
static void offsets(void)
{
	static const size_t odd[] = { 0, 1, 2, 511 };
	char what[64], *from, *to;
	size_t pages, h, t, d;

	for (h = 0; h < ARRAY_SIZE(odd); h++) {
		for (t = 0; t < ARRAY_SIZE(odd); t++) {
			for (d = 0; d < ARRAY_SIZE(odd); d++) {
				pages = 1024 + odd[t];
				from = map_at(window(0) + odd[h] * PAGE, pages * PAGE, ANON);
				to = window(1) + odd[d] * PAGE;
				tag(from, pages, 0);
				move(from, pages * PAGE, pages * PAGE, 0, to);
				snprintf(what, sizeof(what), "offset %zu pages %zu to %zu",
					 odd[h], pages, odd[d]);
				printf("%s: contents %s\n", what,
				       tagged(to, pages, 0) ? "intact" : "DAMAGED");
				unmap(to, pages * PAGE);
			}
		}
	}
}

static const char *is_mapped(char *p)
{
	unsigned char resident;

	return mincore(p, PAGE, &resident) ? "unmapped" : "mapped";
}

/* Whether the page is there, or only its VMA. */
static char entry_of(char *p)
{
	return page_states(p, 1)[0];
}

static void flags(void)
{
	for (size_t l = 0; l < ARRAY_SIZE(layouts); l++) {
		const char *name = layouts[l].name;
		char *from = window(0) + layouts[l].from, *to = window(1) + layouts[l].to;

		map_at(from, SIZE, ANON);
		tag(from, PAGES, 0);
		move(from, SIZE, SIZE, MREMAP_DONTUNMAP, to);
		printf("%s keeps the old mapping: new %s, old %s %c,", name,
		       whole(to) ? "intact" : "DAMAGED", is_mapped(from), entry_of(from));
		sums(to, SIZE);
		tag(from, PAGES, 7);
		printf(" apart %s\n", whole(to) && tagged(from, PAGES, 7) ? "yes" : "NO");

		/* onto what the old place holds now */
		move(to, SIZE, SIZE, 0, from);
		printf("%s onto a mapping: %s, source %s\n", name,
		       whole(from) ? "intact" : "DAMAGED", is_mapped(to));

		move(from, SIZE, SIZE + 3 * MIB, 0, to);
		printf("%s grows: %s, then %c, source %s\n", name,
		       whole(to) ? "intact" : "DAMAGED", entry_of(to + SIZE), is_mapped(from));
		unmap(to + SIZE, 3 * MIB);

		move(to, SIZE, SIZE - 3 * MIB, 0, from);
		printf("%s shrinks: %s, then %s, source %s\n", name,
		       tagged(from, PAGES - 768, 0) ? "intact" : "DAMAGED",
		       is_mapped(from + SIZE - 3 * MIB), is_mapped(to));
		unmap(from, SIZE - 3 * MIB);

		map_at(from, SIZE, ANON);
		tag(from, PAGES, 0);
		move(from + 2 * MIB, 6 * MIB, 6 * MIB, 0, to);
		printf("%s moves its middle: %s %s %s, hole %s\n", name,
		       tagged(from, 512, 0) ? "intact" : "DAMAGED",
		       tagged(to, 1536, 512) ? "intact" : "DAMAGED",
		       tagged(from + 8 * MIB, 512, 2048) ? "intact" : "DAMAGED",
		       is_mapped(from + 2 * MIB));
		unmap(to, 6 * MIB);
		unmap(from, SIZE);
	}
}

/* Several VMAs in one call: from Linux 6.17 on, before that an error. */
static void vmas(void)
{
	for (size_t l = 0; l < ARRAY_SIZE(layouts); l++) {
		char *from = window(0) + layouts[l].from, *to = window(1) + layouts[l].to;
		size_t len = 16 * MIB, pages = len / PAGE;
		void *p;

		map_at(from, len, ANON);
		tag(from, pages, 0);
		if (mprotect(from + 5 * MIB, 4 * MIB, PROT_READ) ||
		    munmap(from + 12 * MIB, MIB))
			die("cannot make three VMAs and a gap");
		p = mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		printf("%s, three VMAs and a gap: %s,", layouts[l].name,
		       p == MAP_FAILED ? outcome(-1) : "ok");
		if (p == MAP_FAILED)
			p = from;
		printf(" %s %s\n", tagged(p, 3072, 0) ? "intact" : "DAMAGED",
		       tagged((char *)p + 13 * MIB, 768, 3328) ? "intact" : "DAMAGED");
		unmap(from, len);
		unmap(to, len);
	}
}

static void wait_good(pid_t pid, const char *what)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	printf("%s: child %s\n", what, status ? "DAMAGED" : "intact");
	fflush(stdout);
}

/* A child has the same pages, moves its own, and writes; both keep their own. */
static void forks(void)
{
	for (enum kind kind = ANON; kind <= THP; kind++) {
		for (size_t l = 0; l < ARRAY_SIZE(layouts); l++) {
			char *from = window(0) + layouts[l].from, *to = window(1) + layouts[l].to;
			char what[64];
			int go[2];
			pid_t pid;

			snprintf(what, sizeof(what), "%s %s", kind_names[kind], layouts[l].name);
			map_at(from, SIZE, kind);
			tag(from, PAGES, 0);
			fflush(stdout);
			if (pipe(go))
				die("pipe");
			pid = fork();
			if (!pid) {
				bool good = whole(from);
				char c;

				close(go[1]);
				if (read(go[0], &c, 1))
					die("pipe");
				good &= whole(from);
				move(from, SIZE, SIZE, 0, to);
				good &= whole(to);
				tag(to, PAGES / 2, 99);
				move(to, SIZE, SIZE, 0, from);
				good &= tagged(from, PAGES / 2, 99) &&
					tagged(from + SIZE / 2, PAGES / 2, PAGES / 2);
				_exit(!good);
			}
			moved(what, from, to, PAGES, whole);
			tag(to, PAGES, 5);
			close(go[1]);
			close(go[0]);
			wait_good(pid, what);
			printf("%s: parent %s\n", what, tagged(to, PAGES, 5) ? "intact" : "DAMAGED");
			unmap(to, SIZE);
		}
	}
}

static size_t count(const char *p, size_t pages, uint64_t bit)
{
	uint64_t *entries = pagemap(p, pages);
	size_t n = 0;

	for (size_t i = 0; i < pages; i++)
		n += !!(entries[i] & bit);
	free(entries);
	return n;
}

/*
 * A new VMA counts as dirty as a whole, which hides the bits of its entries; so
 * the memory moves next to a VMA that it then becomes a part of.
 */
static void softdirty(void)
{
	static const enum kind some[] = { ANON, THP, SHARED };

	for (size_t k = 0; k < ARRAY_SIZE(some); k++) {
		for (size_t l = 0; l < ARRAY_SIZE(layouts); l++) {
			char *from = window(0) + layouts[l].from, *to = window(1) + layouts[l].to;

			map_at(from, SIZE, some[k]);
			if (some[k] != SHARED)
				map_at(to - PAGE, PAGE, some[k]);
			tag(from, PAGES, 0);
			if (some[k] == ANON &&
			    madvise(from + SIZE / 2, SIZE / 4, MADV_PAGEOUT))
				die("MADV_PAGEOUT");
			write_to("/proc/self/clear_refs", "4");
			tag(from, PAGES / 4, 0);
			printf("%s %s: before %zu,", kind_names[some[k]], layouts[l].name,
			       count(from, PAGES, PM_SOFT_DIRTY));
			move(from, SIZE, SIZE, 0, to);
			printf(" after %zu", count(to, PAGES, PM_SOFT_DIRTY));
			printf(" contents %s\n", whole(to) ? "intact" : "DAMAGED");
			unmap(to - PAGE, SIZE + PAGE);
		}
	}
}

/* Memory that is left to stock code: device memory and hugetlb pages. */
static void special(void)
{
	int fd = open("/dev/mem", O_RDWR);
	char *from = window(0), *to = window(1), *p;

	/* no RAM and no device there; it is mapped and never touched */
	p = mmap(from, SIZE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0x4000000000);
	if (fd < 0 || p == MAP_FAILED)
		die("cannot map /dev/mem");
	move(from, SIZE, SIZE, 0, to);
	printf("pfnmap: new %s, old %s\n", is_mapped(to), is_mapped(from));
	unmap(to, SIZE);
	close(fd);

	p = mmap(from, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		 MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		die("cannot map hugetlb pages");
	tag(from, PAGES, 0);
	move(from, SIZE, SIZE, 0, to);
	printf("hugetlb: %s\n", whole(to) ? "intact" : "DAMAGED");
	unmap(to, SIZE);
}

/* Two GiB but for the first MiB, which stock rounds down and so moves as whole PUDs. */
static void head(void)
{
	char *from = window(0) + MIB, *to = window(1) + MIB;
	size_t len = 2 * GIB - MIB;

	map_at(from, len, ANON);
	for (size_t at = 0; at < len; at += len / 16)
		tag_one(from + at, at);
	move(from, len, len, 0, to);
	for (size_t at = 0; at < len; at += len / 16)
		if (!tagged_one(to + at, at))
			die("contents DAMAGED");
	printf("head: contents intact\n");
	unmap(to, len);
}

/* Many moves of one mapping: what is taken, and how often the TLB is flushed. */
static void plain(enum kind kind, const char *mib, const char *layout, const char *times)
{
	size_t len = strtoul(mib, NULL, 10) * MIB, pages = len / PAGE, l = 0;
	char *from, *to;

	while (l < ARRAY_SIZE(layouts) && strcmp(layouts[l].name, layout))
		l++;
	if (l == ARRAY_SIZE(layouts))
		die("no such layout");
	from = window(0) + layouts[l].from;
	to = window(1) + layouts[l].to;
	map_at(from, len, kind);
	tag(from, pages, 0);
	if (kind == THP && smaps_kb("AnonHugePages", from, len) * 1024UL != len)
		die("no huge pages");
	for (int i = atoi(times); i > 0; i--)
		move(i & 1 ? to : from, len, len, 0, i & 1 ? from : to);
	printf("contents %s\n", tagged(from, pages, 0) ? "intact" : "DAMAGED");
}

/* Where stack and libraries lie decides how many page tables there are. */
static void stay_put(char **argv)
{
	int was = personality(0xffffffff);

	if (was & ADDR_NO_RANDOMIZE)
		return;
	personality(was | ADDR_NO_RANDOMIZE);
	execv("/proc/self/exe", argv);
	die("exec");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} groups[] = {
		{ "kinds", kinds }, { "offsets", offsets }, { "flags", flags },
		{ "vmas", vmas }, { "forks", forks }, { "softdirty", softdirty },
		{ "special", special }, { "head", head },
	};

	pin();
	stay_put(argv);
	if (argc == 6 && !strcmp(argv[1], "plain") && !(atoi(argv[5]) & 1)) {
		plain(kind_of(argv[2]), argv[3], argv[4], argv[5]);
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(groups); i++) {
		if (!strcmp(argv[1], groups[i].name)) {
			groups[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: mremap_moves GROUP | plain KIND MIB LAYOUT TIMES (an even number)\n");
	return 2;
}
