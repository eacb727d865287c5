// SPDX-License-Identifier: GPL-2.0
/*
 * PAGEMAP_SCAN over 1 GiB in one VMA, or over 10,000 VMAs of 16 pages with gaps,
 * alone, beside a thread that only runs, or while other threads of the process map
 * and unmap memory.
 *
 * get asks what CRIU's dump asks, getwp what was written since and begins anew, wp
 * only begins anew. For these two, each 16th page is written before each scan,
 * outside of the time taken.
 *
 * The stall cases measure another thread of the process, whose munmap() or
 * mprotect() of memory of its own meets scan after scan of 1 GiB. For the limit, the
 * scans are those of a child.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

#include "ab.h"

#define PAGE		4096UL
#define DENSE_PAGES	(1UL << 18)
#define SMALL_VMAS	10000UL
#define SMALL_PAGES	16UL
#define DIRTY_STEP	16
#define RANGES		(DENSE_PAGES / DIRTY_STEP)
#define CHURN_MS	800
#define SETTLE_MS	100
#define STALL_MS	4000
#define STALL_BYTES	65536UL
#define STALL_PAUSE_US	200

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED	(1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC		(1 << 15)
#endif

/* As in the kernel's include/uapi/linux/fs.h, which a suite's headers may not have. */
enum { WRITTEN = 2, FILE_PAGE = 4, PRESENT = 8, SWAPPED = 16, PFNZERO = 32 };
enum { WP_MATCHING = 1 };

struct range {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, anyof, ret;
};

enum what { get, getwp, wp };

struct memory {
	size_t vmas, pages, gap;	/* pages of each VMA, and behind it */
	char *p;
};

static struct memory dense = { 1, DENSE_PAGES, 1, NULL };
static struct memory small = { SMALL_VMAS, SMALL_PAGES, 1, NULL };

struct pagemap_load {
	struct memory *memory;
	enum what what;
	const char *stalled;	/* the call of another thread, or NULL */
	double flushes[AB_MODE_COUNT];	/* negative: not known yet */
	unsigned long *calls;
};

static struct range ranges[RANGES];
static int pagemap = -1, uffd = -1;

static char *page_of(const struct memory *m, size_t page)
{
	return m->p + (page / m->pages * (m->pages + m->gap) + page % m->pages) * PAGE;
}

static size_t bytes_of(const struct memory *m)
{
	return m->vmas * (m->pages + m->gap) * PAGE;
}

static void dirty(const struct memory *m, size_t step)
{
	for (size_t page = 0; page < m->vmas * m->pages; page += step)
		++*(volatile char *)page_of(m, page);
}

static int open_files(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED,
	};

	if (pagemap >= 0)
		return 0;
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	return pagemap < 0 || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ? -1 : 0;
}

/* Written through once, in VMAs that stay apart, and registered as a whole. */
static int memory_setup(struct memory *m)
{
	size_t len = bytes_of(m);
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_WP };

	m->p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->p == MAP_FAILED || madvise(m->p, len, MADV_NOHUGEPAGE))
		return -1;
	for (size_t i = 0; i < m->vmas; i++)
		if (munmap(page_of(m, i * m->pages) + m->pages * PAGE, m->gap * PAGE))
			return -1;
	dirty(m, 1);
	reg.range.start = (uintptr_t)m->p;
	reg.range.len = len - m->gap * PAGE;
	return ioctl(uffd, UFFDIO_REGISTER, &reg);
}

static int setup(const struct ab_case *c)
{
	struct pagemap_load *l = c->load;
	int err = ab_spin_setup(c);

	if (err)
		return err;
	if (!open_files() && (l->memory->p || !memory_setup(l->memory)))
		return 0;
	ab_error("%s: no memory with userfaultfd: %s", c->name, strerror(errno));
	return -1;
}

