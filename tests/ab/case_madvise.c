// SPDX-License-Identifier: GPL-2.0
/*
 * MADV_COLD and MADV_PAGEOUT over a range of 256 KiB, again and again, alone or
 * while other threads of the process map and unmap memory.
 *
 * cold and pageout call without touching the range in between, like the
 * benchmark of the patch that this path comes from: the first call does the
 * work, the later ones walk the range, so that what they wait for shows.
 * pageout-dirty writes every page before each call, outside of the time taken,
 * so that each call swaps the whole range out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ab.h"

#define PAGES		64
#define QUIET_MS	200
#define SETTLE_MS	30
#define CALLS_MIN	3

struct madvise_load {
	int advice;
	unsigned int vmas;
	bool dirty;		/* write every page before each call */
	unsigned int churn_ms;	/* to measure for while others interfere */
	char *range;
	size_t len;
	unsigned int batch;	/* calls timed at once when nothing interferes */
	unsigned long *calls;
};

static uint64_t word_of(const struct madvise_load *l, size_t page)
{
	return (page + 1) * 0x9e3779b97f4a7c15ULL ^ (uintptr_t)l;
}

static uint64_t *page_of(const struct madvise_load *l, size_t page)
{
	return (uint64_t *)(l->range + page * (l->len / PAGES));
}

/* Every page gets a word of its own, so that a page in a wrong place shows. */
static void fill(const struct madvise_load *l)
{
	size_t words = l->len / PAGES / sizeof(uint64_t);

	for (size_t page = 0; page < PAGES; page++)
		for (size_t i = 0; i < words; i++)
			page_of(l, page)[i] = word_of(l, page);
}

static void rewrite(void *arg)
{
	const struct madvise_load *l = arg;

	for (size_t page = 0; page < PAGES; page++)
		*(volatile uint64_t *)page_of(l, page) = word_of(l, page);
}

static int check(const struct madvise_load *l, const char *name)
{
	size_t words = l->len / PAGES / sizeof(uint64_t);

	for (size_t page = 0; page < PAGES; page++) {
		for (size_t i = 0; i < words; i++) {
			if (page_of(l, page)[i] == word_of(l, page))
				continue;
			ab_error("%s: CONTENTS LOST in page %zu of the range, word %zu",
				 name, page, i);
			return -1;
		}
	}
	return 0;
}

static unsigned int count_vmas(const struct madvise_load *l)
{
	uintptr_t from = (uintptr_t)l->range, start;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		start = strtoul(line, NULL, 16);
		n += start >= from && start < from + l->len;
	}
	fclose(f);
	return n;
}

static int call(const struct madvise_load *l)
{
	++*l->calls;
	if (!madvise(l->range, l->len, l->advice))
		return 0;
	ab_error("madvise(%d): %s", l->advice, strerror(errno));
	return -1;
}

static int batch(void *arg)
{
	const struct madvise_load *l = arg;

	for (unsigned int i = 0; i < l->batch; i++)
		if (call(l))
			return -1;
	return 0;
}

/*
 * The range lies between pages without access, or a churner's mapping would
 * become one VMA with it, and each munmap would split it again. Every second
 * VMA is kept out of children: that changes nothing here but keeps neighbours
 * apart.
 */
static int madvise_setup(const struct ab_case *c)
{
	struct madvise_load *l = c->load;
	size_t page = sysconf(_SC_PAGESIZE), step;
	unsigned long calls = 0;
	uint64_t t;
	char *p;

	if (l->range)
		return 0;	/* another case has the same load */
	l->len = PAGES * page;
	p = mmap(NULL, l->len + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p + page, l->len, PROT_READ | PROT_WRITE))
		goto fail;
	l->range = p + page;
	step = l->len / l->vmas;
	for (size_t at = 0; at < l->len; at += 2 * step)
		if (madvise(l->range + at, step, MADV_DONTFORK))
			goto fail;
	if (count_vmas(l) != l->vmas) {
		ab_error("%s: the range has %u VMAs, not %u", c->name, count_vmas(l), l->vmas);
		return -1;
	}
	fill(l);

	l->calls = &calls;
	l->batch = 1;
	if (batch(l))
		return -1;
	for (; !l->dirty && l->batch < 1024; l->batch *= 2) {
		t = ab_now();
		if (batch(l))
			return -1;
		if (ab_now() - t > 400000)
			break;
	}
	return 0;
fail:
	ab_error("%s: cannot map the range: %s", c->name, strerror(errno));
	return -1;
}

