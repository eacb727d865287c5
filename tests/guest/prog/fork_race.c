// SPDX-License-Identifier: GPL-2.0
/*
 * fork_race race FORKS MIB	two threads write all over the memory while it is forked:
 *				what a child has must not change, and what a thread has
 *				written must stay
 * fork_race depth LEVELS MIB	each child writes some pages and forks again
 * fork_race fail FORKS MIB	forks while the kernel lets the first, second, ... allocation
 *				fail, until all went well, and again
 * fork_race children MOST MIB	has children until there is no memory for one more, and
 *				prints how many
 * fork_race pagetables CGROUP MIB
 *				prints by how much a fork raises what the cgroup pays for
 *				page tables, in bytes
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mremap.h"

#define WRITERS		2
#define WORDS		(PAGE / sizeof(uint64_t))

static uint64_t *memory;
static size_t pages;
static atomic_bool ending, wrong;

static void make(size_t mib)
{
	pages = mib * (MIB / PAGE);
	memory = (uint64_t *)map_at(window(0) + 5 * PAGE, pages * PAGE, ANON);
	for (size_t i = 0; i < pages; i++)
		memory[i * WORDS] = 1;
}

/* Each has a word of every page, and raises it page after page. */
static void *writer(void *arg)
{
	volatile uint64_t *mine = memory + (uintptr_t)arg;
	uint64_t round = 0;

	while (!atomic_load(&ending)) {
		round++;
		for (size_t i = 0; i < pages; i++) {
			if (mine[i * WORDS] != round - 1)
				atomic_store(&wrong, true);
			mine[i * WORDS] = round;
		}
	}
	return NULL;
}

static uint64_t sum(void)
{
	uint64_t s = 0;

	for (size_t i = 0; i < pages; i++)
		for (size_t w = 1; w <= WRITERS; w++)
			s = (s ^ ((volatile uint64_t *)memory)[i * WORDS + w]) * 0x100000001b3ULL;
	return s;
}

/* A writer is in one round, and begins at the first page. */
static bool one_round(void)
{
	for (size_t w = 1; w <= WRITERS; w++) {
		uint64_t first = memory[w];

		for (size_t i = 1; i < pages; i++) {
			uint64_t here = memory[i * WORDS + w];

			if (here != first && here + 1 != first)
				return false;
			/* once behind, always behind */
			if (here > memory[(i - 1) * WORDS + w])
				return false;
		}
	}
	return true;
}

static pid_t checked_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	return pid;
}

static bool ended_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) >= 0 && !status;
}

static int race(unsigned int forks)
{
	pthread_t thread[WRITERS];

	for (uintptr_t w = 0; w < WRITERS; w++)
		if (pthread_create(&thread[w], NULL, writer, (void *)(w + 1)))
			die("pthread_create");
	for (unsigned int i = 0; i < forks && !atomic_load(&wrong); i++) {
		pid_t pid = checked_fork();

		if (!pid) {
			uint64_t seen = sum();

			_exit(!one_round() || sum() != seen);
		}
		if (!ended_well(pid))
			atomic_store(&wrong, true);
	}
	atomic_store(&ending, true);
	for (int w = 0; w < WRITERS; w++)
		pthread_join(thread[w], NULL);
	printf("%u forks, %s\n", forks, wrong ? "SOME WRONG" : "all good");
	return wrong;
}

/* Level by level, each with its own pages: all else must be as it was. */
static bool level_good(unsigned int level)
{
	for (size_t i = 0; i < pages; i++) {
		unsigned int mine = i % 16 < level ? i % 16 + 2 : 1;

		if (((volatile uint64_t *)memory)[i * WORDS] != mine)
			return false;
	}
	return true;
}

static bool descend(unsigned int level, unsigned int levels)
{
	pid_t pid;

	if (!level_good(level))
		return false;
	if (level == levels)
		return true;
	pid = checked_fork();
	if (!pid) {
		for (size_t i = level; i < pages; i += 16)
			memory[i * WORDS] = level + 2;
		_exit(!descend(level + 1, levels));
	}
	return ended_well(pid) && level_good(level);
}

static int depth(unsigned int levels)
{
	bool good = levels <= 16 && descend(0, levels);

	printf("%u deep, %s\n", levels, good ? "all good" : "SOME WRONG");
	return !good;
}

static int fail(unsigned int forks)
{
	unsigned int n = 0, refused = 0, rounds = 0;
	bool good = true;

	while (forks-- && good) {
		pid_t pid;
		bool hit;
		int err;

		fail_nth(++n);
		pid = fork();
		if (!pid)
			_exit(!level_good(0));
		err = errno;
		hit = has_failed();
		fail_nth(0);
		if (pid < 0 && (!hit || err != ENOMEM))
			die("allocation %u: fork", n);
		good = (pid < 0 || ended_well(pid)) && level_good(0);
		refused += pid < 0;
		if (!hit) {
			rounds++;
			n = 0;
		}
	}
	printf("refused %u, rounds %u, %s\n", refused, rounds, good ? "all good" : "SOME WRONG");
	return !good;
}

static int children(unsigned int most)
{
	unsigned int n = 0;
	bool good = true;
	int ends[2];
	pid_t pid;
	char c;

	if (pipe(ends))
		die("pipe");
	for (pid = 1; n < most && pid >= 0; n += pid >= 0) {
		pid = fork();
		if (!pid) {
			close(ends[1]);
			_exit(read(ends[0], &c, 1) || !level_good(0));
		}
	}
	if (pid < 0 && errno != ENOMEM)
		die("fork");
	close(ends[1]);
	for (unsigned int i = 0; i < n; i++)
		good = ended_well(-1) && good;
	printf("%u %s\n", n, good && level_good(0) ? "all good" : "SOME WRONG");
	return !good;
}

static long charged(const char *cgroup)
{
	char name[256], key[64];
	long value, found = -1;
	FILE *f;

	snprintf(name, sizeof(name), "%s/memory.stat", cgroup);
	f = fopen(name, "r");
	if (!f)
		die("cannot read %s", name);
	while (fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, "pagetables"))
			found = value;
	fclose(f);
	return found;
}

/* Read when the figures of all CPUs have come together, which takes two seconds. */
static int pagetables(const char *cgroup)
{
	int ends[2];
	long before;
	pid_t pid;
	char c;

	sleep(3);
	before = charged(cgroup);
	if (pipe(ends))
		die("pipe");
	pid = checked_fork();
	if (!pid) {
		close(ends[1]);
		_exit(read(ends[0], &c, 1) != 0);
	}
	close(ends[0]);
	sleep(3);
	printf("%ld\n", charged(cgroup) - before);
	close(ends[1]);
	return !ended_well(pid);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		die("usage: fork_race race|depth|fail|children|pagetables WHAT MIB");
	make(strtoul(argv[3], NULL, 10));
	if (!strcmp(argv[1], "race"))
		return race(strtoul(argv[2], NULL, 10));
	if (!strcmp(argv[1], "depth"))
		return depth(strtoul(argv[2], NULL, 10));
	if (!strcmp(argv[1], "children"))
		return children(strtoul(argv[2], NULL, 10));
	if (!strcmp(argv[1], "fail"))
		return fail(strtoul(argv[2], NULL, 10));
	return pagetables(argv[2]);
}
