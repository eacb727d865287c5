// SPDX-License-Identifier: GPL-2.0
/*
 * fork KIND...: forks with memory of each kind and prints what parent and child
 * then have, line by line, for a comparison with the path off and on.
 *
 * "moved" counts the pages that a process finds elsewhere after it has written to
 * all of its memory: those that it shared. A few that it did not share move as well,
 * while the LRU batch of a CPU has a reference to them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mremap.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL	102
#endif

#define SIZE		(12 * MIB)
#define PAGES		(SIZE / PAGE)
/* Neither end at the start of a page table. */
#define OFFSET		(2 * MIB + 7 * PAGE)
/* Not more pages than the batches of two CPUs hold. */
#define BATCHES		64
#define PM_FLAGS_SHIFT	55
/* Written after the fork; the page's number is added. */
#define CHILD		(1ULL << 40)
#define PARENT		(1ULL << 50)
#define ALONE		(1ULL << 51)
#define PM_FRAME	((1ULL << 55) - 1)

static uint64_t mixed(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3ULL;
}

/* What the page map says of each page, but for which frame it is. */
static uint64_t states(const uint64_t *map)
{
	uint64_t sum = 14695981039346656037ULL;

	for (size_t i = 0; i < PAGES; i++)
		sum = mixed(sum, map[i] >> PM_FLAGS_SHIFT);
	return sum;
}

/* How often each page is mapped. */
static uint64_t mapcounts(const uint64_t *map)
{
	int fd = open("/proc/kpagecount", O_RDONLY);
	uint64_t sum = 14695981039346656037ULL, n;

	if (fd < 0)
		die("cannot read kpagecount");
	for (size_t i = 0; i < PAGES; i++) {
		n = 0;
		if (map[i] & PM_PRESENT &&
		    pread(fd, &n, sizeof(n), (map[i] & PM_FRAME) * 8) != sizeof(n))
			die("cannot read kpagecount");
		/* of the zero page, it counts what others do */
		sum = mixed(sum, n > 3 ? 0 : n);
	}
	close(fd);
	return sum;
}

static const char *moved(const uint64_t *before, const char *p)
{
	static char many[32];
	uint64_t *after = pagemap(p, PAGES);
	size_t n = 0;

	for (size_t i = 0; i < PAGES; i++)
		n += before[i] & after[i] & PM_PRESENT && ((before[i] ^ after[i]) & PM_FRAME);
	free(after);
	snprintf(many, sizeof(many), "%zu", n);
	return n <= BATCHES ? "a few" : many;
}

static void describe(const char *kind, const char *who, const char *p)
{
	static const char *const smaps[] = {
		"Rss", "Pss", "Shared_Clean", "Shared_Dirty", "Private_Clean", "Private_Dirty",
		"Referenced", "Anonymous", "AnonHugePages", "Swap", "Locked",
	};
	static const char *const status[] = {
		"VmPTE", "VmSwap", "RssAnon", "RssFile", "RssShmem",
	};
	uint64_t *map = pagemap(p, PAGES);

	printf("%s %s: states %016lx mapcounts %016lx", kind, who, states(map), mapcounts(map));
	for (size_t i = 0; i < ARRAY_SIZE(smaps); i++)
		printf(" %s %ld", smaps[i], smaps_kb(smaps[i], p, SIZE));
	for (size_t i = 0; i < ARRAY_SIZE(status); i++)
		printf(" %s %ld", status[i], status_kb(getpid(), status[i]));
	printf("\n");
	fflush(stdout);
	free(map);
}

static bool gap[PAGES];		/* pages that must not be touched */
static uint64_t word[PAGES];	/* what each page holds */

static bool holds(const char *p, const uint64_t *want, uint64_t base)
{
	for (size_t i = 0; i < PAGES; i++)
		if (!gap[i] && *(volatile uint64_t *)(p + i * PAGE) != (want ? want[i] : base + i))
			return false;
	return true;
}

static void write_all(char *p, uint64_t base)
{
	for (size_t i = 0; i < PAGES; i++)
		if (!gap[i])
			*(volatile uint64_t *)(p + i * PAGE) = base + i;
}

static void put(char *p, size_t i)
{
	tag_one(p + i * PAGE, i);
	word[i] = *(volatile uint64_t *)(p + i * PAGE);
}

