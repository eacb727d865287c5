// SPDX-License-Identifier: GPL-2.0
/*
 * mremap as programs use it, and where memory is short.
 *
 *   realloc LOG2 N      a buffer of each of N threads doubles up to that size
 *   deposit HOW ROUNDS  huge pages move by whole entries, and the process ends;
 *                       HOW: whole, swapped (by half), collapsed
 *   nomem CGROUP SHIFT  moves by SHIFT pages across page tables, new ones of
 *                       which do not fit into the cgroup that it is in: the call
 *                       fails, and all is where it was
 *   exec MIB            a new program with that much in its arguments
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mremap.h"

/*
 * What one thread's buffer has become: it doubles, so that what it leaves behind
 * never has room for it, and something else lies above.
 */
struct growth {
	pthread_t thread;
	int log2;
	int moves;		/* of what the path takes */
	uint64_t us[64];	/* of each realloc, by size */
	bool damaged;
};

static uint64_t word_of(uint64_t n)
{
	return n * 0x9e3779b97f4a7c15ULL;
}

static void *grow(void *arg)
{
	struct growth *g = arg;
	uint64_t *p = NULL, *was, n = 0, words, begin;

	for (int i = 3; i <= g->log2; i++) {
		was = p;
		words = (1UL << i) / 8;
		begin = now_ns();
		p = realloc(p, words * 8);
		g->us[i] = (now_ns() - begin) / 1000;
		if (!p)
			die("realloc");
		g->moves += p != was && i > 22;
		for (uint64_t k = 0; k < n; k++)
			g->damaged |= p[k] != word_of(k);
		for (; n < words; n++)
			p[n] = word_of(n);
	}
	free(p);
	return NULL;
}

static int grow_all(int log2, int threads)
{
	struct growth *all = calloc(threads, sizeof(*all));
	bool damaged = false;
	int moves = 0;

	for (int t = 0; t < threads; t++) {
		all[t].log2 = log2;
		if (pthread_create(&all[t].thread, NULL, grow, &all[t]))
			die("cannot make threads");
	}
	for (int t = 0; t < threads; t++) {
		pthread_join(all[t].thread, NULL);
		moves += all[t].moves;
		damaged |= all[t].damaged;
	}
	for (int i = 23; i <= log2; i++)
		printf("to 2^%d: %lu us\n", i, all[0].us[i]);
	printf("moves %d\n%s\n", moves, damaged ? "DAMAGED" : "intact");
	return damaged;
}

static int deposit(const char *how, int rounds)
{
	char *a = (char *)GIB, *b = (char *)(2 * GIB);
	size_t len = 10 * MIB, pages = len / PAGE;
	bool collapsed = !strcmp(how, "collapsed");

	map_at(a, len, collapsed ? ANON : THP);
	tag(a, pages, 0);
	if (collapsed && (madvise(a, len, MADV_HUGEPAGE) || madvise(a, len, MADV_COLLAPSE)))
		die("MADV_COLLAPSE");
	if (!collapsed && smaps_kb("AnonHugePages", a, len) != 10240)
		die("no huge pages");
	for (int i = 0; i < rounds; i++) {
		if (i == rounds / 2 && !strcmp(how, "swapped") &&
		    madvise(a, len / 2, MADV_PAGEOUT))
			die("MADV_PAGEOUT");
		move(a, len, len, 0, b);
		move(b, len, len, 0, a);
	}
	puts(tagged(a, pages, 0) ? "intact" : "DAMAGED");
	return !tagged(a, pages, 0);
}

/* One page in each table, so that the tables weigh as much as the pages. */
#define SPARSE_TABLES	2048UL
#define SPARSE_LEN	(SPARSE_TABLES * HUGE)

static bool sparse_intact(const char *p)
{
	for (size_t i = 0; i < SPARSE_TABLES; i++)
		if (!tagged_one(p + i * HUGE + 9 * PAGE, i))
			return false;
	return true;
}

static long number_in(const char *dir, const char *file)
{
	char path[256];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &n) != 1)
		die("%s", path);
	fclose(f);
	return n;
}

static void limit(int fd, const char *value)
{
	if (pwrite(fd, value, strlen(value), 0) != (ssize_t)strlen(value))
		die("cannot limit the memory to %s", value);
}

static int nomem(const char *cgroup, size_t pages)
{
	char *from = window(0) + 2 * MIB, *to = window(1) + 4 * MIB + pages * PAGE;
	char value[256], *p;
	const char *how;
	bool good;
	int fd;

	/* an open file: to open one takes memory */
	snprintf(value, sizeof(value), "%s/memory.max", cgroup);
	fd = open(value, O_WRONLY);
	if (fd < 0)
		die("%s", value);
	map_at(from, SPARSE_LEN, ANON);
	for (size_t i = 0; i < SPARSE_TABLES; i++)
		tag_one(from + i * HUGE + 9 * PAGE, i);
	snprintf(value, sizeof(value), "%lu", number_in(cgroup, "memory.current") + 2 * MIB);
	limit(fd, value);
	p = mremap(from, SPARSE_LEN, SPARSE_LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	how = p == MAP_FAILED ? outcome(-1) : "ok";
	limit(fd, "max");
	printf("%s,", how);
	if (p == MAP_FAILED)
		p = from;
	good = sparse_intact(p);
	printf(" %s,", good ? "intact" : "DAMAGED");
	/* now there is room */
	move(p, SPARSE_LEN, SPARSE_LEN, 0, p == from ? to : from);
	p = p == from ? to : from;
	good &= sparse_intact(p);
	printf(" then %s\n", good ? "intact" : "DAMAGED");
	unmap(p, SPARSE_LEN);
	close(fd);
	return !good;
}

/* As many arguments as fit, each a letter over and over. */
#define ARGUMENT	(96UL << 10)

static int exec_big(size_t mib)
{
	size_t n = mib * MIB / ARGUMENT;
	char **argv = calloc(n + 3, sizeof(*argv));
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (!argv || setrlimit(RLIMIT_STACK, &unlimited))
		die("setrlimit");
	argv[0] = "mremap_mem";
	argv[1] = "arguments";
	for (size_t i = 0; i < n; i++) {
		argv[i + 2] = malloc(ARGUMENT);
		memset(argv[i + 2], 'a' + i % 26, ARGUMENT - 1);
		argv[i + 2][ARGUMENT - 1] = '\0';
	}
	execv("/proc/self/exe", argv);
	die("exec");
}

static int check_arguments(int argc, char **argv)
{
	size_t sum = 0;

	for (int i = 2; i < argc; i++) {
		char set[2] = { 'a' + (i - 2) % 26, '\0' };

		if (strspn(argv[i], set) != ARGUMENT - 1) {
			printf("DAMAGED: argument %d\n", i);
			return 1;
		}
		sum += ARGUMENT;
	}
	printf("arguments of %zu KiB\nintact\n", sum >> 10);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "arguments"))
		return check_arguments(argc, argv);
	if (argc == 4 && !strcmp(argv[1], "realloc"))
		return grow_all(atoi(argv[2]), atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "deposit"))
		return deposit(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "nomem"))
		return nomem(argv[2], strtoul(argv[3], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "exec"))
		return exec_big(strtoul(argv[2], NULL, 10));
	fprintf(stderr, "usage: mremap_mem realloc LOG2 N | deposit HOW ROUNDS | "
		"nomem CGROUP SHIFT | exec MIB\n");
	return 2;
}
