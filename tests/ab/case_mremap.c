// SPDX-License-Identifier: GPL-2.0
/*
 * mremap of memory that is populated once and then moved to and fro between two
 * places, alone or while another thread of the process runs on another CPU.
 *
 * pud, pmd: both places begin at the start of a page table of that level.
 * congruent: they do not, but lie the same way within one.
 * unaligned: they lie differently, so that each entry has to be moved.
 *
 * Memory of huge pages is made anew for each of these layouts: an unaligned move
 * splits their entries for good.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ab.h"

#define KIB		(1UL << 10)
#define MIB		(1UL << 20)
#define GIB		(1UL << 30)
#define PAGE		(4 * KIB)
#define HUGE		(2 * MIB)

#define SMALL_MS	40
#define LARGE_MS	100
#define LARGE_MIN	3		/* calls that are timed, however long they take */
#define LARGE_NEEDS_MIB	1640

/* Far from what mmap chooses, so that nothing gets into a place that is empty. */
#define WINDOWS		0x100000000000UL
#define WINDOW		(8 * GIB)
#define BETWEEN		(6 * GIB)

enum layout { pud, pmd, congruent, unaligned };
enum kind { anon, thp, file, KINDS };

static const unsigned long place[][2] = {
	[pud] = { 0, 4 * GIB },
	[pmd] = { HUGE, 4 * GIB + 2 * HUGE },
	[congruent] = { HUGE + 3 * PAGE, 4 * GIB + 2 * HUGE + 3 * PAGE },
	[unaligned] = { HUGE, 4 * GIB + 2 * HUGE + 5 * PAGE },
};

struct mremap_load {
	size_t len;
	enum layout layout;
	enum kind kind;
	double flushes[AB_MODE_COUNT];	/* of one call; negative: not yet known */
};

/* What lies in one window, at either place of some layout. */
struct memory {
	char *window, *at;
	size_t len;
	enum kind kind;
	enum layout made_for;		/* if of huge pages */
};

/* For 1 GiB there is one, made again for another kind. */
static struct memory memories[6];

struct moves {
	struct memory *m;
	char *to[2];
	unsigned long calls;
};

static bool fits(const struct memory *m, const struct mremap_load *l)
{
	enum layout made_for = l->layout == pud ? pmd : l->layout;

	return m->kind == l->kind && (m->kind != thp || m->made_for == made_for);
}

static struct memory *memory_of(const struct mremap_load *l)
{
	struct memory *m = memories;

	while (m->len && !(m->len == l->len && (l->len == GIB || fits(m, l))))
		m++;
	return m;
}

static uint64_t word_of(const struct memory *m, size_t page)
{
	return (page + 1) * 0x9e3779b97f4a7c15ULL ^ (uintptr_t)m;
}

static int check(const struct memory *m, const char *name)
{
	for (size_t page = 0; page < m->len / PAGE; page++) {
		if (*(volatile uint64_t *)(m->at + page * PAGE) == word_of(m, page))
			continue;
		ab_error("%s: CONTENTS LOST in page %zu", name, page);
		return -1;
	}
	return 0;
}

/* A figure in kB or MiB that a line of a file of /proc gives, summed over lines. */
static unsigned long sum_of(const char *name, const char *field)
{
	FILE *f = fopen(name, "re");
	unsigned long sum = 0, n;
	size_t len = strlen(field);
	char line[512];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && sscanf(line + len, ": %lu", &n) == 1)
			sum += n;
	fclose(f);
	return sum;
}

static void compact(void)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1", 1) < 0)
		ab_error("compact_memory: %s", strerror(errno));
	close(fd);
}

static char *map(const struct mremap_load *l, char *at)
{
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p;

	if (l->kind == file) {
		fd = memfd_create("mmopt-ab", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, l->len))
			return MAP_FAILED;
		flags = MAP_SHARED;
	}
	p = mmap(at, l->len, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, fd, 0);
	if (fd >= 0)
		close(fd);
	return p;
}

static int populate(struct memory *m, const struct mremap_load *l, const char *name)
{
	unsigned long huge;

	if (m->at && munmap(m->at, m->len))
		goto fail;
	huge = sum_of("/proc/self/smaps", "AnonHugePages");
	*m = (struct memory){
		.window = (char *)WINDOWS + (m - memories) * WINDOW,
		.len = l->len,
		.kind = l->kind,
		.made_for = l->layout == pud ? pmd : l->layout,
	};
	m->at = map(l, m->window + place[m->made_for][0]);
	if (m->at == MAP_FAILED)
		goto fail;
	if (l->kind == thp) {
		compact();
		prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
		if (madvise(m->at, m->len, MADV_HUGEPAGE))
			goto fail;
	}
	for (size_t page = 0; page < m->len / PAGE; page++)
		*(volatile uint64_t *)(m->at + page * PAGE) = word_of(m, page);
	if (l->kind != thp)
		return 0;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	huge = sum_of("/proc/self/smaps", "AnonHugePages") - huge;
	if (huge >= (l->len - 2 * HUGE) / KIB)
		return 0;
	ab_error("%s: only %lu kB in huge pages", name, huge);
	return -1;
fail:
	ab_error("%s: cannot make the memory: %s", name, strerror(errno));
	return -1;
}