static char *put_all(char *p)
{
	for (size_t i = 0; i < PAGES; i++)
		put(p, i);
	return p;
}

/* The kinds. */

static char *plain(enum kind kind)
{
	return map_at(window(0) + OFFSET, SIZE, kind);
}

static char *make_anon(void)
{
	return put_all(plain(ANON));
}

/* Blocks of every third page, of nothing, of the zero page, and again. */
static char *make_holes(void)
{
	char *p = plain(ANON);
	volatile char sink;

	for (size_t i = 0; i < PAGES; i++) {
		if (i / 512 % 3 == 0 && i % 3)
			put(p, i);
		else if (i / 512 % 3 == 2)
			sink = p[i * PAGE];
	}
	(void)sink;
	return p;
}

/* A third of the pages written, a third read. */
static char *file(char *p)
{
	volatile char sink;

	for (size_t i = 0; i < PAGES; i++) {
		if (i % 3 == 1)
			put(p, i);
		else if (i % 3)
			sink = p[i * PAGE];
	}
	(void)sink;
	return p;
}

static char *make_shmem(void)
{
	return file(plain(PRIVATE));
}

static char *make_file(void)
{
	char *p = window(0) + OFFSET, name[] = "/var/tmp/fork.XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) || posix_fallocate(fd, 0, SIZE) ||
	    mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) != p)
		die("cannot map a file");
	close(fd);
	return file(p);
}

static char *make_swap(void)
{
	char *p = make_anon();

	for (size_t i = 0; i < PAGES; i += 64)
		if (i / 512 % 2 && madvise(p + i * PAGE, (i % 128 ? 32 : 8) * PAGE, MADV_PAGEOUT))
			die("MADV_PAGEOUT");
	return p;
}

/* Whole ones, one that is split, and tables between. */
static char *make_thp(void)
{
	char *p = window(0) + OFFSET, *huge = window(0) + 2 * HUGE;

	if (mmap(p, SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != p)
		die("mmap");
	put_all(p);
	if (madvise(huge, 3 * HUGE, MADV_COLLAPSE) ||
	    smaps_kb("AnonHugePages", p, SIZE) != 3 * (long)HUGE / 1024)
		die("no huge pages");
	if (madvise(huge + HUGE + 5 * PAGE, 3 * PAGE, MADV_DONTNEED))
		die("madvise");
	for (size_t i = 0; i < 3; i++)
		word[(huge + HUGE - p) / PAGE + 5 + i] = 0;
	return p;
}

static char *make_ksm(void)
{
	char *p = plain(ANON);
	long merged = 0;

	for (size_t i = 0; i < PAGES; i++)
		*(uint64_t *)(p + i * PAGE) = word[i] = i % 2 ? 1 : i;
	if (madvise(p, SIZE, MADV_MERGEABLE))
		die("MADV_MERGEABLE");
	write_to("/sys/kernel/mm/ksm/run", "1");
	while (merged < (long)PAGES / 2) {
		FILE *f = fopen("/proc/self/ksm_merging_pages", "r");

		if (!f || fscanf(f, "%ld", &merged) != 1)
			die("cannot read ksm_merging_pages");
		fclose(f);
		usleep(10000);
	}
	write_to("/sys/kernel/mm/ksm/run", "0");
	return p;
}

static int ring = -1;

/* The kernel keeps a few pages of each block pinned. */
static char *make_pinned(void)
{
	struct io_uring_params params = {};
	struct iovec iov[PAGES / 512];
	char *p = make_anon();

	for (size_t i = 0; i < PAGES / 512; i++)
		iov[i] = (struct iovec){ p + (i * 512 + 100 + i) * PAGE, 3 * PAGE };
	ring = syscall(__NR_io_uring_setup, 4, &params);
	if (ring < 0 || syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, iov,
				PAGES / 512))
		die("io_uring");
	return p;
}

static char *make_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect wp = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *p = make_anon();

	reg.range.start = (uintptr_t)p;
	reg.range.len = SIZE;
	wp.range.start = (uintptr_t)p + SIZE / 4;
	wp.range.len = SIZE / 2;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg) ||
	    ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
		die("userfaultfd");
	for (size_t i = PAGES / 4; i < PAGES * 3 / 4; i++)
		gap[i] = true;
	return p;
}

