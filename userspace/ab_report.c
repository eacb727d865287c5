// SPDX-License-Identifier: GPL-2.0
/* What a run comes to, as a document and as text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ab.h"

/* What a window counts in a histogram of many. */
#define WINDOW_SHARE	1e9

static const char *const state_names[2] = { "off", "on" };

static void add_diff(struct ab_series *s, double diff)
{
	double *v = reallocarray(s->diff, s->n + 1, sizeof(*v));

	if (!v)
		abort();
	s->diff = v;
	v[s->n++] = diff;
}

/* If nobody has said what is better, a higher number counts as that: see verdict(). */
static double metric_diff(double off, double on)
{
	return ab_opts.better == AB_LOWER ? log2(off / on) : log2(on / off);
}

/*
 * A load that waits for its calls makes few of them while they are slow: were
 * each call to count the same, the slow windows would hardly be seen.
 */
static void add_share(struct ab_path *p, const struct ab_cell *cell)
{
	__u64 calls = hist_total(cell->hist);

	if (!calls)
		return;
	p->calls[cell->on] += calls;
	p->windows[cell->on]++;
	p->means_ns[cell->on] += ab_mean_ns(cell);
	for (size_t k = 0; k < HIST_BUCKETS; k++)
		p->share[cell->on][k] +=
			(__u64)(WINDOW_SHARE * (double)cell->hist[k] / (double)calls);
}

