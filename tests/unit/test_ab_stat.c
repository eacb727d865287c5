// SPDX-License-Identifier: GPL-2.0
/*
 * The statistics of "mmopt ab" on made-up hosts: latencies drift, come in
 * bursts, resemble those just before and have heavy tails. Where there is no
 * difference none may be claimed, and one that is there must be found.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ab_stat.h"

#define SEEDS	200
#define PAIRS	30

/* What a host does to the latencies of the calls made on it. */
struct noise {
	const char *name;
	double drift;		/* of the level, log2 per window, at random */
	double memory;		/* how much of a window's deviation the next one has */
	double spread;		/* of that deviation */
	double bursts;		/* chance that one begins */
	double tail;		/* exponent of Pareto's law; the smaller the heavier */
	double wave;		/* a load that comes and goes with every fourth window */
	int calls;		/* per window, more or less */
};

static const struct noise noises[] = {
	{ "quiet", 0, 0, 0.05, 0, 8, 0, 300 },
	{ "drift", 0.3, 0, 0.05, 0, 4, 0, 200 },
	{ "memory", 0, 0.95, 0.5, 0, 4, 0, 200 },
	{ "bursts", 0, 0, 0.2, 0.1, 3, 0, 200 },
	{ "heavy tails", 0, 0, 0.1, 0, 0.8, 0, 200 },
	{ "waves", 0, 0, 0.1, 0, 3, 2, 200 },
	{ "few calls", 0.1, 0.5, 0.2, 0.05, 1.5, 0, 3 },
	{ "all", 0.1, 0.8, 0.2, 0.05, 1.2, 0.5, 100 },
};

struct host {
	const struct noise *noise;
	struct ab_random random;
	double level, deviation;
	int burst;
	unsigned int window;
};

static double uniform(struct host *h)
{
	return 1 - ab_random(&h->random);	/* never 0 */
}

static double normal(struct host *h)
{
	return sqrt(-2 * log(uniform(h))) * cos(2 * M_PI * uniform(h));
}

/* One window: calls into @hist, as many times faster as @speed says. */
static void run_window(struct host *h, double speed, __u64 *hist)
{
	const struct noise *n = h->noise;
	int calls = 1 + (int)(n->calls * 2 * uniform(h));
	double level;

	h->level += n->drift * normal(h);
	h->deviation = n->memory * h->deviation + n->spread * normal(h);
	if (h->burst)
		h->burst--;
	else if (uniform(h) < n->bursts)
		h->burst = 1 + (int)(5 * uniform(h));
	level = 14 + h->level + h->deviation + (h->burst ? 2 : 0) +
		n->wave * (h->window++ % 4 < 2);
	memset(hist, 0, AB_BUCKETS * sizeof(*hist));
	for (int i = 0; i < calls; i++) {
		double ns = exp2(level - log2(uniform(h)) / n->tail + 0.5 * normal(h)) / speed;
		int bucket = ns < 1 ? 0 : ilogb(ns);

		hist[bucket < AB_BUCKETS ? bucket : AB_BUCKETS - 1]++;
	}
}

/* As "mmopt ab" does it: in each pair, a coin says which state is first. */
static void run(const struct noise *noise, unsigned int seed, double speed, double *diff, size_t n)
{
	struct host host = { .noise = noise };
	__u64 hist[2][AB_BUCKETS];
	struct ab_random coins;

	ab_random_seed(&host.random, seed + 1000000);
	ab_random_seed(&coins, seed);
	for (size_t i = 0; i < n; i++) {
		bool first = ab_coin(&coins);

		run_window(&host, first ? speed : 1, hist[first]);
		run_window(&host, first ? 1 : speed, hist[!first]);
		diff[i] = ab_mean_log2(hist[0]) - ab_mean_log2(hist[1]);
	}
}

static bool claimed(const struct ab_series *s)
{
	return s->verdict == AB_BETTER || s->verdict == AB_WORSE;
}

static void test_nothing_is_claimed_of_chance(void **state)
{
	double diff[PAIRS];
	int all = 0;

	(void)state;
	for (size_t k = 0; k < sizeof(noises) / sizeof(*noises); k++) {
		int wrong = 0;

		for (unsigned int seed = 1; seed <= SEEDS; seed++) {
			struct ab_series s = { .diff = diff, .n = PAIRS };

			run(&noises[k], seed, 1, diff, PAIRS);
			ab_judge(&s, 1);
			assert_int_not_equal(s.verdict, AB_TOO_LITTLE);
			assert_int_equal(claimed(&s), s.low > 1 || s.high < 1);
			wrong += claimed(&s);
		}
		print_message("# A/A, %s: %d of %d seeds claim a difference\n",
			      noises[k].name, wrong, SEEDS);
		assert_true(wrong <= SEEDS * 5 / 100);
		all += wrong;
	}
	/* The test promises 1 %: of 1600, 16, and more than 32 once in 5000 such tests. */
	assert_true(all <= 32);
}

