// SPDX-License-Identifier: GPL-2.0
/*
 * mremap_race ADVERSARY KIND LAYOUT MIB SECONDS: memory is moved to and fro while
 * others use it, to catch a translation that has outlived its page.
 *
 * A stale writer writes through the first address only, wherever the memory is:
 * after a move away from there nothing it writes may arrive. A counter counts up
 * in each page, at whichever address works, and must find what it wrote last.
 * The adversary meanwhile takes pages away from below:
 *
 *   none      nobody does
 *   reclaim   another process has the pages swapped out
 *   compact   the kernel migrates pages
 *   migrate   another process has them moved between two nodes
 *   truncate  the file is cut short and grown again (KIND shared)
 *   retract   another process punches holes, writes and makes huge pages, which
 *             takes page tables away from this one (KIND shared)
 *
 * With the last two, pages become empty and no counter survives; what is looked
 * for is a page that holds what belongs to another.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mremap.h"

/* In each page, behind the tag. */
#define STALE		8
#define COUNT		16

static const struct layout {
	const char *name;
	size_t from, to;
} layouts[] = {
	{ "aligned", 2 * MIB, GIB + 4 * MIB },
	{ "congruent", 2 * MIB + 7 * PAGE, GIB + 6 * MIB + 7 * PAGE },
	{ "unaligned", 2 * MIB, GIB + 4 * MIB + PAGE },
	{ "odd", 2 * MIB + PAGE, GIB + 4 * MIB },
};

enum adversary { NONE, RECLAIM, COMPACT, MIGRATE, TRUNCATE, RETRACT, ADVERSARIES };

static const char *const adversary_names[] = {
	"none", "reclaim", "compact", "migrate", "truncate", "retract",
};

static enum adversary adversary;
static size_t len, pages;
static char *first, *second;
static int fd = -1;
static atomic_bool ending;
static atomic_int damage;
static unsigned long counted, stale_writes;
static atomic_ulong *collapses;		/* of the adversary, which is another process */
static __thread sigjmp_buf retry;

static void damaged(const char *what, size_t page, uint64_t got, uint64_t expected)
{
	if (!atomic_fetch_add(&damage, 1))
		printf("DAMAGED: %s: page %zu has %#lx, not %#lx\n", what, page, got, expected);
	atomic_store(&ending, true);
}

static void on_fault(int sig)
{
	siglongjmp(retry, 1);
}

static bool emptied(void)
{
	return adversary == TRUNCATE || adversary == RETRACT;
}

static void *write_stale(void *arg)
{
	volatile size_t i = 0;

	while (!atomic_load(&ending)) {
		if (sigsetjmp(retry, 1))
			sched_yield();
		for (; i < pages; i++) {
			first[i * PAGE + STALE] = 0x77;
			stale_writes++;
		}
		i = 0;
	}
	return NULL;
}

static void *count(void *arg)
{
	uint64_t *last = calloc(pages, sizeof(*last));
	volatile size_t i = 0;
	volatile bool there = false;

	if (!last)
		die("out of memory");
	while (!atomic_load(&ending)) {
		if (sigsetjmp(retry, 1))
			there = !there;
		for (; i < pages && !atomic_load(&ending); i++) {
			char *p = (there ? second : first) + i * PAGE + COUNT;
			volatile uint64_t *word = (void *)p;
			uint64_t got = *word;

			if (got != last[i] && !(emptied() && !got)) {
				damaged("counter", i, got, last[i]);
				break;
			}
			*word = got + 1;
			last[i] = got + 1;
			counted++;
		}
		i = 0;
	}
	free(last);
	return NULL;
}

/* All adversaries end when their parent or the pipe does. */
static pid_t start_adversary(void (*fight)(void))
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (;;)
		fight();
}

/* At both places: one of them is empty, and which one changes. */
static void reclaim(void)
{
	static int pidfd = -1;
	struct iovec range[2] = { { first, len }, { second, len } };

	if (pidfd < 0)
		pidfd = syscall(SYS_pidfd_open, getppid(), 0);
	for (int i = 0; i < 2; i++)
		if (syscall(SYS_process_madvise, pidfd, &range[i], 1, MADV_PAGEOUT, 0) < 0 &&
		    errno != ENOMEM)
			die("process_madvise");
	usleep(1000);
}

static void compact(void)
{
	write_to("/proc/sys/vm/compact_memory", "1");
}

/* To one node and back, at both places. */
static void migrate(void)
{
	static void **addrs;
	static int *nodes, *status;
	size_t n = 2 * pages;

	if (!addrs) {
		addrs = calloc(n, sizeof(*addrs));
		nodes = calloc(n, sizeof(*nodes));
		status = calloc(n, sizeof(*status));
		if (!addrs || !nodes || !status)
			die("out of memory");
		for (size_t i = 0; i < n; i++)
			addrs[i] = (i < pages ? first : second) + i % pages * PAGE;
	}
	for (size_t i = 0; i < n; i++)
		nodes[i] = !nodes[i];
	if (syscall(SYS_move_pages, getppid(), n, addrs, nodes, status, MPOL_MF_MOVE_ALL) < 0)
		die("move_pages");
}

