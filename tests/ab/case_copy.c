// SPDX-License-Identifier: GPL-2.0
/*
 * fork of a process with memory of a kind, as a snapshot does it: timed is fork
 * itself, in the parent, and before each the parent writes to all its pages again,
 * so that they are its own. The child sleeps until the time is taken.
 *
 * alone: all on one CPU, so that the path has no helpers; so are all but 4k.
 * busy: another process keeps one CPU busy. 4threads: threads of the parent do.
 * mthp: folios of 64 KiB; not written to again, which would break them up.
 * swap: every second block of 64 KiB is swapped out. sparse: every 16th page.
 * file: a private mapping of a file, every second page written.
 * tables: one page for each page table, which tells apart what tables cost and pages.
 * 2000vma: mappings of 1 MiB, as many as fit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ab.h"

#define KIB		(1UL << 10)
#define MIB		(1UL << 20)
#define PAGE		(4 * KIB)
#define HUGE		(2 * MIB)
#define BLOCK		(64 * KIB)
#define MS		60
#define MIN		5
/* Where no other path's memory lies. */
#define PLACE		((char *)0x200000000000UL)

#define THREADS		4
#define HUGEPAGES	"/sys/kernel/mm/transparent_hugepage/hugepages-%s/enabled"

enum kind { small, tables, thp, mthp, swap, sparse, file, vmas };

struct copy_load {
	size_t len;
	enum kind kind;
	bool taken;			/* by the path, if it is on */
	bool anywhere;			/* may run on all CPUs */
	int busy;			/* threads that run, in the parent or elsewhere */
};

static struct {
	const struct copy_load *load;	/* whose memory there is */
	char *p;
	pid_t child;
	unsigned long forks;
	uint64_t round;			/* what the pages hold */
} state;

/* Pages that the parent writes to: swapped ones stay where they are. */
static bool written(const struct copy_load *l, size_t at)
{
	if (l->kind == swap)
		return !(at / BLOCK % 2);
	if (l->kind == tables)
		return !(at % HUGE);
	if (l->kind == sparse)
		return at / PAGE % 16 != 7;
	return l->kind != file || !(at / PAGE % 2);
}

static void write_all(const struct copy_load *l)
{
	state.round++;
	for (size_t at = 0; at < l->len; at += PAGE)
		if (written(l, at))
			*(volatile uint64_t *)(state.p + at) = state.round + at;
}

static int check(const struct ab_case *c)
{
	const struct copy_load *l = c->load;

	for (size_t at = 0; at < l->len; at += PAGE) {
		if (!written(l, at) ||
		    *(volatile uint64_t *)(state.p + at) == state.round + at)
			continue;
		ab_error("%s: CONTENTS LOST in page %zu", c->name, at / PAGE);
		return -1;
	}
	return 0;
}

static void reap(void)
{
	if (state.child <= 0)
		return;
	kill(state.child, SIGKILL);
	waitpid(state.child, NULL, 0);
	state.child = 0;
}

static void prepare(void *arg)
{
	const struct copy_load *l = arg;

	reap();
	if (l->kind != mthp)
		write_all(l);
}

static int do_fork(void *arg)
{
	(void)arg;
	state.child = fork();
	if (!state.child)
		for (;;)
			pause();
	if (state.child < 0) {
		ab_error("fork: %s", strerror(errno));
		return -1;
	}
	state.forks++;
	return 0;
}

static int map(const struct copy_load *l)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_FIXED_NOREPLACE | MAP_NORESERVE;
	char name[] = "/var/tmp/mmopt-ab.XXXXXX";

	if (l->kind == file) {
		fd = mkstemp(name);
		if (fd < 0 || unlink(name) || posix_fallocate(fd, 0, l->len))
			return -1;
	} else {
		flags |= MAP_ANONYMOUS;
	}
	state.p = mmap(PLACE, l->len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return state.p == PLACE ? 0 : -1;
}

/* Writes @text and puts what was there, a list with one in brackets, in @was. */
static int set_huge(const char *size, const char *text, char was[16])
{
	char name[96], line[128], *in;
	FILE *f;

	snprintf(name, sizeof(name), HUGEPAGES, size);
	f = fopen(name, "r+e");
	if (!f)
		return -1;
	in = fgets(line, sizeof(line), f) ? strchr(line, '[') : NULL;
	if (was && (!in || sscanf(in, "[%15[a-z]", was) != 1)) {
		fclose(f);
		return -1;
	}
	rewind(f);
	fputs(text, f);
	return fclose(f);
}

static void touch_all(const struct copy_load *l)
{
	size_t step = l->kind == tables ? HUGE : PAGE;
	volatile char sink;

	for (size_t at = 0; at < l->len; at += step) {
		if (l->kind == file && at / PAGE % 2)
			sink = state.p[at];
		else
			*(volatile uint64_t *)(state.p + at) = at;
	}
	(void)sink;
}

static int touch_mthp(const struct copy_load *l)
{
	char was64[16], was2048[16];
	int err;

	if (set_huge("64kB", "madvise", was64))
		return -1;
	if (set_huge("2048kB", "never", was2048)) {
		set_huge("64kB", was64, NULL);
		return -1;
	}
	touch_all(l);
	err = set_huge("2048kB", was2048, NULL);
	return set_huge("64kB", was64, NULL) || err;
}