static void test_nothing_is_claimed_of_several(void **state)
{
	double diff[4][PAIRS];
	int wrong = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		struct ab_series s[4];
		bool any = false;

		for (unsigned int i = 0; i < 4; i++) {
			s[i] = (struct ab_series){ .diff = diff[i], .n = PAIRS };
			run(&noises[7], seed * 4 + i, 1, diff[i], PAIRS);
		}
		ab_judge(s, 4);
		for (size_t i = 0; i < 4; i++)
			any |= claimed(&s[i]);
		wrong += any;
	}
	print_message("# A/A of 4 series: %d of %d seeds claim a difference\n", wrong, SEEDS);
	assert_true(wrong <= SEEDS * 5 / 100);
}

/* With drift and memory that strong, 30 pairs are not enough; these are what is usual. */
static void test_finds_a_difference(void **state)
{
	static const struct noise usual = { "usual", 0.05, 0.5, 0.1, 0.03, 1.5, 0.3, 200 };
	static const double speeds[] = { 1.3, 1 / 1.3, 3 };
	double diff[PAIRS];

	(void)state;
	for (size_t k = 0; k < sizeof(speeds) / sizeof(*speeds); k++) {
		int found = 0, reverse = 0, covered = 0;

		for (unsigned int seed = 1; seed <= SEEDS; seed++) {
			struct ab_series s = { .diff = diff, .n = PAIRS };

			run(&usual, seed, speeds[k], diff, PAIRS);
			ab_judge(&s, 1);
			found += s.verdict == (speeds[k] > 1 ? AB_BETTER : AB_WORSE);
			reverse += s.verdict == (speeds[k] > 1 ? AB_WORSE : AB_BETTER);
			covered += s.low <= speeds[k] && speeds[k] <= s.high;
		}
		print_message("# %.2f times as fast: found %d, reversed %d, in the interval %d of %d\n",
			      speeds[k], found, reverse, covered, SEEDS);
		assert_true(found >= SEEDS * 90 / 100);
		assert_int_equal(reverse, 0);
		assert_true(covered >= SEEDS * 95 / 100);
	}
}

/* Against the tables: 2 * P(W <= w) for n pairs without ties. */
static void test_p_is_that_of_the_tables(void **state)
{
	static const struct { size_t n; unsigned int w; double p; } table[] = {
		{ 8, 0, 0.0078125 }, { 8, 3, 0.0390625 }, { 10, 8, 0.048828125 },
		{ 10, 3, 0.009765625 }, { 5, 0, 0.0625 }, { 4, 5, 1 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(table) / sizeof(*table); k++) {
		double diff[10];
		struct ab_series s = { .diff = diff, .n = table[k].n };
		unsigned int left = table[k].w;

		/* Ranks that sum up to w get the negative sign. */
		for (size_t i = table[k].n; i-- > 0;) {
			bool negative = left >= i + 1;

			left -= negative ? (unsigned int)i + 1 : 0;
			diff[i] = (negative ? -1.0 : 1.0) * ((double)i + 1);
		}
		ab_judge(&s, 1);
		assert_float_equal(s.p, table[k].p, 1e-12);
	}
}

/*
 * The exact test and the approximation meet where one hands over to the other:
 * a difference of nothing, as the 101st, is all that is added.
 */
static void test_many_pairs(void **state)
{
	double diff[4000], p[2];

	(void)state;
	for (size_t n = 100; n <= 101; n++) {
		struct ab_series s = { .diff = diff, .n = n };

		for (size_t i = 0; i < n; i++)
			diff[i] = i < 100 ? (double)((i + 1) * 37 % 101) / 50 - 0.85 : 0;
		ab_judge(&s, 1);
		p[n - 100] = s.p;
	}
	assert_true(p[0] > 0.001 && p[0] < 0.05);
	assert_float_equal(p[0] / p[1], 1, 0.1);

	struct ab_series s = { .diff = diff, .n = 4000 };

	run(&noises[7], 1, 1.3, diff, 4000);
	ab_judge(&s, 1);
	assert_int_equal(s.verdict, AB_BETTER);
	assert_true(s.low > 1.15 && s.high < 1.45);
}

static void test_too_little(void **state)
{
	double diff[16];

	(void)state;
	for (size_t i = 0; i < 16; i++)
		diff[i] = 2 + (double)i / 100;
	for (size_t series = 1; series <= 10; series++) {
		size_t needed = ab_pairs_needed(series);

		for (size_t n = 0; n <= 16; n++) {
			struct ab_series s[10];

			for (size_t i = 0; i < series; i++)
				s[i] = (struct ab_series){ .diff = diff, .n = i ? 0 : n };
			ab_judge(s, series);
			assert_int_equal(s[0].verdict, n < needed ? AB_TOO_LITTLE : AB_BETTER);
			for (size_t i = 1; i < series; i++)
				assert_int_equal(s[i].verdict, AB_TOO_LITTLE);
		}
	}
	assert_int_equal(ab_pairs_needed(1), 8);
}

static void test_no_difference_at_all(void **state)
{
	double diff[PAIRS] = { 0 };
	struct ab_series s = { .diff = diff, .n = PAIRS };

	(void)state;
	ab_judge(&s, 1);
	assert_int_equal(s.verdict, AB_NO_DIFFERENCE);
	assert_float_equal(s.p, 1, 0);
	assert_float_equal(s.ratio, 1, 1e-6);
}

/* Most windows exactly alike, as of a metric in whole numbers: the rest decides. */
static void test_mostly_alike(void **state)
{
	double diff[40];

	(void)state;
	for (size_t n = 20; n <= 40; n++) {
		for (size_t some = 8; some <= 12; some++) {
			for (int sign = -1; sign <= 1; sign += 2) {
				struct ab_series s = { .diff = diff, .n = n };

				for (size_t i = 0; i < n; i++)
					diff[i] = i < some ? sign * (0.1 + (double)i / 20) : 0;
				ab_judge(&s, 1);
				assert_int_equal(s.verdict, sign > 0 ? AB_BETTER : AB_WORSE);
				assert_true(sign > 0 ? s.low >= 1 : s.high <= 1);
				assert_true(s.low <= s.ratio && s.ratio <= s.high);
			}
		}
	}
}

static void test_one_burst_decides_nothing(void **state)
{
	double diff[PAIRS];
	struct ab_series s = { .diff = diff, .n = PAIRS };

	(void)state;
	for (size_t i = 0; i < PAIRS; i++)
		diff[i] = (i % 2 ? 0.1 : -0.1) * (double)(i / 2 + 1);
	diff[3] = 40;
	ab_judge(&s, 1);
	assert_int_equal(s.verdict, AB_NO_DIFFERENCE);
	assert_true(s.high < 4);
}

static void test_holm(void **state)
{
	double clear[9], less[9], none[9];
	struct ab_series s[3] = {
		{ .diff = none, .n = 9 }, { .diff = clear, .n = 9 }, { .diff = less, .n = 9 },
	};

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		clear[i] = 1 + (double)i;
		less[i] = i ? 1 + (double)i : -1;
		none[i] = i % 2 ? 1 + (double)i : -1 - (double)i;
	}
	/* p is 0.0039 and 0.0078: the second stands alone, but not beside two others. */
	ab_judge(&s[2], 1);
	assert_int_equal(s[2].verdict, AB_BETTER);
	ab_judge(s, 3);
	assert_int_equal(s[1].verdict, AB_TOO_LITTLE);
	assert_int_equal(s[2].verdict, AB_TOO_LITTLE);
	/* Beside one other the first is claimed, and so the second is held against 1 %. */
	ab_judge(s + 1, 2);
	assert_int_equal(s[1].verdict, AB_BETTER);
	assert_float_equal(s[1].level, 0.995, 1e-12);
	assert_int_equal(s[2].verdict, AB_BETTER);
	assert_float_equal(s[2].level, 0.99, 1e-12);
}