/* One call after the other, each timed, until enough time has been measured. */
static int run_calls(struct madvise_load *l, unsigned int ms, double *ns_per_call,
		     double *p99_us)
{
	uint64_t want = ms * 1000000ULL, start = ab_now(), sum = 0, t;
	struct ab_hist *hist = calloc(1, sizeof(*hist));
	unsigned long n = 0;
	int err = 0;

	if (!hist) {
		ab_error("out of memory");
		return -1;
	}
	do {
		if (l->dirty)
			rewrite(l);
		t = ab_now();
		err = call(l);
		t = ab_now() - t;
		ab_hist_add(hist, t);
		sum += t;
		n++;
	} while (!err && (n < CALLS_MIN || (sum < want && ab_now() - start < 2 * want)));
	*ns_per_call = (double)sum / n;
	*p99_us = ab_hist_quantile(hist, 0.99) / 1e3;
	free(hist);
	return err;
}

static int run_churned(struct madvise_load *l, unsigned int churners, bool elsewhere,
		       struct ab_sample *s)
{
	struct ab_churn *churn = ab_churn_start(churners, elsewhere);
	double warm_ns, warm_p99, ns = NAN;
	int err;

	if (!churn)
		return -1;
	err = run_calls(l, SETTLE_MS, &warm_ns, &warm_p99);
	if (!err)
		err = run_calls(l, l->churn_ms, &ns, &s->call_p99_us);
	s->value = ns / 1e3;
	return ab_churn_stop(churn, &s->churn) ? -1 : err;
}

static int run_quiet(struct madvise_load *l, struct ab_sample *s)
{
	struct ab_loop loop = {
		.batch = batch,
		.prepare = l->dirty ? rewrite : NULL,
		.arg = l,
		.calls = l->batch,
		.ms = QUIET_MS,
		.quantile = l->dirty ? 0.05 : 0.25,	/* long calls are seldom undisturbed */
	};
	double per_call = NAN;
	int err = ab_quiet(&loop, &per_call);

	s->value = per_call * ab_yardstick_ns() / 1e3;
	return err;
}

static int madvise_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct madvise_load *l = c->load;
	unsigned long long swapped = ab_swapped_out(), want;
	int err;

	l->calls = &s->calls;
	rewrite(l);
	if (c->churners)
		err = run_churned(l, c->churners, mode == AB_limit, s);
	else
		err = run_quiet(l, s);
	if (err)
		return err;

	/* A few pages may sit in another CPU's LRU batch and stay. */
	want = c->swap ? PAGES / 2 * (l->dirty ? s->calls : 1) : 0;
	swapped = ab_swapped_out() - swapped;
	if (swapped < want) {
		ab_error("%s: %llu pages swapped out, expected at least %llu",
			 c->name, swapped, want);
		return -1;
	}
	return check(l, c->name);
}

static struct madvise_load cold = {
	.advice = MADV_COLD, .vmas = 1, .churn_ms = 450,
};

static struct madvise_load cold_64vma = {
	.advice = MADV_COLD, .vmas = 64, .churn_ms = 250,
};

static struct madvise_load pageout = {
	.advice = MADV_PAGEOUT, .vmas = 1, .churn_ms = 450,
};

static struct madvise_load pageout_64vma = {
	.advice = MADV_PAGEOUT, .vmas = 64, .churn_ms = 250,
};

static struct madvise_load pageout_dirty = {
	.advice = MADV_PAGEOUT, .vmas = 1, .dirty = true, .churn_ms = 250,
};

#define MADVISE_CASE(name_, load_, churners_, swap_) {			\
	.path = "madvise", .name = name_, .unit = "us/call",		\
	.churners = churners_, .swap = swap_, .load = &load_,		\
	.setup = madvise_setup, .run = madvise_run,			\
}

const struct ab_case ab_madvise_cases[] = {
	MADVISE_CASE("cold-0churn", cold, 0, false),
	MADVISE_CASE("cold-16churn", cold, 16, false),
	MADVISE_CASE("cold-64vma-16churn", cold_64vma, 16, false),
	MADVISE_CASE("pageout-0churn", pageout, 0, true),
	MADVISE_CASE("pageout-16churn", pageout, 16, true),
	MADVISE_CASE("pageout-64vma-16churn", pageout_64vma, 16, true),
	MADVISE_CASE("pageout-dirty-0churn", pageout_dirty, 0, true),
	MADVISE_CASE("pageout-dirty-16churn", pageout_dirty, 16, true),
	{
		.path = "madvise", .name = "bystander-dontneed", .unit = "ns/call",
		.setup = ab_dontneed_setup, .run = ab_dontneed_run,
	}, {
		.path = "madvise", .name = "bystander-fork", .unit = "us/fork",
		.run = ab_fork_run,
	},
	{ }
};