static int move_to(struct memory *m, char *to)
{
	if (m->at == to)
		return 0;
	if (mremap(m->at, m->len, m->len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
		ab_error("mremap: %s", strerror(errno));
		return -1;
	}
	m->at = to;
	return 0;
}

/* One call, to where the memory is not. */
static int move(void *arg)
{
	struct moves *v = arg;

	v->calls++;
	return move_to(v->m, v->to[v->m->at == v->to[0]]);
}

#define COUNTED_MOVES	4

static int counted_moves(void *arg)
{
	int err = 0;

	for (int i = 0; i < COUNTED_MOVES && !err; i++)
		err = move(arg);
	return err;
}

/* Whole page tables of PUDs are left to stock code. */
static bool batched(const struct mremap_load *l)
{
	return l->layout != pud || l->len < GIB;
}

static int mremap_setup(const struct ab_case *c)
{
	const struct mremap_load *l = c->load;
	struct memory *m = memory_of(l);
	int err = ab_spin_setup(c);

	if (err)
		return err;
	if (!m->at && l->len == GIB &&
	    sum_of("/proc/meminfo", "MemAvailable") < LARGE_NEEDS_MIB * KIB) {
		ab_error("%s: left out: takes %u MiB of free memory", c->name,
			 LARGE_NEEDS_MIB);
		return AB_SKIP;
	}
	return 0;
}

static int measure(const struct ab_case *c, enum ab_mode mode, struct moves *v,
		   struct ab_sample *s)
{
	struct mremap_load *l = c->load;
	struct ab_loop loop = {
		.batch = move,
		.arg = v,
		.calls = 1,
		.ms = l->len == GIB ? LARGE_MS : SMALL_MS,
		.min = l->len == GIB ? LARGE_MIN : 0,
		.quantile = 0.25,
	};
	double per_call = NAN;

	if (l->flushes[mode] < 0) {
		if (ab_count_flushes(counted_moves, v, &l->flushes[mode]))
			return -1;
		l->flushes[mode] /= COUNTED_MOVES;
	}
	s->flushes = l->flushes[mode];
	if (ab_quiet(&loop, &per_call))
		return -1;
	s->value = per_call * ab_yardstick_ns() / 1e3;
	return 0;
}

static int mremap_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct mremap_load *l = c->load;
	struct memory *m = memory_of(l);
	struct ab_spin *spin = NULL;
	struct moves v = { .m = m };
	bool make = !m->at || !fits(m, l);
	int err;

	if (make && populate(m, l, c->name))
		return -1;
	for (int i = 0; i < 2; i++)
		v.to[i] = m->window + place[l->layout][i];
	/* By way of a third place: those of different layouts overlap. */
	if (m->at != v.to[0] && m->at != v.to[1] &&
	    (move_to(m, m->window + BETWEEN) || move_to(m, v.to[0])))
		return -1;
	/* The first of a kind may be unlike all that follow, and stock: it splits entries. */
	if (make && (move(&v) || move(&v)))
		return -1;
	v.calls = 0;
	if (c->spinner) {
		spin = ab_spin_start(mode == AB_limit);
		if (!spin)
			return -1;
	}
	err = measure(c, mode, &v, s);
	if (spin && ab_spin_stop(spin))
		err = -1;
	s->calls = batched(l) ? v.calls : 0;
	return err ?: check(m, c->name);
}

static void mremap_teardown(const struct ab_case *c)
{
	struct memory *m = memory_of(c->load);

	if (m->at)
		munmap(m->at, m->len);
	m->at = NULL;
	m->kind = KINDS;
}

#define UNKNOWN		{ -1, -1, -1, -1 }

#define ONE(size_, len_, layout_, kind_, suffix_, threads_, full_) {		\
	.path = "mremap", .unit = "us/call", .spinner = threads_, .full = full_,	\
	.name = #size_ "-" #layout_ "-" #threads_ "thread" suffix_,		\
	.load = &(struct mremap_load){ len_, layout_, kind_, UNKNOWN },		\
	.setup = mremap_setup, .run = mremap_run, .teardown = mremap_teardown,	\
}

#define LAYOUT(size, len, layout, kind, suffix, full)	\
	ONE(size, len, layout, kind, suffix, 0, full),	\
	ONE(size, len, layout, kind, suffix, 1, full)

#define KIND(size, len, kind, suffix, full)			\
	LAYOUT(size, len, pud, kind, suffix, full),		\
	LAYOUT(size, len, pmd, kind, suffix, full),		\
	LAYOUT(size, len, congruent, kind, suffix, full),	\
	LAYOUT(size, len, unaligned, kind, suffix, full)

/* One case stands for the others, which are in the full set. */
#define PMD_FIRST(size, len, kind, suffix)			\
	ONE(size, len, pmd, kind, suffix, 0, false),		\
	ONE(size, len, pmd, kind, suffix, 1, true),		\
	LAYOUT(size, len, pud, kind, suffix, true),		\
	LAYOUT(size, len, congruent, kind, suffix, true),	\
	LAYOUT(size, len, unaligned, kind, suffix, true)

const struct ab_case ab_mremap_cases[] = {
	ONE(1g, GIB, pmd, anon, "", 0, false),
	ONE(1g, GIB, pmd, anon, "", 1, false),
	ONE(1g, GIB, unaligned, anon, "", 1, false),
	KIND(64m, 64 * MIB, anon, "", false),
	PMD_FIRST(64m, 64 * MIB, thp, "-thp"),
	PMD_FIRST(64m, 64 * MIB, file, "-file"),
	ONE(1g, GIB, unaligned, anon, "", 0, true),
	LAYOUT(1g, GIB, pud, anon, "", true),
	LAYOUT(1g, GIB, congruent, anon, "", true),
	KIND(1g, GIB, file, "-file", true),
	KIND(1g, GIB, thp, "-thp", true),
	{ }
};
