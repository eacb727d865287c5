// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ab.h"

#define DONTNEED_CALLS	200	/* of one batch */
#define DONTNEED_MS	250
#define FORK_MS		"300"

static char *untouched;

int ab_dontneed_setup(const struct ab_case *c)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + page, page, PROT_READ | PROT_WRITE)) {
		ab_error("%s: mmap: %s", c->name, strerror(errno));
		return -1;
	}
	untouched = p + page;
	return 0;
}

static int dontneed_batch(void *arg)
{
	size_t page = *(size_t *)arg;

	for (int i = 0; i < DONTNEED_CALLS; i++) {
		if (madvise(untouched, page, MADV_DONTNEED)) {
			ab_error("MADV_DONTNEED: %s", strerror(errno));
			return -1;
		}
	}
	return 0;
}

int ab_dontneed_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct ab_loop loop = {
		.batch = dontneed_batch,
		.arg = &page,
		.calls = DONTNEED_CALLS,
		.ms = DONTNEED_MS,
		.quantile = 0.25,
	};
	double per_call = NAN;
	int err = ab_quiet(&loop, &per_call);

	(void)c;
	(void)mode;
	s->value = per_call * ab_yardstick_ns();
	return err;
}

/*
 * In a process of its own, small, so that the fork copies next to nothing, and
 * always at the same addresses: how many page tables it has depends on them.
 */
int ab_fork_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	int was = personality(0xffffffff), to, from;
	char answer[64];
	ssize_t n;
	pid_t pid;

	(void)mode;
	personality(was | ADDR_NO_RANDOMIZE);
	pid = ab_spawn_self(AB_AS_FORK, FORK_MS, &to, &from);
	personality(was);
	if (pid < 0)
		return -1;
	close(to);
	n = read(from, answer, sizeof(answer) - 1);
	close(from);
	if (ab_wait(pid, c->name) || n <= 0)
		return -1;
	answer[n] = 0;
	s->value = strtod(answer, NULL) * ab_yardstick_ns() / 1e3;
	return 0;
}

static int fork_batch(void *arg)
{
	pid_t pid = fork();
	int status;

	(void)arg;
	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		ab_error("fork: %s", strerror(errno));
		return -1;
	}
	return 0;
}

int ab_fork_main(const char *ms)
{
	struct ab_loop loop = {
		.batch = fork_batch,
		.calls = 1,
		.ms = strtoul(ms, NULL, 10),
		.quantile = 0.05,	/* few forks escape the scheduler */
	};
	double per_fork;

	if (ab_quiet(&loop, &per_fork))
		return 1;
	printf("%.9g\n", per_fork);
	return 0;
}
