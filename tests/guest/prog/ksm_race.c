// SPDX-License-Identifier: GPL-2.0
/*
 * Processes whose memory KSM merges, and who change it in every way meanwhile:
 *
 *	ksm_race SECONDS		some, killed at random, for so long or until SIGTERM;
 *					contents must stay right
 *	ksm_race progress SCANS		one that maps and unmaps mergeable memory, for so
 *					many full scans, none of which may take 20 s
 *	ksm_race busy SECONDS [N]	one with 8 MiB and N (4) threads that map and unmap;
 *					then it writes to some pages, and unmerges all
 *	ksm_race flip SECONDS		one where either of two areas is mergeable, in turns;
 *					always one of them is
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ksm.h"

#define ACTORS	5
#define AREAS	4
#define PAGES	128
#define DAMAGED	3
#define BUSY	2048
#define COMER	6144

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE	67
#endif

struct area {
	char *p;
	enum kind kind;
	unsigned int tag;
};

static struct area areas[AREAS];
static volatile sig_atomic_t enough;

static void *churn(void *arg)
{
	const size_t len = 64 * PAGE;
	bool mergeable = arg;

	for (;;) {
		char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die("cannot map");
		if (mergeable)
			madvise(p, len, MADV_MERGEABLE);
		*(volatile char *)p = 1;
		munmap(p, len);
	}
	return NULL;
}

static void churners(unsigned int n, bool mergeable)
{
	pthread_t thread;

	while (n--)
		if (pthread_create(&thread, NULL, churn, mergeable ? &areas : NULL))
			die("no thread");
}

static void check(const struct area *a, const char *when)
{
	if (ksm_intact(a->p, PAGES, a->kind, a->tag))
		return;
	printf("DAMAGED %s: kind %d\n", when, a->kind);
	fflush(stdout);
	_exit(DAMAGED);
}

static void make(struct area *a)
{
	a->p = map_fenced(PAGES);
	a->kind = random() % 4;
	a->tag = 1 + random() % 2;
	if (random() % 4)
		madvise(a->p, PAGES * PAGE, MADV_MERGEABLE);
	ksm_fill(a->p, PAGES, a->kind, a->tag);
}

static void child_of(struct area *a)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return;
	if (!child) {
		for (size_t i = 0; i < AREAS; i++)
			check(&areas[i], "in a child");
		ksm_fill(a->p, PAGES, UNIQUE, 9);
		if (random() % 2)
			execl("/bin/true", "true", NULL);
		_exit(0);
	}
	if (random() % 3 == 0)
		kill(child, SIGKILL);
	if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status))
		_exit(DAMAGED);
}

static void act(struct area *a)
{
	const size_t len = PAGES * PAGE;
	char *to;

	switch (random() % 12) {
	case 0:
		ksm_fill(a->p, PAGES, a->kind, a->tag);
		break;
	case 1:
		madvise(a->p, len, MADV_DONTNEED);
		ksm_fill(a->p, PAGES, a->kind, a->tag);
		break;
	case 2:
		to = map_fenced(PAGES);
		if (mremap(a->p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
			die("cannot move");
		a->p = to;
		break;
	case 3:
		madvise(a->p, len, MADV_UNMERGEABLE);
		check(a, "unmerged");
		madvise(a->p, len, MADV_MERGEABLE);
		break;
	case 4:		/* split, and one again */
		mprotect(a->p + len / 2, len / 4, PROT_READ);
		check(a, "split");
		mprotect(a->p + len / 2, len / 4, PROT_READ | PROT_WRITE);
		break;
	case 5:
		child_of(a);
		break;
	case 6:
		munmap(a->p - PAGE, len + 2 * PAGE);
		make(a);
		break;
	case 7:
		madvise(a->p, len, MADV_PAGEOUT);
		break;
	case 8:
		prctl(PR_SET_MEMORY_MERGE, random() % 2, 0, 0, 0);
		break;
	case 9:
		madvise(a->p, len, MADV_COLD);
		mlock(a->p, len / 2);
		munlock(a->p, len / 2);
		break;
	default:
		usleep(random() % 4000);
	}
	check(a, "after a step");
}

static pid_t actor(unsigned int seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srandom(seed);
	for (size_t i = 0; i < AREAS; i++)
		make(&areas[i]);
	if (seed % 3 == 0)
		churners(1, seed % 2);
	for (;;)
		act(&areas[random() % AREAS]);
}

/* As the OOM killer does it: another process frees the memory of the victim. */
static void kill_and_reap(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		die("no pidfd");
	kill(pid, SIGKILL);
	/* too late if it has freed that itself */
	if (syscall(SYS_process_mrelease, fd, 0) && errno != ESRCH && errno != EAGAIN)
		die("cannot reap");
	close(fd);
}

/* What an administrator may write meanwhile. */
static void meddle(void)
{
	switch (random() % 6) {
	case 0:
		ksm_set("run", 2);
		ksm_set("run", 1);
		break;
	case 1:
		ksm_set("run", 0);
		ksm_set("run", 1);
		break;
	case 2:
		ksm_set("use_zero_pages", random() % 2);
		break;
	case 3:
		ksm_set("smart_scan", random() % 2);
		break;
	case 4:
		ksm_set("pages_to_scan", 50 + random() % 500);
		break;
	default:
		ksm_set("sleep_millisecs", random() % 3);
	}
}

static void on_term(int sig)
{
	enough = 1;
}