/* Marked entries where no page may be touched. */
static char *make_guard(void)
{
	char *p = make_anon();

	for (size_t i = 300; i < PAGES; i += 700) {
		if (madvise(p + i * PAGE, 2 * PAGE, MADV_GUARD_INSTALL))
			die("MADV_GUARD_INSTALL");
		gap[i] = gap[i + 1] = true;
	}
	return p;
}

static char *make_none(void)
{
	char *p = make_anon();

	if (mprotect(p, SIZE, PROT_NONE))
		die("mprotect");
	memset(gap, true, sizeof(gap));
	return p;
}

static char *make_locked(void)
{
	char *p = make_anon();

	if (mlock(p, SIZE))
		die("mlock");
	return p;
}

static char *make_wiped(void)
{
	char *p = make_anon();

	if (madvise(p, SIZE, MADV_WIPEONFORK))
		die("MADV_WIPEONFORK");
	return p;
}

static char *make_cleared(void)
{
	char *p = make_anon();

	write_to("/proc/self/clear_refs", "4");
	for (size_t i = 0; i < PAGES; i += 5)
		put(p, i);
	write_to("/proc/self/clear_refs", "1");
	return p;
}

static const struct {
	const char *name;
	char *(*make)(void);
} kinds[] = {
	{ "anon", make_anon }, { "holes", make_holes }, { "shmem", make_shmem },
	{ "file", make_file }, { "swap", make_swap }, { "thp", make_thp },
	{ "ksm", make_ksm }, { "pinned", make_pinned }, { "uffd", make_uffd },
	{ "guard", make_guard }, { "none", make_none }, { "locked", make_locked },
	{ "wiped", make_wiped }, { "cleared", make_cleared },
};

/* What the child does, in step with the parent. */
static void child(const char *kind, char *p, int from, int to)
{
	uint64_t *map = pagemap(p, PAGES);
	char c = 0;

	describe(kind, "child", p);
	if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
		die("pipe");
	/* the parent has written by now */
	if (strcmp(kind, "wiped"))
		printf("%s child: contents %s\n", kind,
		       holds(p, word, 0) ? "intact" : "DAMAGED");
	write_all(p, CHILD);
	printf("%s child: %s moved\n", kind, moved(map, p));
	describe(kind, "child at the end", p);
	if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
		die("pipe");
	printf("%s child: contents %s\n", kind,
	       holds(p, NULL, CHILD) ? "its own" : "DAMAGED");
	fflush(stdout);
	_exit(0);
}

static void run(const char *kind, char *p)
{
	uint64_t *map;
	int to[2], from[2], status;
	char c = 0;
	pid_t pid;

	if (pipe(to) || pipe(from))
		die("pipe");
	map = pagemap(p, PAGES);
	describe(kind, "before", p);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		child(kind, p, to[0], from[1]);
	if (read(from[0], &c, 1) != 1)
		die("pipe");
	describe(kind, "parent", p);
	printf("%s parent: contents %s\n", kind, holds(p, word, 0) ? "intact" : "DAMAGED");
	write_all(p, PARENT);
	printf("%s parent: %s moved\n", kind, moved(map, p));
	if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
		die("pipe");
	printf("%s parent: contents %s\n", kind,
	       holds(p, NULL, PARENT) ? "its own" : "DAMAGED");
	describe(kind, "parent at the end", p);
	fflush(stdout);
	if (write(to[1], &c, 1) != 1 || waitpid(pid, &status, 0) != pid || status)
		die("the child failed");
	free(map);
	/* alone again: pages are used again where they are */
	map = pagemap(p, PAGES);
	write_all(p, ALONE);
	printf("%s parent alone: %s moved\n", kind, moved(map, p));
	describe(kind, "parent alone", p);
	free(map);
	unmap(p, SIZE);
	memset(gap, false, sizeof(gap));
	memset(word, 0, sizeof(word));
	if (ring >= 0)
		close(ring);
	ring = -1;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t k = 0;

		while (k < ARRAY_SIZE(kinds) && strcmp(kinds[k].name, argv[i]))
			k++;
		if (k == ARRAY_SIZE(kinds))
			die("no such kind of memory: %s", argv[i]);
		run(argv[i], kinds[k].make());
	}
	return 0;
}