static void cut(void)
{
	if (ftruncate(fd, len / 2 + PAGE) || ftruncate(fd, len))
		die("ftruncate");
	usleep(1000);		/* or nobody else gets at the file */
}

/* Each tag appears as a whole: who looks at the page meanwhile sees it or nothing. */
static void retract(void)
{
	static char *mine;

	if (!mine) {
		mine = mmap(window(4), len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
		if (mine == MAP_FAILED)
			die("mmap");
	}
	for (size_t at = 0; at + HUGE <= len; at += HUGE) {
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, HUGE))
			die("cannot punch a hole");
		tag(mine + at, HUGE / PAGE, at / PAGE);
		/* fails when a page is pinned or busy */
		if (!madvise(mine + at, HUGE, MADV_COLLAPSE))
			atomic_fetch_add(collapses, 1);
	}
}

static void look(const char *p, const char *where)
{
	for (volatile size_t i = 0; i < pages; i++) {
		const volatile uint64_t *word = (const void *)(p + i * PAGE);
		uint64_t got;

		if (sigsetjmp(retry, 1))
			continue;	/* beyond the end of the file */
		got = *word;
		if (!tagged_one((char *)&got, i) && !(emptied() && !got))
			damaged(where, i, got, 0);
	}
}

/* Nothing that the stale writer does may get here. */
static void look_for_stale(char *p)
{
	for (size_t i = 0; i < pages; i++)
		p[i * PAGE + STALE] = 0x11;
	for (int turn = 0; turn < (adversary == RECLAIM ? 1 : 3); turn++)
		for (size_t i = 0; i < pages; i++)
			if (*(volatile char *)(p + i * PAGE + STALE) != 0x11)
				damaged("stale write", i, p[i * PAGE + STALE] & 0xff, 0x11);
}

static unsigned long race(uint64_t end)
{
	unsigned long moves = 0;

	while (now_ns() < end && !atomic_load(&ending)) {
		move(first, len, len, 0, second);
		if (!emptied())
			look_for_stale(second);
		look(second, "second place");
		move(second, len, len, 0, first);
		look(first, "first place");
		moves += 2;
	}
	return moves;
}

static int index_of(const char *name, const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	die("what is \"%s\"?", name);
}

static void make_memory(const char *kind, const char *layout)
{
	size_t l = 0;

	while (l < ARRAY_SIZE(layouts) && strcmp(layouts[l].name, layout))
		l++;
	if (l == ARRAY_SIZE(layouts))
		die("no such layout");
	first = window(0) + layouts[l].from;
	second = window(1) + layouts[l].to;
	if (!strcmp(kind, "shared")) {
		fd = memfd_create("race", 0);
		if (fd < 0 || ftruncate(fd, len) ||
		    mmap(first, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
			 fd, 0) != first)
			die("cannot map a file");
	} else {
		map_at(first, len, kind_of(kind));
	}
	tag(first, pages, 0);
}

int main(int argc, char **argv)
{
	static void (*const fights[])(void) = {
		[RECLAIM] = reclaim, [COMPACT] = compact, [MIGRATE] = migrate,
		[TRUNCATE] = cut, [RETRACT] = retract,
	};
	struct sigaction sa = { .sa_handler = on_fault };
	pthread_t writer, counter;
	unsigned long moves;
	pid_t enemy = 0;
	int status;

	if (argc != 6) {
		fprintf(stderr, "usage: mremap_race ADVERSARY KIND LAYOUT MIB SECONDS\n");
		return 2;
	}
	adversary = index_of(argv[1], adversary_names, ADVERSARIES);
	len = strtoul(argv[4], NULL, 10) * MIB;
	pages = len / PAGE;
	make_memory(argv[2], argv[3]);
	if (emptied() && fd < 0)
		die("this takes a shared file");
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	collapses = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (collapses == MAP_FAILED)
		die("mmap");
	if (adversary)
		enemy = start_adversary(fights[adversary]);
	if (pthread_create(&writer, NULL, write_stale, NULL) ||
	    pthread_create(&counter, NULL, count, NULL))
		die("cannot make threads");
	moves = race(now_ns() + strtoul(argv[5], NULL, 10) * 1000000000ULL);
	atomic_store(&ending, true);
	pthread_join(writer, NULL);
	pthread_join(counter, NULL);
	if (enemy) {
		if (waitpid(enemy, &status, WNOHANG))
			die("the adversary has given up");
		kill(enemy, SIGKILL);
		waitpid(enemy, &status, 0);
	}
	printf("moves %lu counted %lu stale writes %lu collapses %lu\n", moves, counted,
	       stale_writes, *collapses);
	if (!moves || !counted || !stale_writes || (adversary == RETRACT && !*collapses)) {
		puts("NOTHING was tried");
		return 1;
	}
	puts(damage ? "DAMAGED" : "intact");
	return damage ? 1 : 0;
}
