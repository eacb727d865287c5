// SPDX-License-Identifier: GPL-2.0
/*
 * fork_race race FORKS MIB	two threads write all over the memory while it is forked:
 *				what a child has must not change, and what a thread has
 *				written must stay
 * fork_race depth LEVELS MIB	each child writes some pages and forks again
 * fork_race low LEVELS MIB	the same with memory that begins at address 0
 * fork_race direct FORKS MIB	one thread reads from a file around the page cache, into pages
 *				that another writes to: pinned, they stay where they are
 * fork_race fail FORKS MIB	forks while the kernel lets the first, second, ... allocation
 *				fail, until all went well, and again
 * fork_race children N MIB	has that many children at once
 * fork_race pagetables CGROUP MIB
 *				prints by how much a fork raises what the cgroup pays for
 *				page tables, in bytes
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
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

static void make(char *at, size_t mib)
{
	pages = mib * (MIB / PAGE);
	memory = (uint64_t *)map_at(at, pages * PAGE, ANON);
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

#define SECTOR		512
static uint64_t file_data[SECTOR / 8];
static int file;

/* Into the first bytes of page after page; the disk writes there by itself. */
static void *reader(void *arg)
{
	unsigned long *reads = arg;

	for (size_t i = 0; !atomic_load(&ending); i = (i + 17) % pages) {
		char *to = (char *)(memory + i * WORDS);

		memset(to, 0, SECTOR);
		if (pread(file, to, SECTOR, 0) != SECTOR)
			die("cannot read around the page cache");
		if (memcmp(to, file_data, SECTOR))
			atomic_store(&wrong, true);
		++*reads;
	}
	return NULL;
}

static void *scribbler(void *arg)
{
	while (!atomic_load(&ending))
		for (size_t i = 0; i < pages; i++)
			((volatile uint64_t *)memory)[i * WORDS + WORDS - 1]++;
	return NULL;
}

static int direct(unsigned int forks)
{
	char name[] = "/var/tmp/fork_race.XXXXXX";
	unsigned long reads = 0;
	pthread_t thread[2];

	for (size_t i = 0; i < SECTOR / 8; i++)
		file_data[i] = ~i;
	file = mkstemp(name);
	if (file < 0 || write(file, file_data, SECTOR) != SECTOR || fsync(file) || close(file))
		die("cannot write %s", name);
	file = open(name, O_RDONLY | O_DIRECT);
	if (file < 0 || unlink(name))
		die("cannot open %s", name);
	if (pthread_create(&thread[0], NULL, reader, &reads) ||
	    pthread_create(&thread[1], NULL, scribbler, NULL))
		die("pthread_create");
	while (forks-- && !atomic_load(&wrong)) {
		pid_t pid = checked_fork();

		if (!pid)
			_exit(0);
		if (!ended_well(pid))
			die("a child failed");
	}
	atomic_store(&ending, true);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	printf("%s reads, %s\n", reads >= 100 ? "many" : "few", wrong ? "SOME WRONG" : "all good");
	return wrong;
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

static int children(unsigned int n)
{
	bool good = true;
	int ends[2];
	char c;

	if (pipe(ends))
		die("pipe");
	for (unsigned int i = 0; i < n; i++) {
		if (!checked_fork()) {
			close(ends[1]);
			_exit(read(ends[0], &c, 1) || !level_good(0));
		}
	}
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

/* Read when the figures of all CPUs have come together, which takes two seconds or more. */
static long settled(const char *cgroup)
{
	long before = -1, now;

	for (;; before = now) {
		now = charged(cgroup);
		if (now == before)
			return now;
		sleep(3);
	}
}

/* Where a CPU has been idle since, it keeps the top table of what ran there before exec. */
static void visit_all_cpus(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (CPU_ISSET(cpu, &all) && sched_setaffinity(0, sizeof(one), &one))
			die("cannot run on CPU %d", cpu);
	}
	if (sched_setaffinity(0, sizeof(all), &all))
		die("sched_setaffinity");
}

static int pagetables(const char *cgroup)
{
	int ends[2];
	long before;
	pid_t pid;
	char c;

	visit_all_cpus();
	before = settled(cgroup);
	if (pipe(ends))
		die("pipe");
	pid = checked_fork();
	if (!pid) {
		close(ends[1]);
		_exit(read(ends[0], &c, 1) != 0);
	}
	close(ends[0]);
	printf("%ld\n", settled(cgroup) - before);
	close(ends[1]);
	return !ended_well(pid);
}

int main(int argc, char **argv)
{
	unsigned int n;
	bool low;

	if (argc != 4)
		die("usage: fork_race race|depth|low|direct|fail|children|pagetables WHAT MIB");
	low = !strcmp(argv[1], "low");
	make(low ? NULL : window(0) + 5 * PAGE, strtoul(argv[3], NULL, 10));
	n = strtoul(argv[2], NULL, 10);
	if (!strcmp(argv[1], "race"))
		return race(n);
	if (low || !strcmp(argv[1], "depth"))
		return depth(n);
	if (!strcmp(argv[1], "direct"))
		return direct(n);
	if (!strcmp(argv[1], "children"))
		return children(n);
	if (!strcmp(argv[1], "fail"))
		return fail(n);
	return pagetables(argv[2]);
}
