/* SPDX-License-Identifier: GPL-2.0 */
/* The statistics of "mmopt ab": no files, no clock, so that a test can run them. */
#ifndef AB_STAT_H
#define AB_STAT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* How often chance alone may look like a difference, over all series of a run. */
#define AB_ALPHA	0.01
#define AB_BUCKETS	64

enum ab_verdict { AB_TOO_LITTLE, AB_NO_DIFFERENCE, AB_BETTER, AB_WORSE };

/* One comparison: a path's latencies, or a metric under a path. */
struct ab_series {
	double *diff;		/* per pair of windows: log2 of how much better on is */
	size_t n;

	enum ab_verdict verdict;
	double p;		/* chance of such a difference if there is none */
	double level;		/* of the confidence interval, 0 to 1 */
	double ratio, low, high;
};

/* Reproducible chance. */
struct ab_random {
	unsigned short state[3];
};

void ab_random_seed(struct ab_random *random, unsigned int seed);
double ab_random(struct ab_random *random);
bool ab_coin(struct ab_random *random);

/* Bucket i holds the calls of at least 2^i and less than 2^(i + 1) ns. */
double ab_mean_log2(const __u64 *hist);
double ab_quantile_ns(const __u64 *hist, double q);
bool ab_is_coarse(const __u64 *hist);

/* How many pairs it takes before anything can be claimed of one of @series. */
size_t ab_pairs_needed(size_t series);
void ab_judge(struct ab_series *series, size_t n);

#endif /* AB_STAT_H */
