// SPDX-License-Identifier: GPL-2.0
/*
 * Which state a pair of windows begins with is decided by a coin. If a path
 * makes no difference, the coin alone decides the sign of the pair's difference:
 * drift, bursts and windows that resemble their neighbours change how large the
 * differences are, not that. So all that is asked is whether the signs look like
 * those of a coin: Wilcoxon's signed-rank test over the pairs, whose ranks keep
 * a single burst from deciding. The ratio is the estimate that belongs to it
 * (Hodges and Lehmann), and the confidence interval holds exactly the ratios
 * which the same test does not reject, so that it agrees with the verdict.
 * Several series of one run are corrected for by Holm's method.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ab_stat.h"

/* The test is exact up to so many pairs, and close enough to normal beyond. */
#define EXACT_MAX	100
/* More than that in one bucket, and the histogram tells little. */
#define COARSE		0.9
/* How closely the ratio is found, as log2. */
#define PRECISION	(1.0 / (1 << 30))

void ab_random_seed(struct ab_random *random, unsigned int seed)
{
	random->state[0] = 0x330e;
	random->state[1] = (unsigned short)seed;
	random->state[2] = (unsigned short)(seed >> 16);
	/* The first numbers of seeds that are close are close too. */
	for (int i = 0; i < 16; i++)
		erand48(random->state);
}

/* At least 0, less than 1. */
double ab_random(struct ab_random *random)
{
	return erand48(random->state);
}

bool ab_coin(struct ab_random *random)
{
	return ab_random(random) < 0.5;
}

static double total(const __u64 *hist)
{
	double sum = 0;

	for (size_t i = 0; i < AB_BUCKETS; i++)
		sum += (double)hist[i];
	return sum;
}

/* As if the calls of a bucket were spread evenly over it, on a scale of logarithms. */
double ab_mean_log2(const __u64 *hist)
{
	double sum = 0;

	for (size_t i = 0; i < AB_BUCKETS; i++)
		sum += (double)hist[i] * ((double)i + 0.5);
	return sum / total(hist);
}

double ab_quantile_ns(const __u64 *hist, double q)
{
	double want = total(hist) * q, seen = 0;

	for (size_t i = 0; i < AB_BUCKETS; i++) {
		double n = (double)hist[i];

		if (n > 0 && seen + n >= want)
			return exp2((double)i + (want - seen) / n);
		seen += n;
	}
	return 0;
}

bool ab_is_coarse(const __u64 *hist)
{
	double sum = total(hist);

	for (size_t i = 0; i < AB_BUCKETS; i++)
		if ((double)hist[i] > COARSE * sum)
			return true;
	return false;
}

struct ranked {
	double size;		/* without its sign */
	int sign;
	unsigned int rank2;	/* twice the rank, as those that are equal share theirs */
};

static int by_size(const void *a, const void *b)
{
	double x = ((const struct ranked *)a)->size, y = ((const struct ranked *)b)->size;

	return (x > y) - (x < y);
}

/* Ranks how far each difference is from @theta. Returns the sum of the signed ranks. */
static double signed_ranks(const struct ab_series *s, double theta, struct ranked *v)
{
	double sum = 0;
	size_t i, j;

	for (i = 0; i < s->n; i++) {
		double d = s->diff[i] - theta;

		v[i].size = fabs(d);
		v[i].sign = (d > 0) - (d < 0);
	}
	qsort(v, s->n, sizeof(*v), by_size);
	for (i = 0; i < s->n; i = j) {
		for (j = i + 1; j < s->n && v[j].size == v[i].size; j++)
			;
		for (size_t k = i; k < j; k++) {
			v[k].rank2 = (unsigned int)(i + 1 + j);
			sum += v[k].sign * (double)v[k].rank2;
		}
	}
	return sum;
}

/* The chance that coins for signs give a sum that is @sum or further from 0. */
static double exact_p(const struct ranked *v, size_t n, double sum)
{
	double *chance, p = 0;
	size_t max = 0, top = 0;

	for (size_t i = 0; i < n; i++)
		max += v[i].sign ? v[i].rank2 : 0;
	/* chance[k]: that the ranks with a positive sign sum up to k */
	chance = calloc(max + 1, sizeof(*chance));
	if (!chance)
		abort();
	chance[0] = 1;
	for (size_t i = 0; i < n; i++) {
		size_t rank = v[i].sign ? v[i].rank2 : 0;

		if (!rank)
			continue;
		top += rank;
		for (size_t k = top + 1; k-- > 0;)
			chance[k] = (chance[k] + (k >= rank ? chance[k - rank] : 0)) / 2;
	}
	for (size_t k = 0; k <= max; k++)
		if (fabs(2 * (double)k - (double)max) >= fabs(sum))
			p += chance[k];
	free(chance);
	return p;
}