/* One system call, and whether it found what there is to find. */
static int scan(void *arg)
{
	const struct pagemap_load *l = arg;
	const struct memory *m = l->memory;
	struct scan s = {
		.size = sizeof(s),
		.start = (uintptr_t)m->p,
		.end = (uintptr_t)m->p + bytes_of(m),
		.vec = (uintptr_t)ranges,
		.vec_len = RANGES,
		.inverted = PFNZERO | FILE_PAGE,
		.mask = PFNZERO | FILE_PAGE,
		.anyof = PRESENT | SWAPPED,
		.ret = PRESENT | SWAPPED,
	};
	size_t pages = 0, want = m->vmas * m->pages;
	long n;

	if (l->what != get) {
		s.inverted = 0;
		s.anyof = 0;
		s.flags = WP_MATCHING;
		s.mask = WRITTEN;
		s.ret = WRITTEN;
		want /= DIRTY_STEP;
	}
	if (l->what == wp) {
		s.vec = 0;
		s.vec_len = 0;
		want = 0;
	}
	++*l->calls;
	n = ioctl(pagemap, _IOWR('f', 16, struct scan), &s);
	for (long i = 0; i < n; i++)
		pages += (ranges[i].end - ranges[i].start) / PAGE;
	if (n >= 0 && pages == want)
		return 0;
	ab_error("scan: %ld, %zu pages instead of %zu: %s", n, pages, want, strerror(errno));
	return -1;
}

static void prepare(void *arg)
{
	const struct pagemap_load *l = arg;

	if (l->what != get)
		dirty(l->memory, DIRTY_STEP);
}

static int scans_for(struct pagemap_load *l, unsigned int ms, double *ns_per_call,
		     double *p99_us)
{
	uint64_t end = ab_now() + ms * 1000000ULL, sum = 0, t;
	struct ab_hist *hist = calloc(1, sizeof(*hist));
	unsigned long n = 0;
	int err = hist ? 0 : -1;

	while (!err && (n < 3 || ab_now() < end)) {
		prepare(l);
		t = ab_now();
		err = scan(l);
		t = ab_now() - t;
		ab_hist_add(hist, t);
		sum += t;
		n++;
	}
	if (!err) {
		*ns_per_call = (double)sum / n;
		*p99_us = ab_hist_quantile(hist, 0.99) / 1e3;
	}
	free(hist);
	return err;
}

/* Nothing is left of what was written before. */
static int begin_anew(const struct pagemap_load *l)
{
	struct pagemap_load all = *l;

	all.what = wp;
	return l->what == get ? 0 : scan(&all);
}

static int scan_quiet(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct pagemap_load *l = c->load;
	struct ab_loop loop = {
		.batch = scan,
		.prepare = prepare,
		.arg = l,
		.calls = 1,
		.ms = l->what == get ? 300 : 100,
		.min = 5,
		.quantile = 0.25,
	};
	struct ab_spin *spin = c->spinner ? ab_spin_start(mode == AB_limit) : NULL;
	double ns = NAN;
	int err = c->spinner && !spin ? -1 : 0;

	if (!err && l->what != get && l->flushes[mode] < 0) {
		prepare(l);
		err = ab_count_flushes(scan, l, &l->flushes[mode]);
	}
	if (!err)
		err = ab_quiet(&loop, &ns);
	s->value = ns * ab_yardstick_ns() / 1e3;
	s->flushes = l->what == get ? NAN : l->flushes[mode];
	return spin && ab_spin_stop(spin) ? -1 : err;
}

static int pagemap_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct pagemap_load *l = c->load;
	struct ab_churn *churn;
	double ns = NAN, warm;
	int err;

	l->calls = &s->calls;
	if (begin_anew(l))
		return -1;
	if (!c->churners)
		return scan_quiet(c, mode, s);
	churn = ab_churn_start(c->churners, mode == AB_limit);
	if (!churn)
		return -1;
	err = scans_for(l, SETTLE_MS, &warm, &warm);
	if (!err)
		err = scans_for(l, CHURN_MS, &ns, &s->call_p99_us);
	s->value = ns / 1e3;
	return ab_churn_stop(churn, &s->churn) ? -1 : err;
}

struct stalled {
	const char *call;
	volatile bool stop;
	bool failed;
	double worst;
	struct ab_hist hist;
};

