// SPDX-License-Identifier: GPL-2.0
/*
 * "mmopt ab" from its windows to its verdict, on a host made up: its clock goes on
 * when somebody waits, calls are made meanwhile, and their latencies wander. Where a
 * path changes nothing, none may be claimed, and a difference that is there must be
 * found.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#undef fail	/* of cmocka; it is a function here */

#include "ab.h"

#define SEEDS		200
#define PATHS		2
#define CALLS_PER_MS	0.1

static struct host {
	struct ab_random random;
	__u64 now_ms;
	double level;		/* of all calls, as log2, beside its middle */
	double speed[PATHS];	/* how many times faster each path is when it is on */
	double spill;		/* and calls of the second one, when the first is on */
	bool on[PATHS];
	unsigned int switched[PATHS];
	__u64 hist[PATHS][HIST_COUNT][HIST_BUCKETS];
	__u64 sum_ns[PATHS][HIST_COUNT];
	double due;		/* part of a call that is not made yet */
} host;

/* What the measuring asks of the rest of the tool, and of the host. */
struct ab_options ab_opts;
struct options opts;
atomic_int interrupted;

static const char *const names[PATHS] = { "madvise", "mremap" };

static size_t index_of(const char *name)
{
	return !strcmp(name, names[1]);
}

static double uniform(void)
{
	return 1 - ab_random(&host.random);	/* never 0 */
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static void make_call(size_t path)
{
	enum hist kind = host.on[path] ? HIST_TAKEN : HIST_STOCK;
	double ns = exp2(14 + host.level - log2(uniform()) / 2);

	if (host.on[path])
		ns /= host.speed[path];
	if (path == 1 && host.on[0])
		ns /= host.spill;
	host.hist[path][kind][ilogb(ns < 1 ? 1 : ns)]++;
	host.sum_ns[path][kind] += (__u64)ns;
}

__u64 now_ms(void)
{
	return host.now_ms;
}

/* Half of what a load is like is still so a second later. */
void nap_ms(unsigned int ms)
{
	double keep = exp2(-(double)ms / 1000);

	host.now_ms += ms;
	host.level = keep * host.level + sqrt(1 - keep * keep) * 0.5 * normal();
	for (host.due += ms * CALLS_PER_MS; host.due >= 1; host.due--)
		for (size_t i = 0; i < PATHS; i++)
			make_call(i);
}

/* The only file that is read here: "/PATH/stats". */
char *file_slurp(const char *fmt, ...)
{
	static const char *const kinds[] = { "taken", "stock" };
	char file[64], *text;
	size_t size, path;
	va_list args;
	FILE *f;

	va_start(args, fmt);
	vsnprintf(file, sizeof(file), fmt, args);
	va_end(args);
	path = index_of(strtok(file, "/"));
	f = open_memstream(&text, &size);
	assert_non_null(f);
	fprintf(f, "v: 1\n");
	for (size_t kind = 0; kind < HIST_COUNT; kind++) {
		fprintf(f, "%s_sum_ns %llu\n", kinds[kind], host.sum_ns[path][kind]);
		for (size_t k = 0; k < HIST_BUCKETS; k++)
			if (host.hist[path][kind][k])
				fprintf(f, "%s_ns_%llu %llu\n", kinds[kind], 1ULL << k,
					host.hist[path][kind][k]);
	}
	fclose(f);
	return text;
}

bool path_is(const struct path *path, const char *state)
{
	return !strcmp(path->state, state);
}

int path_state(struct path *path)
{
	snprintf(path->state, sizeof(path->state), "%s",
		 host.on[index_of(path->name)] ? "on" : "off");
	return 0;
}

int path_switch(const struct path_list *all, struct path *path, bool on, const char **via)
{
	size_t i = index_of(path->name);

	(void)all;
	*via = "";
	assert_int_not_equal(host.on[i], on);
	host.on[i] = on;
	host.switched[i]++;
	return path_state(path);
}

const char *control_dir(void)
{
	return "";
}

const char *path_summary(const char *name)
{
	return name;
}

bool child_ended(pid_t pid, int *status)
{
	(void)pid;
	(void)status;
	return false;
}

int ab_metric(double *value)
{
	(void)value;
	return RC_FAILED;	/* nobody asks for one */
}

void format_ns(char *buf, size_t size, __u64 ns)
{
	snprintf(buf, size, "%llu", ns);
}

/* The verdicts of a run of a minute over @paths paths are left in @verdict. */
static void measure(unsigned int seed, size_t paths, char verdict[PATHS][32])
{
	struct json_object *doc = json_object_new_object(), *list;
	struct path path[PATHS] = { 0 };
	struct ab_path ab_path[PATHS] = { 0 };
	struct ab_series series[PATHS] = { 0 };
	struct ab_run run = {
		.path = ab_path, .paths = paths, .series = series, .n_series = paths,
	};

	ab_opts.seconds = 60;
	ab_opts.window_s = 1;
	ab_random_seed(&run.random, seed);
	ab_random_seed(&host.random, seed + 1000000);
	for (size_t i = 0; i < paths; i++) {
		snprintf(path[i].name, sizeof(path[i].name), "%s", names[i]);
		path_state(&path[i]);
		ab_path[i].path = &path[i];
		ab_path[i].time = &series[i];
	}
	ab_windows(&run);
	assert_int_equal(run.rc, RC_OK);
	assert_int_equal(run.windows, 2 * run.pairs);
	assert_in_range(run.pairs, 24, 36);
	assert_true(run.end_ms - run.start_ms <= 60500);
	ab_report(&run, doc);
	list = json_object_object_get(doc, "paths");
	for (size_t i = 0; i < paths; i++)
		snprintf(verdict[i], 32, "%s",
			 json_str(json_object_array_get_idx(list, i), "verdict"));
	json_object_put(doc);
	for (size_t i = 0; i < run.windows; i++)
		free(run.window[i].cell);
	free(run.window);
	for (size_t i = 0; i < paths; i++)
		free(series[i].diff);
}

static void new_host(double first, double second, double spill)
{
	host = (struct host){ .speed = { first, second }, .spill = spill };
}

static int said(const char *verdict, const char *what)
{
	return !strcmp(verdict, what);
}

static int claimed(const char *verdict)
{
	return said(verdict, "faster") + said(verdict, "slower");
}

static void test_nothing_is_claimed_of_chance(void **state)
{
	char verdict[PATHS][32];
	int wrong[2] = { 0 };

	(void)state;
	for (int aa = 0; aa < 2; aa++) {
		ab_opts.aa = aa;
		for (unsigned int seed = 1; seed <= SEEDS; seed++) {
			/* off in both states, it may be as fast as it likes */
			new_host(aa ? 8 : 1, 1, 1);
			measure(seed, 1, verdict);
			wrong[aa] += claimed(verdict[0]);
			assert_int_equal(host.switched[0] == 0, aa);
		}
		print_message("# %s: %d of %d seeds claim a difference\n",
			      aa ? "A/A" : "on is like off", wrong[aa], SEEDS);
		assert_true(wrong[aa] <= SEEDS * 5 / 100);
	}
	ab_opts.aa = false;
}

static void test_a_difference_is_found(void **state)
{
	static const double speeds[] = { 1.5, 1 / 1.5 };
	char verdict[PATHS][32];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(speeds); k++) {
		const char *right = speeds[k] > 1 ? "faster" : "slower";
		int found = 0;

		for (unsigned int seed = 1; seed <= SEEDS; seed++) {
			new_host(speeds[k], 1, 1);
			measure(seed, 1, verdict);
			found += said(verdict[0], right);
			assert_true(said(verdict[0], right) || !claimed(verdict[0]));
		}
		print_message("# %.2f times as fast: %d of %d seeds find it\n", speeds[k], found,
			      SEEDS);
		assert_true(found >= SEEDS * 90 / 100);
	}
}

/* What one path does for the load of the other is not put down to the other. */
static void test_each_path_has_its_own_coin(void **state)
{
	char verdict[PATHS][32];
	int wrong = 0, found = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		new_host(3, 1, 3);
		measure(seed, 2, verdict);
		found += said(verdict[0], "faster");
		wrong += claimed(verdict[1]);
	}
	print_message("# of two paths: %d of %d seeds find that of one, %d one of the other\n",
		      found, SEEDS, wrong);
	assert_true(found >= SEEDS * 90 / 100);
	assert_true(wrong <= SEEDS * 5 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_claimed_of_chance),
		cmocka_unit_test(test_a_difference_is_found),
		cmocka_unit_test(test_each_path_has_its_own_coin),
	};

	return cmocka_run_group_tests_name("ab_windows", tests, NULL, NULL);
}