static int shape(const struct copy_load *l)
{
	bool huge = l->kind == thp || l->kind == mthp;

	if (madvise(state.p, l->len, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) ||
	    (huge && prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)))
		return -1;
	if (l->kind != mthp)
		touch_all(l);
	else if (touch_mthp(l) || madvise(state.p, l->len, MADV_NOHUGEPAGE))
		return -1;
	if (huge && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return -1;
	for (size_t at = BLOCK; l->kind == swap && at < l->len; at += 2 * BLOCK)
		if (madvise(state.p + at, BLOCK, MADV_PAGEOUT))
			return -1;
	for (size_t at = 7 * PAGE; l->kind == sparse && at < l->len; at += 16 * PAGE)
		if (madvise(state.p + at, PAGE, MADV_PAGEOUT))
			return -1;
	for (size_t at = MIB; l->kind == vmas && at < l->len; at += 2 * MIB)
		if (madvise(state.p + at, MIB, MADV_SEQUENTIAL))
			return -1;
	return 0;
}

static void copy_teardown(const struct ab_case *c)
{
	(void)c;
	reap();
	if (state.load)
		munmap(PLACE, state.load->len);
	state.load = NULL;
}

/* The same for all cases of a size and kind. */
static int populate(const struct ab_case *c)
{
	const struct copy_load *l = c->load;

	if (state.load && state.load->len == l->len && state.load->kind == l->kind)
		return 0;
	copy_teardown(c);
	if (map(l) || shape(l)) {
		ab_error("%s: cannot make the memory: %s", c->name, strerror(errno));
		return -1;
	}
	state.load = l;
	state.round = 0;
	return 0;
}

static int copy_setup(const struct ab_case *c)
{
	const struct copy_load *l = c->load;
	char name[96];

	snprintf(name, sizeof(name), HUGEPAGES, "64kB");
	if (l->kind == mthp && access(name, F_OK)) {
		ab_error("%s: left out: this kernel has no such folios", c->name);
		return AB_SKIP;
	}
	return ab_spin_setup(c);
}

static int start_spinning(struct ab_spin **spin, int n, bool elsewhere)
{
	for (int i = 0; i < n; i++) {
		spin[i] = ab_spin_start(elsewhere);
		if (!spin[i])
			return -1;
	}
	return 0;
}

static int stop_spinning(struct ab_spin **spin, int n)
{
	int err = 0;

	for (int i = 0; i < n; i++)
		if (spin[i] && ab_spin_stop(spin[i]))
			err = -1;
	return err;
}

static int copy_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	const struct copy_load *l = c->load;
	struct ab_loop loop = {
		.batch = do_fork,
		.prepare = prepare,
		.arg = c->load,
		.calls = 1,
		.ms = MS,
		.min = MIN,
		.quantile = 0.5,
		.anywhere = l->anywhere,
	};
	struct ab_spin *spin[THREADS] = {};
	double per_fork = NAN;
	int err;

	if (populate(c))
		return -1;
	state.forks = 0;
	err = start_spinning(spin, l->busy, l->busy == 1 || mode == AB_limit);
	if (!err)
		err = ab_quiet(&loop, &per_fork);
	reap();
	if (stop_spinning(spin, l->busy))
		err = -1;
	s->value = per_fork * ab_yardstick_ns() / 1e3;
	s->calls = l->taken ? state.forks : 0;
	return err ?: check(c);
}

#define CASE(size_, len_, kind_, suffix_, taken_, anywhere_, busy_, full_) {	\
	.path = "copy", .unit = "us/fork", .spinner = (busy_) > 0, .full = full_,	\
	.swap = kind_ == swap || kind_ == sparse, .name = #size_ "-" suffix_,			\
	.load = &(struct copy_load){ len_, kind_, taken_, anywhere_, busy_ },	\
	.setup = copy_setup, .run = copy_run, .teardown = copy_teardown,	\
}

#define KINDS(size, len, full)						\
	CASE(size, len, small, "4k", true, true, 0, full),		\
	CASE(size, len, small, "4k-alone", true, false, 0, full),	\
	CASE(size, len, small, "4k-busy", true, true, 1, full),		\
	CASE(size, len, small, "4k-4threads", true, true, THREADS, true),	\
	CASE(size, len, tables, "tables", true, false, 0, true),	\
	CASE(size, len, thp, "thp", false, false, 0, full),		\
	CASE(size, len, mthp, "mthp", false, false, 0, full),		\
	CASE(size, len, swap, "swap", true, false, 0, full),		\
	CASE(size, len, swap, "swap-2cpus", true, true, 0, true),	\
	CASE(size, len, sparse, "sparse", true, false, 0, full),	\
	CASE(size, len, file, "file", true, false, 0, full),		\
	CASE(size, len, file, "file-2cpus", true, true, 0, true)

const struct ab_case ab_copy_cases[] = {
	KINDS(64m, 64 * MIB, false),
	KINDS(512m, 512 * MIB, true),
	KINDS(2g, 2048 * MIB, true),
	CASE(2g, 2048 * MIB, vmas, "4k-2000vma", true, false, 0, true),
	{
		.path = "copy", .name = "empty", .unit = "us/fork",
		.run = ab_fork_run,
	},
	{ }
};
