// SPDX-License-Identifier: GPL-2.0
/* process_madvise(), on ourselves and on another process. */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "semantics.h"

#define PAGES	16UL

static char *p;

static long process_madvise_(int pidfd, const struct iovec *iov, size_t n, int advice,
			     unsigned int flags)
{
	return syscall(SYS_process_madvise, pidfd, iov, n, advice, flags);
}

#define SEGMENT(from, pages) { p + (from) * PAGE, (pages) * PAGE }

/* Fresh memory in which page 12 is missing and page 14 is locked. */
static void renew(void)
{
	if (p)
		munmap(p - PAGE, (PAGES + 2) * PAGE);
	p = map_fenced(PAGES);
	fill(p, PAGES);
	if (munmap(p + 12 * PAGE, PAGE) || mlock(p + 14 * PAGE, PAGE))
		die("cannot prepare the memory");
}

static void show(const char *whom, const char *what, const struct advice *a, long ret)
{
	printf("%s %s %s: %s\n", whom, what, a->name, outcome(ret));
}

/* @pid: whose memory is at p; 0 if that has gone */
static void segments(const char *whom, int pidfd, const struct advice *a, pid_t pid)
{
	const struct {
		const char *name;
		struct iovec iov[4];
		size_t n;
	} lists[] = {
		{ "no segment", { SEGMENT(0, 1) }, 0 },
		{ "one segment", { SEGMENT(0, 4) }, 1 },
		{ "four segments", { SEGMENT(0, 2), SEGMENT(3, 1), SEGMENT(5, 2), SEGMENT(8, 4) }, 4 },
		{ "the same twice", { SEGMENT(2, 2), SEGMENT(2, 2) }, 2 },
		{ "an empty one first", { SEGMENT(0, 0), SEGMENT(1, 2) }, 2 },
		{ "an empty one amid", { SEGMENT(0, 2), SEGMENT(4, 0), SEGMENT(6, 2) }, 3 },
		{ "an empty one last", { SEGMENT(0, 2), SEGMENT(4, 0) }, 2 },
		{ "empty ones only", { SEGMENT(0, 0), SEGMENT(4, 0) }, 2 },
		{ "a gap first", { SEGMENT(11, 2), SEGMENT(0, 2) }, 2 },
		{ "a gap amid", { SEGMENT(0, 2), SEGMENT(11, 3), SEGMENT(4, 2) }, 3 },
		{ "locked memory amid", { SEGMENT(0, 2), SEGMENT(13, 2), SEGMENT(4, 2) }, 3 },
		{ "an odd length", { { p, 5 }, SEGMENT(4, 1) }, 2 },
		{ "an odd address first", { { p + 1, PAGE }, SEGMENT(4, 1) }, 2 },
		{ "an odd address amid", { SEGMENT(0, 1), { p + 1, PAGE }, SEGMENT(4, 1) }, 3 },
		{ "a wrapped one amid", { SEGMENT(0, 1), { p, LONG_MAX }, SEGMENT(4, 1) }, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		long ret = process_madvise_(pidfd, lists[i].iov, lists[i].n, a->value, 0);

		show(whom, lists[i].name, a, ret);
		if (pid)
			printf("  pages %s\n", page_states_of(pid, p, PAGES));
		/* also brings back what is out */
		if (pid == getpid() && !intact(p, 12))
			printf("  DAMAGED\n");
	}
}

static void errors(const char *whom, int pidfd, const struct advice *a)
{
	struct iovec one = SEGMENT(0, 1);

	show(whom, "with flags", a, process_madvise_(pidfd, &one, 1, a->value, 1));
	show(whom, "list at a bad address", a,
	     process_madvise_(pidfd, (void *)8, 1, a->value, 0));
	show(whom, "list too long", a,
	     process_madvise_(pidfd, &one, IOV_MAX + 1, a->value, 0));
	show(whom, "unknown advice", a, process_madvise_(pidfd, &one, 1, 4711, 0));
	show(whom, "bad descriptor", a, process_madvise_(-1, &one, 1, a->value, 0));
	show(whom, "WILLNEED", a, process_madvise_(pidfd, &one, 1, MADV_WILLNEED, 0));
}

void vector(void)
{
	int self = syscall(SYS_pidfd_open, getpid(), 0), other, status;
	pid_t child;

	for_each_advice(a) {
		renew();
		segments("self", self, a, getpid());
		errors("self", self, a);
	}
	for_each_advice(a) {
		renew();
		child = fork();
		if (!child) {
			/* pages of its own, since shared ones stay */
			fill(p, 12);
			raise(SIGSTOP);
			_exit(intact(p, 12) ? 0 : 1);
		}
		other = syscall(SYS_pidfd_open, child, 0);
		if (child < 0 || self < 0 || other < 0 || waitpid(child, NULL, WUNTRACED) != child)
			die("no other process");
		segments("other", other, a, child);
		errors("other", other, a);
		kill(child, SIGCONT);
		if (waitpid(child, &status, 0) != child)
			die("waitpid");
		printf("other %s: %s\n", a->name, status ? "DAMAGED" : "intact");
		segments("gone", other, a, 0);
		close(other);
	}
	close(self);
}
