// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ab.h"

#define QUIET_MAX	8192	/* batches of one measurement */
#define QUIET_MIN	8
#define YARDSTICK_CALLS	400
#define YARDSTICK_BATCHES 200
#define YARDSTICK_QUANTILE 0.25

uint64_t ab_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

void ab_sleep_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static unsigned int hist_bucket(uint64_t ns)
{
	unsigned int order;

	if (ns < AB_HIST_SUB)
		return ns;
	order = 63 - __builtin_clzll(ns);
	return (order - 3) * AB_HIST_SUB + (ns >> (order - 4)) % AB_HIST_SUB;
}

static double hist_middle(unsigned int bucket)
{
	unsigned int order = bucket / AB_HIST_SUB + 3;

	if (bucket < AB_HIST_SUB)
		return bucket;
	return ldexp(AB_HIST_SUB + bucket % AB_HIST_SUB + 0.5, order - 4);
}

void ab_hist_add(struct ab_hist *h, uint64_t ns)
{
	h->n[hist_bucket(ns)]++;
}

void ab_hist_merge(struct ab_hist *to, const struct ab_hist *from)
{
	for (size_t i = 0; i < sizeof(to->n) / sizeof(to->n[0]); i++)
		to->n[i] += from->n[i];
}

uint64_t ab_hist_count(const struct ab_hist *h)
{
	uint64_t total = 0;

	for (size_t i = 0; i < sizeof(h->n) / sizeof(h->n[0]); i++)
		total += h->n[i];
	return total;
}

/* Nanoseconds, or NAN if nothing has been counted. */
double ab_hist_quantile(const struct ab_hist *h, double q)
{
	size_t buckets = sizeof(h->n) / sizeof(h->n[0]);
	uint64_t total = ab_hist_count(h), seen = 0;

	for (size_t i = 0; i < buckets; i++) {
		seen += h->n[i];
		if (seen && seen >= q * total)
			return hist_middle(i);
	}
	return NAN;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double ab_quantile(const double *v, size_t n, double q)
{
	double *sorted = n ? malloc(n * sizeof(*v)) : NULL;
	double at, result;
	size_t low;

	if (!sorted)
		return NAN;
	at = q * (n - 1);
	low = at;
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*v), compare);
	result = sorted[low];
	if (low + 1 < n)
		result += (at - low) * (sorted[low + 1] - sorted[low]);
	free(sorted);
	return result;
}

/* The last CPU of those allowed gets the fewest of the machine's interrupts. */
static void pin(cpu_set_t *before)
{
	cpu_set_t one;

	sched_getaffinity(0, sizeof(*before), before);
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, before))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void yardstick(void)
{
	for (int i = 0; i < YARDSTICK_CALLS; i++)
		syscall(SYS_getppid);
}

/*
 * Time many short batches, on one CPU if nothing else is asked for, and take a low
 * quantile: what disturbs a batch (a tick, another process, the host of a guest)
 * only ever adds time, so that the quicker batches show the cost of the code itself.
 *
 * The speed of a machine drifts by some percent within seconds, more than what
 * is to be told apart. So after each batch the cheapest system call, which mmopt
 * does not touch, is timed in the same way, and the answer is in units of that.
 */
int ab_quiet(const struct ab_loop *l, double *per_call)
{
	double *v = malloc(2 * QUIET_MAX * sizeof(*v)), *yard;
	uint64_t warm, end, t0, t1, t2;
	cpu_set_t before;
	size_t n = 0, min = l->min ? l->min : QUIET_MIN;
	int err = 0;

	if (!v) {
		ab_error("out of memory");
		return -1;
	}
	yard = v + QUIET_MAX;
	if (!l->anywhere)
		pin(&before);
	warm = ab_now() + l->ms * 100000ULL;
	end = warm + l->ms * 1000000ULL;
	do {
		if (l->prepare)
			l->prepare(l->arg);
		t0 = ab_now();
		err = l->batch(l->arg);
		t1 = ab_now();
		yardstick();
		t2 = ab_now();
		if (t0 < warm)
			continue;
		v[n] = (double)(t1 - t0) / l->calls;
		yard[n++] = (double)(t2 - t1) / YARDSTICK_CALLS;
	} while (!err && (t2 < end || n < min) && n < QUIET_MAX);
	if (!l->anywhere)
		sched_setaffinity(0, sizeof(before), &before);
	*per_call = ab_quantile(v, n, l->quantile) / ab_quantile(yard, n, YARDSTICK_QUANTILE);
	free(v);
	return err;
}

/* How long one call of the yardstick takes, measured once, at the first use. */
double ab_yardstick_ns(void)
{
	static double ns;
	double v[YARDSTICK_BATCHES];
	cpu_set_t before;
	uint64_t t;

	if (ns > 0)
		return ns;
	pin(&before);
	for (int i = 0; i < YARDSTICK_BATCHES; i++) {
		t = ab_now();
		yardstick();
		v[i] = (double)(ab_now() - t) / YARDSTICK_CALLS;
	}
	sched_setaffinity(0, sizeof(before), &before);
	ns = ab_quantile(v, YARDSTICK_BATCHES, YARDSTICK_QUANTILE);
	return ns;
}