static void test_histograms(void **state)
{
	__u64 hist[AB_BUCKETS] = { 0 };

	(void)state;
	assert_float_equal(ab_quantile_ns(hist, 0.5), 0, 0);
	hist[10] = 50;
	hist[12] = 49;
	hist[20] = 1;
	assert_float_equal(ab_mean_log2(hist), (50 * 10.5 + 49 * 12.5 + 20.5) / 100, 1e-9);
	assert_float_equal(ab_quantile_ns(hist, 0.5), 2048, 1e-6);
	assert_float_equal(ab_quantile_ns(hist, 0.99), 8192, 1e-6);
	assert_float_equal(ab_quantile_ns(hist, 1), 2097152, 1e-6);
	assert_false(ab_is_coarse(hist));
	hist[10] = 5000;
	assert_true(ab_is_coarse(hist));
	hist[63] = ~0ULL;
	assert_true(ab_mean_log2(hist) <= 63.5);
}

static void test_coins_are_fair(void **state)
{
	int heads = 0, same = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 1000; seed++) {
		struct ab_random random;
		bool last, coin;

		ab_random_seed(&random, seed);
		last = ab_coin(&random);
		for (int i = 0; i < 20; i++, last = coin) {
			coin = ab_coin(&random);
			heads += coin;
			same += coin == last;
		}
	}
	assert_in_range(heads, 9700, 10300);
	assert_in_range(same, 9700, 10300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_claimed_of_chance),
		cmocka_unit_test(test_nothing_is_claimed_of_several),
		cmocka_unit_test(test_finds_a_difference),
		cmocka_unit_test(test_p_is_that_of_the_tables),
		cmocka_unit_test(test_many_pairs),
		cmocka_unit_test(test_too_little),
		cmocka_unit_test(test_no_difference_at_all),
		cmocka_unit_test(test_mostly_alike),
		cmocka_unit_test(test_one_burst_decides_nothing),
		cmocka_unit_test(test_holm),
		cmocka_unit_test(test_histograms),
		cmocka_unit_test(test_coins_are_fair),
	};

	return cmocka_run_group_tests_name("ab_stat", tests, NULL, NULL);
}