static double normal_p(const struct ranked *v, size_t n, double sum)
{
	double variance = 0;

	for (size_t i = 0; i < n; i++)
		variance += v[i].sign ? (double)v[i].rank2 * v[i].rank2 : 0;
	return variance > 0 ? erfc(fabs(sum) / sqrt(2 * variance)) : 1;
}

static struct ranked *ranked_new(const struct ab_series *s)
{
	struct ranked *v = calloc(s->n + 1, sizeof(*v));

	if (!v)
		abort();
	return v;
}

/* The chance of what was seen, if on were better by exactly @theta. */
static double p_of(const struct ab_series *s, double theta)
{
	struct ranked *v = ranked_new(s);
	double sum = signed_ranks(s, theta, v);
	double p = s->n <= EXACT_MAX ? exact_p(v, s->n, sum) : normal_p(v, s->n, sum);

	free(v);
	return p;
}

static double sum_of(const struct ab_series *s, double theta)
{
	struct ranked *v = ranked_new(s);
	double sum = signed_ranks(s, theta, v);

	free(v);
	return sum;
}

static bool is_below(const struct ab_series *s, double theta, double unused)
{
	(void)unused;
	return sum_of(s, theta) > 0;
}

static bool is_above(const struct ab_series *s, double theta, double unused)
{
	(void)unused;
	return sum_of(s, theta) < 0;
}

static bool is_possible(const struct ab_series *s, double theta, double alpha)
{
	return p_of(s, theta) > alpha;
}

/* Where @holds ends, between @yes, where it holds, and @no, where it does not. */
static double edge(const struct ab_series *s, double yes, double no, double arg,
		   bool (*holds)(const struct ab_series *s, double theta, double arg))
{
	while (fabs(no - yes) > PRECISION) {
		double mid = (yes + no) / 2;

		if (holds(s, mid, arg))
			yes = mid;
		else
			no = mid;
	}
	return yes;
}

static void estimate(struct ab_series *s, double alpha)
{
	double min = s->diff[0], max = s->diff[0], middle;

	for (size_t i = 1; i < s->n; i++) {
		min = fmin(min, s->diff[i]);
		max = fmax(max, s->diff[i]);
	}
	/* Nothing that was seen lies beyond these. */
	min -= 1;
	max += 1;
	middle = (edge(s, min, max, 0, is_below) + edge(s, max, min, 0, is_above)) / 2;
	s->ratio = exp2(middle);
	s->low = exp2(edge(s, middle, min, alpha, is_possible));
	s->high = exp2(edge(s, middle, max, alpha, is_possible));
}

static bool enough(size_t pairs, double alpha)
{
	return exp2(1 - (double)pairs) <= alpha;
}

size_t ab_pairs_needed(size_t series)
{
	size_t pairs = 1;

	while (!enough(pairs, AB_ALPHA / (double)series))
		pairs++;
	return pairs;
}

static void judge(struct ab_series *s, double alpha, bool claimed)
{
	s->level = 1 - alpha;
	if (!enough(s->n, alpha)) {
		s->verdict = AB_TOO_LITTLE;
		return;
	}
	estimate(s, alpha);
	if (!claimed)
		s->verdict = AB_NO_DIFFERENCE;
	else
		s->verdict = sum_of(s, 0) > 0 ? AB_BETTER : AB_WORSE;
	/* Where most pairs are exactly alike, the bisections end beside 1, on either side. */
	if (s->verdict == AB_BETTER) {
		s->ratio = fmax(s->ratio, 1);
		s->low = fmax(s->low, 1);
	} else if (s->verdict == AB_WORSE) {
		s->ratio = fmin(s->ratio, 1);
		s->high = fmin(s->high, 1);
	} else {
		s->low = fmin(s->low, 1);
		s->high = fmax(s->high, 1);
	}
}

/*
 * Holm: the smallest p is held against alpha / n, the next against
 * alpha / (n - 1), until the first that is too large. The interval of each is
 * that of the level it was held against.
 */
void ab_judge(struct ab_series *series, size_t n)
{
	bool *done = calloc(n + 1, sizeof(*done)), claims = true;
	double alpha = AB_ALPHA;

	if (!done)
		abort();
	for (size_t i = 0; i < n; i++)
		series[i].p = series[i].n ? p_of(&series[i], 0) : 1;
	for (size_t step = 0; step < n; step++) {
		size_t best = n;

		for (size_t i = 0; i < n; i++)
			if (!done[i] && (best == n || series[i].p < series[best].p))
				best = i;
		if (claims)
			alpha = AB_ALPHA / (double)(n - step);
		claims = claims && series[best].p <= alpha;
		judge(&series[best], alpha, claims);
		done[best] = true;
	}
	free(done);
}