static int race(unsigned int seconds)
{
	uint64_t end = now_ns() + seconds * 1000000000ULL;
	unsigned int seed = 1, killed = 0, bad = 0;
	long scanned = ksm_get("pages_scanned");
	pid_t pid[ACTORS];
	int status;

	srandom(seconds);
	signal(SIGTERM, on_term);
	for (size_t i = 0; i < ACTORS; i++)
		pid[i] = actor(seed++);
	while (now_ns() < end && !enough && !bad) {
		size_t i = random() % ACTORS;

		usleep(20000 + random() % 60000);
		if (random() % 4 == 0)
			meddle();
		if (random() % 3 == 0)
			continue;
		if (random() % 2)
			kill_and_reap(pid[i]);
		else
			kill(pid[i], SIGKILL);
		if (waitpid(pid[i], &status, 0) != pid[i])
			die("a process is lost");
		bad += !WIFSIGNALED(status);
		killed++;
		pid[i] = actor(seed++);
	}
	for (size_t i = 0; i < ACTORS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		bad += !WIFSIGNALED(status);
	}
	scanned = ksm_get("pages_scanned") - scanned;
	printf("%u killed, %u bad, %ld pages scanned\n", killed, bad, scanned);
	return bad || !killed || !scanned;
}

static int progress(unsigned int scans)
{
	char *p = map_fenced(BUSY);
	unsigned int done;

	madvise(p, BUSY * PAGE, MADV_MERGEABLE);
	ksm_fill(p, BUSY, PAIRS, 1);
	churners(2, true);
	for (done = 0; done < scans; done++) {
		uint64_t end = now_ns() + 20000000000ULL;
		long before = ksm_get("full_scans");

		while (ksm_get("full_scans") <= before && now_ns() < end)
			usleep(10000);
		if (now_ns() >= end)
			break;
	}
	printf("%u full scans, contents %s\n", done,
	       ksm_intact(p, BUSY, PAIRS, 1) ? "right" : "DAMAGED");
	return done < scans;
}

static int busy(unsigned int seconds, unsigned int threads)
{
	char *p = map_fenced(BUSY);
	size_t merged;
	bool right;

	madvise(p, BUSY * PAGE, MADV_MERGEABLE);
	ksm_fill(p, BUSY, PAIRS, 1);
	churners(threads, false);
	sleep(seconds);
	merged = ksm_pages(p, BUSY);
	right = ksm_intact(p, BUSY, PAIRS, 1);
	for (size_t i = 0; i < BUSY; i += 3)
		ksm_fill(p + i * PAGE, 1, UNIQUE, i);
	if (madvise(p, BUSY * PAGE, MADV_UNMERGEABLE))
		die("cannot unmerge");
	for (size_t i = 0; i < BUSY; i++)
		right &= i % 3 ? ksm_holds(p, i, PAIRS, 1) : ksm_intact(p + i * PAGE, 1, UNIQUE, i);
	printf("%zu pages of KSM, then %zu, contents %s\n", merged, ksm_pages(p, BUSY),
	       right ? "right" : "DAMAGED");
	return 0;
}

/* Stays for a scan from its beginning to its end. */
static pid_t comer(unsigned int tag)
{
	pid_t pid = fork();
	long scans;
	char *p;

	if (pid)
		return pid;
	p = map_fenced(COMER);
	madvise(p, COMER * PAGE, MADV_MERGEABLE);
	ksm_fill(p, COMER, PAIRS, 1 + tag % 2);
	scans = ksm_get("full_scans");
	while (ksm_get("full_scans") < scans + 2)
		usleep(5000);
	_exit(ksm_intact(p, COMER, PAIRS, 1 + tag % 2) ? 0 : DAMAGED);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int comers(unsigned int n)
{
	static uint32_t late_us[1 << 20];
	unsigned int started = 0, gone = 0, bad = 0, probes = 0;
	int status;

	while (gone < n) {
		uint64_t t = now_ns();

		while (started < n && started < gone + 3)
			if (comer(started++) < 0)
				die("cannot fork");
		usleep(1000);
		if (probes < ARRAY_SIZE(late_us))
			late_us[probes++] = (now_ns() - t) / 1000 - 1000;
		while (waitpid(-1, &status, WNOHANG) > 0) {
			bad += status;
			gone++;
		}
	}
	qsort(late_us, probes, sizeof(*late_us), by_value);
	printf("%u gone, contents %s\n", gone, bad ? "DAMAGED" : "right");
	printf("a sleeper wakes %u us late in the median, %u us for one in a hundred\n",
	       late_us[probes / 2], late_us[probes - probes / 100 - 1]);
	return bad;
}

static int flip(unsigned int seconds)
{
	uint64_t end = now_ns() + seconds * 1000000000ULL;
	char *low = map_fenced(1), *high = map_fenced(1), *p = low;
	unsigned int flips;

	if (low > high) {
		low = high;
		high = p;
	}
	for (flips = 0; now_ns() < end; flips++)
		if (madvise(low, PAGE, MADV_MERGEABLE) || madvise(high, PAGE, MADV_UNMERGEABLE) ||
		    madvise(high, PAGE, MADV_MERGEABLE) || madvise(low, PAGE, MADV_UNMERGEABLE))
			die("cannot advise");
	printf("%u flips\n", flips);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "comers"))
		return comers(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "flip"))
		return flip(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "progress"))
		return progress(atoi(argv[2]));
	if (argc >= 3 && !strcmp(argv[1], "busy"))
		return busy(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 4);
	if (argc == 2 && atoi(argv[1]) > 0)
		return race(atoi(argv[1]));
	die("usage: see the source");
}