static void *stall(void *arg)
{
	struct stalled *me = arg;
	bool unmap = !strcmp(me->call, "munmap");
	char *p = NULL;
	uint64_t t;
	int err;

	prctl(PR_SET_TIMERSLACK, 1000);
	while (!me->stop) {
		if (unmap || !p) {
			p = mmap(NULL, STALL_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (p == MAP_FAILED)
				break;
		}
		*(volatile char *)p = 1;
		t = ab_now();
		err = unmap ? munmap(p, STALL_BYTES) : mprotect(p, STALL_BYTES, PROT_READ);
		t = ab_now() - t;
		if (err || (!unmap && mprotect(p, STALL_BYTES, PROT_READ | PROT_WRITE)))
			break;
		ab_hist_add(&me->hist, t);
		me->worst = t > me->worst ? t : me->worst;
		usleep(STALL_PAUSE_US);
	}
	me->failed = !me->stop;
	return NULL;
}

static int scan_until(struct pagemap_load *l, uint64_t end)
{
	int err = 0;

	while (!err && ab_now() < end)
		err = scan(l);
	return err;
}

/* The scans of a child, which has the same memory but its own mmap_lock. */
static pid_t scan_elsewhere(struct pagemap_load *l)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pagemap);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	scan_until(l, UINT64_MAX);
	_exit(1);
}

static int stall_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct pagemap_load *l = c->load;
	struct stalled *other = calloc(1, sizeof(*other));
	pthread_t thread;
	pid_t pid = 0;
	int err = 0;

	if (!other)
		return -1;
	l->calls = &s->calls;
	other->call = l->stalled;
	if (mode == AB_limit)
		pid = scan_elsewhere(l);
	if (pid < 0 || pthread_create(&thread, NULL, stall, other)) {
		ab_error("%s: cannot start the other", c->name);
		free(other);
		return -1;
	}
	if (pid)
		ab_sleep_ms(STALL_MS);
	else
		err = scan_until(l, ab_now() + STALL_MS * 1000000ULL);
	other->stop = true;
	pthread_join(thread, NULL);
	if (pid) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	s->value = ab_hist_quantile(&other->hist, 0.99) / 1e6;
	s->worst_ms = other->worst / 1e6;
	if (other->failed)
		ab_error("%s: %s: %s", c->name, l->stalled, strerror(errno));
	err |= other->failed;
	free(other);
	return err ? -1 : 0;
}

#define LOAD(what_, memory_)						\
	static struct pagemap_load what_##_##memory_ = {		\
		.memory = &memory_, .what = what_, .flushes = { -1, -1, -1, -1 } }

LOAD(get, dense);
LOAD(getwp, dense);
LOAD(wp, dense);
LOAD(get, small);
LOAD(getwp, small);
LOAD(wp, small);
static struct pagemap_load stall_munmap = { .memory = &dense, .stalled = "munmap" };
static struct pagemap_load stall_mprotect = { .memory = &dense, .stalled = "mprotect" };

#define CASES(what_, memory_, name_) {					\
	.path = "pagemap", .name = #what_ "-" name_ "-0churn",		\
	.unit = "us/scan", .load = &what_##_##memory_,			\
	.setup = setup, .run = pagemap_run,				\
}, {									\
	.path = "pagemap", .name = #what_ "-" name_ "-4churn",		\
	.unit = "us/scan", .load = &what_##_##memory_, .churners = 4,	\
	.setup = setup, .run = pagemap_run,				\
}

#define SPIN_CASE(what_, memory_, name_) {				\
	.path = "pagemap", .name = #what_ "-" name_ "-1thread",		\
	.unit = "us/scan", .load = &what_##_##memory_, .spinner = true,	\
	.setup = setup, .run = pagemap_run,				\
}

#define STALL_CASE(call_) {						\
	.path = "pagemap", .name = "stall-" #call_, .unit = "ms",	\
	.churners = 1, .load = &stall_##call_,				\
	.setup = setup, .run = stall_run,				\
}

const struct ab_case ab_pagemap_cases[] = {
	CASES(get, dense, "dense"),
	CASES(getwp, dense, "dense"),
	CASES(wp, dense, "dense"),
	SPIN_CASE(wp, dense, "dense"),
	CASES(get, small, "10kvma"),
	CASES(getwp, small, "10kvma"),
	CASES(wp, small, "10kvma"),
	STALL_CASE(munmap),
	STALL_CASE(mprotect),
	{ }
};
