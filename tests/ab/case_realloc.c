// SPDX-License-Identifier: GPL-2.0
/*
 * What programs call mremap for: realloc doubles a large allocation, alone or
 * while another thread of the process runs on another CPU. Something is mapped
 * right behind it, so that it cannot grow where it is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ab.h"

#define PAGE		4096UL
#define LEN		(32UL << 20)
#define MS		40

/* Of all cases. */
static char *memory;

static struct {
	char *neighbour;
	unsigned long calls;
} growth;

static uint64_t word_of(size_t page)
{
	return (page + 1) * 0x9e3779b97f4a7c15ULL;
}

static uint64_t *words_of(size_t page)
{
	return (uint64_t *)(memory + page * PAGE);
}

/* Back to half the size, and somebody takes the room that this leaves. */
static void shrink(void *arg)
{
	char *p, *end;

	(void)arg;
	if (growth.neighbour)
		munmap(growth.neighbour, PAGE);
	p = realloc(memory, LEN);
	if (p)
		memory = p;
	end = (char *)(((uintptr_t)memory + LEN + PAGE - 1) & ~(PAGE - 1));
	growth.neighbour = mmap(end, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
				MAP_FIXED_NOREPLACE, -1, 0);
	/* if it is not there, grow() tells */
	if (growth.neighbour == MAP_FAILED)
		growth.neighbour = NULL;
}

static int grow(void *arg)
{
	char *p = realloc(memory, 2 * LEN);

	(void)arg;
	if (!p || p == memory) {
		ab_error("realloc: %s", p ? "grew in place" : strerror(errno));
		return -1;
	}
	memory = p;
	growth.calls++;
	return 0;
}

static int check(const char *name)
{
	for (size_t page = 0; page < LEN / PAGE; page++) {
		if (*words_of(page) == word_of(page))
			continue;
		ab_error("%s: CONTENTS LOST in page %zu", name, page);
		return -1;
	}
	return 0;
}

static int realloc_setup(const struct ab_case *c)
{
	int err = ab_spin_setup(c);

	if (err || memory)
		return err;
	memory = malloc(LEN);
	if (!memory) {
		ab_error("%s: %s", c->name, strerror(errno));
		return -1;
	}
	for (size_t page = 0; page < LEN / PAGE; page++)
		*words_of(page) = word_of(page);
	return 0;
}

static int measure(const struct ab_case *c, struct ab_sample *s)
{
	struct ab_loop loop = {
		.batch = grow,
		.prepare = shrink,
		.calls = 1,
		.ms = MS,
		.quantile = 0.25,
	};
	double per_call = NAN;

	growth.calls = 0;
	shrink(NULL);
	if (ab_count_flushes(grow, NULL, &s->flushes) || ab_quiet(&loop, &per_call))
		return -1;
	s->value = per_call * ab_yardstick_ns() / 1e3;
	s->calls = growth.calls;
	return check(c->name);
}

static int realloc_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct ab_spin *spin = NULL;
	int err;

	if (c->spinner) {
		spin = ab_spin_start(mode == AB_limit);
		if (!spin)
			return -1;
	}
	err = measure(c, s);
	if (spin && ab_spin_stop(spin))
		err = -1;
	return err;
}

static void realloc_teardown(const struct ab_case *c)
{
	(void)c;
	free(memory);
	memory = NULL;
}

#define CASE(threads)							\
	{								\
		.path = "mremap", .unit = "us/call",			\
		.name = "realloc-" #threads "thread", .spinner = threads,	\
		.setup = realloc_setup, .run = realloc_run,		\
		.teardown = realloc_teardown,				\
	}

const struct ab_case ab_realloc_cases[] = { CASE(0), CASE(1), { } };