static void collect_pair(struct ab_run *run, struct ab_path *p, size_t i, size_t pair)
{
	const struct ab_window *w[2] = { &run->window[2 * pair], &run->window[2 * pair + 1] };
	bool first_is_on = w[0]->cell[i].on;
	const struct ab_window *off = w[first_is_on], *on = w[!first_is_on];
	const __u64 *hist[2] = { off->cell[i].hist, on->cell[i].hist };

	add_share(p, &off->cell[i]);
	add_share(p, &on->cell[i]);
	if (hist_total(hist[0]) && hist_total(hist[1]))
		add_diff(p->time, ab_mean_log2(hist[0]) - ab_mean_log2(hist[1]));
	if (p->metric)
		add_diff(p->metric, metric_diff(off->metric, on->metric));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double metric_median(const struct ab_run *run, size_t i, bool on)
{
	double *v = calloc(run->windows + 1, sizeof(*v)), median;
	size_t n = 0;

	if (!v)
		abort();
	for (size_t k = 0; k < run->windows; k++)
		if (run->window[k].cell[i].on == on)
			v[n++] = run->window[k].metric;
	qsort(v, n, sizeof(*v), by_value);
	median = n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
	free(v);
	return median;
}

static const char *verdict(const struct ab_series *s, bool is_metric)
{
	bool better = s->verdict == AB_BETTER;

	if (s->verdict == AB_TOO_LITTLE)
		return "too little data";
	if (s->verdict == AB_NO_DIFFERENCE)
		return "no difference seen";
	if (!is_metric)
		return better ? "faster" : "slower";
	if (!ab_opts.better)
		return better ? "higher" : "lower";
	return better ? "better" : "worse";
}

static void add_series(struct json_object *obj, const struct ab_series *s, bool is_metric)
{
	bool known = s->verdict != AB_TOO_LITTLE;

	json_set(obj, "verdict", "%s", verdict(s, is_metric));
	json_set_double(obj, "ratio", known ? s->ratio : NAN);
	json_set_double(obj, "ratio_low", known ? s->low : NAN);
	json_set_double(obj, "ratio_high", known ? s->high : NAN);
	json_set_double(obj, "confidence_percent", 100 * s->level);
	json_set_double(obj, "p", s->p);
	json_set_u64(obj, "pairs", s->n);
}

static struct json_object *state_json(const struct ab_path *p, size_t on)
{
	struct json_object *obj = json_object_new_object();
	double n = (double)p->windows[on];

	json_set_u64(obj, "count", p->calls[on]);
	json_set_u64(obj, "mean_ns", n > 0 ? (__u64)(p->means_ns[on] / n) : 0);
	json_set_u64(obj, "p50_ns", (__u64)ab_quantile_ns(p->share[on], 0.5));
	json_set_u64(obj, "p99_ns", (__u64)ab_quantile_ns(p->share[on], 0.99));
	return obj;
}

static struct json_object *path_json(const struct ab_run *run, size_t i)
{
	const struct ab_path *p = &run->path[i];
	struct json_object *obj = json_object_new_object(), *metric;

	json_set(obj, "path", "%s", p->path->name);
	json_set(obj, "summary", "%s", path_summary(p->path->name));
	add_series(obj, p->time, false);
	for (size_t state = 0; state < 2; state++) {
		json_object_object_add(obj, state_names[state], state_json(p, state));
		if (p->calls[state] && ab_is_coarse(p->share[state]))
			out_warn(p->path->name,
				 "nearly all calls are within one power of two: the ratio is coarse, small differences do not show");
	}
	if (!p->metric)
		return obj;
	metric = json_object_new_object();
	add_series(metric, p->metric, true);
	json_set_double(metric, "off", metric_median(run, i, false));
	json_set_double(metric, "on", metric_median(run, i, true));
	json_object_object_add(obj, "metric", metric);
	return obj;
}

static void add_load(struct json_object *doc, const struct ab_load *load)
{
	struct json_object *obj = json_object_new_object(), *words;

	words = json_array(obj, "argv");
	for (char **word = ab_opts.load; *word; word++)
		json_object_array_add(words, json_new_str(*word));
	json_set_bool(obj, "stopped", load->stopped);
	if (WIFSIGNALED(load->status))
		json_set_u64(obj, "signal", (unsigned int)WTERMSIG(load->status));
	else
		json_set_u64(obj, "exit", (unsigned int)WEXITSTATUS(load->status));
	json_object_object_add(doc, "command", obj);
}

void ab_report(struct ab_run *run, struct json_object *doc)
{
	static const char *const better[] = { "unknown", "lower", "higher" };
	struct json_object *paths, *metric;

	for (size_t i = 0; i < run->paths; i++)
		for (size_t pair = 0; pair < run->pairs; pair++)
			collect_pair(run, &run->path[i], i, pair);
	ab_judge(run->series, run->n_series);

	json_set(doc, "mode", "%s", ab_opts.aa ? "aa" : "ab");
	json_set_bool(doc, "complete", !run->rc);
	json_set_double(doc, "seconds", (double)(run->end_ms - run->start_ms) / 1000);
	json_set_double(doc, "window_s", ab_opts.window_s);
	json_set_u64(doc, "seed", ab_opts.seed);
	json_set_u64(doc, "pairs", run->pairs);
	json_set_u64(doc, "pairs_needed", ab_pairs_needed(run->n_series));
	if (ab_opts.metric) {
		metric = json_object_new_object();
		json_set(metric, "command", "%s", ab_opts.metric);
		json_set(metric, "better", "%s", better[ab_opts.better]);
		json_object_object_add(doc, "metric", metric);
	}
	if (ab_opts.load)
		add_load(doc, &run->load);
	paths = json_array(doc, "paths");
	for (size_t i = 0; i < run->paths; i++)
		json_object_array_add(paths, path_json(run, i));
}

static void print_state(struct json_object *path, const char *state, const char *label)
{
	struct json_object *obj = json_object_object_get(path, state);
	char mean[32], p50[32], p99[32];

	format_ns(mean, sizeof(mean), json_u64(obj, "mean_ns"));
	format_ns(p50, sizeof(p50), json_u64(obj, "p50_ns"));
	format_ns(p99, sizeof(p99), json_u64(obj, "p99_ns"));
	printf("  %-8s %12llu %11s %11s %11s\n", label, json_u64(obj, "count"), mean, p50, p99);
}

static void print_series(struct json_object *obj, const char *what, __u64 needed)
{
	if (!json_object_object_get(obj, "ratio")) {
		printf("  %s: too little data, %llu pairs of windows of the %llu that it takes\n",
		       what, json_u64(obj, "pairs"), needed);
		return;
	}
	printf("  %s: %.3g (%.4g %% confidence: %.3g to %.3g), p %.2g, %llu pairs of windows\n",
	       what, json_double(obj, "ratio"), json_double(obj, "confidence_percent"),
	       json_double(obj, "ratio_low"), json_double(obj, "ratio_high"),
	       json_double(obj, "p"), json_u64(obj, "pairs"));
}

static void print_metric(struct json_object *doc, struct json_object *path)
{
	struct json_object *metric = json_object_object_get(path, "metric");
	const char *better = json_str(json_object_object_get(doc, "metric"), "better");

	if (!metric)
		return;
	if (!json_object_object_get(metric, "off")) {
		printf("  metric: %s\n", json_str(metric, "verdict"));
		return;
	}
	printf("  metric: %s, median %.6g off, %.6g on\n", json_str(metric, "verdict"),
	       json_double(metric, "off"), json_double(metric, "on"));
	print_series(metric, !strcmp(better, "lower") ? "off / on" : "on / off",
		     json_u64(doc, "pairs_needed"));
}

static void print_load_end(struct json_object *load)
{
	if (json_flag(load, "stopped"))
		printf("the command was ended by mmopt\n");
	else if (json_object_object_get(load, "exit"))
		printf("the command ended with status %llu\n", json_u64(load, "exit"));
	else
		printf("the command ended by signal %llu\n", json_u64(load, "signal"));
}

void print_ab(struct json_object *doc)
{
	struct json_object *paths = json_object_object_get(doc, "paths"), *load;
	bool aa = !strcmp(json_str(doc, "mode"), "aa");
	size_t i, n = json_object_array_length(paths);

	printf("%s%.3g s, windows of about %.3g s, seed %llu%s\n", aa ? "A/A, never on: " : "",
	       json_double(doc, "seconds"), json_double(doc, "window_s"), json_u64(doc, "seed"),
	       json_flag(doc, "complete") ? "" : ", cut short");
	if (json_object_object_get_ex(doc, "command", &load))
		print_load_end(load);
	for (i = 0; i < n; i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);

		printf("\n%s: %s\n", json_str(path, "path"), json_str(path, "verdict"));
		printf("  %-8s %12s %11s %11s %11s\n", "", "timed calls", "mean", "p50", "p99");
		print_state(path, "off", "off");
		print_state(path, "on", aa ? "off too" : "on");
		print_series(path, "off / on", json_u64(doc, "pairs_needed"));
		print_metric(doc, path);
	}
}
