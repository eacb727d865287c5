// SPDX-License-Identifier: GPL-2.0
/* The difference between two looks at the statistics, again and again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mmopt.h"

#define WIDTH		80

struct look {
	__u64 ms;
	struct path_list paths;
	struct stats *stats;	/* of each path */
};

static bool redraw;

static void look_free(struct look *look)
{
	for (size_t i = 0; i < look->paths.n; i++)
		stats_free(&look->stats[i]);
	free(look->stats);
	paths_free(&look->paths);
	memset(look, 0, sizeof(*look));
}

static int look(struct look *look)
{
	int rc = paths_read(&look->paths);

	look->stats = calloc(look->paths.n + 1, sizeof(*look->stats));
	if (!look->stats)
		abort();
	for (size_t i = 0; !rc && i < look->paths.n; i++)
		rc = stats_read(&look->stats[i], look->paths.v[i].name);
	look->ms = now_ms();
	return rc && control_gone() ? control_lost() : rc;
}

static __u64 counter(const struct stats *stats, const char *key)
{
	for (size_t i = 0; i < stats->n; i++)
		if (!strcmp(stats->counters[i].key, key))
			return stats->counters[i].value;
	return 0;
}

/* Numbers only grow, unless somebody resets them or loads the module anew. */
static bool was_reset(const struct stats *old, const struct stats *new)
{
	for (size_t i = 0; i < old->n; i++)
		if (counter(new, old->counters[i].key) < old->counters[i].value)
			return true;
	for (size_t h = 0; h < HIST_COUNT; h++)
		for (size_t i = 0; i < HIST_BUCKETS; i++)
			if (new->hist[h][i] < old->hist[h][i])
				return true;
	return false;
}

static double per_second(__u64 count, __u64 ms)
{
	return (double)count * 1000 / (double)(ms ? ms : 1);
}

static void add_difference(struct json_object *obj, const struct stats *old,
			   const struct stats *new, __u64 ms)
{
	struct json_object *counters = json_object_new_object();
	struct json_object *rates = json_object_new_object();
	struct json_object *latency = json_object_new_object();
	char text[64];

	for (size_t i = 0; i < new->n; i++) {
		const char *key = new->counters[i].key;
		__u64 count = new->counters[i].value - counter(old, key);
		double rate = per_second(count, ms);

		json_set_u64(counters, key, count);
		snprintf(text, sizeof(text), "%.3f", rate);
		json_object_object_add(rates, key, json_object_new_double_s(rate, text));
	}
	json_object_object_add(obj, "counters", counters);
	json_object_object_add(obj, "per_second", rates);
	for (size_t h = 0; h < HIST_COUNT; h++) {
		__u64 hist[HIST_BUCKETS];

		for (size_t i = 0; i < HIST_BUCKETS; i++)
			hist[i] = new->hist[h][i] - old->hist[h][i];
		json_object_object_add(latency, hist_names[h], hist_json(hist));
	}
	json_object_object_add(obj, "latency", latency);
}

static struct json_object *difference(const struct look *old, const struct look *new)
{
	static const struct stats none;
	struct json_object *obj = json_object_new_object(), *paths;
	time_t now = time(NULL);
	char text[32];

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	json_set(obj, "time", "%s", text);
	json_set_u64(obj, "interval_ms", new->ms - old->ms);
	paths = json_array(obj, "paths");
	for (size_t i = 0; i < new->paths.n; i++) {
		const struct path *path = &new->paths.v[i], *before;
		const struct stats *from = &none;
		struct json_object *entry = json_object_new_object();

		json_set(entry, "path", "%s", path->name);
		json_set(entry, "state", "%s", path->state);
		json_set_bool(entry, "observed", path_observed(path));
		before = paths_find(&old->paths, path->name);
		if (before)
			from = &old->stats[before - old->paths.v];
		if (was_reset(from, &new->stats[i]))
			from = &none;
		add_difference(entry, from, &new->stats[i], new->ms - old->ms);
		json_object_array_add(paths, entry);
	}
	return obj;
}

static int parse(int argc, char **argv, __u64 *interval_ms, __u64 *count)
{
	double seconds;
	char *end;
	int rc;

	*interval_ms = 1000;
	*count = ULLONG_MAX;
	if (argc > 0) {
		seconds = strtod(argv[0], &end);
		if (argv[0][strspn(argv[0], "0123456789.")] || *end ||
		    seconds < 0.1 || seconds > 86400) {
			rc = fail(RC_USAGE, 0, "watch", "%s is not an interval in seconds",
				  argv[0]);
			fail_info("give a number from 0.1 to 86400");
			return rc;
		}
		*interval_ms = (__u64)(seconds * 1000);
	}
	if (argc > 1 && (!parse_u64(argv[1], count) || !*count)) {
		rc = fail(RC_USAGE, 0, "watch", "%s is not a number of intervals", argv[1]);
		fail_info("give a whole number from 1 on");
		return rc;
	}
	return RC_OK;
}

int cmd_watch(struct json_object *doc, int argc, char **argv)
{
	struct look old = { 0 }, new = { 0 };
	const char *term = getenv("TERM");
	__u64 interval, count, due;
	int rc;

	(void)doc;
	rc = parse(argc, argv, &interval, &count);
	if (!rc)
		rc = control_open();
	if (rc)
		return rc;
	catch_signals();
	signal(SIGPIPE, SIG_IGN);
	redraw = !opts.json && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
	/* A screen that is drawn in one go does not flicker. */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	rc = look(&old);
	for (due = old.ms; !rc && count; count--) {
		due += interval;
		if (due < now_ms())
			due = now_ms() + interval;
		if (!wait_for(due, -1, &rc))
			break;
		rc = look(&new);
		if (!rc)
			rc = out_now(difference(&old, &new), print_watch);
		look_free(&old);
		old = new;
		memset(&new, 0, sizeof(new));
	}
	look_free(&old);
	return rc;
}

/* At most seven characters, up to what no machine does. */
static void format_rate(char *buf, size_t size, __u64 count, __u64 ms)
{
	static const char units[][2] = { "", "k", "M", "G", "T", "P" };
	double value = per_second(count, ms);
	size_t unit = 0;

	while (value >= 99999.5 && unit < ARRAY_SIZE(units) - 1) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.*f%s", value > 0 && value < 10 && !unit, value, units[unit]);
}

/* The counters that have moved, of those whose names begin with @prefix or of all others. */
static void print_rates(struct json_object *path, const char *title, bool fallbacks, __u64 ms)
{
	struct json_object *counters = json_object_object_get(path, "counters");
	size_t len = strlen(MMOPT_PREFIX_FALLBACK);
	int column = 0;

	json_object_object_foreach(counters, key, value) {
		bool fallback = !strncmp(key, MMOPT_PREFIX_FALLBACK, len);
		__u64 count = json_object_get_uint64(value);
		char rate[32], text[160];
		int width;

		if (!count || fallback != fallbacks || !strcmp(key, "calls") ||
		    !strcmp(key, "taken") || !strcmp(key, "stock"))
			continue;
		format_rate(rate, sizeof(rate), count, ms);
		width = snprintf(text, sizeof(text), "  %s %s", fallback ? key + len : key, rate);
		if (column && column + width > WIDTH) {
			printf("\n");
			column = 0;
		}
		if (!column)
			column = printf("  %-10s", title);
		column += printf("%s", text);
	}
	if (column)
		printf("\n");
}

static void print_latency(struct json_object *path, const char *name)
{
	struct json_object *latency = json_object_object_get(path, "latency");
	struct json_object *hist = json_object_object_get(latency, name);
	char p50[32], p99[32];

	format_ns(p50, sizeof(p50), json_u64(hist, "p50_below_ns"));
	format_ns(p99, sizeof(p99), json_u64(hist, "p99_below_ns"));
	printf("  %9s %9s", p50, p99);
}

void print_watch(struct json_object *interval)
{
	struct json_object *paths = json_object_object_get(interval, "paths");
	__u64 ms = json_u64(interval, "interval_ms");

	printf("%s%s  Linux %s  %.1f s\n", redraw ? "\033[H\033[J" : "",
	       json_str(interval, "time"), host_release(), (double)ms / 1000);
	printf("%38s%21s%21s\n", "per second", "taken", "stock code");
	printf("%-8s %-11s %8s %8s  %9s %9s  %9s %9s\n", "path", "state", "calls", "taken",
	       "p50 below", "p99 below", "p50 below", "p99 below");
	for (size_t i = 0; i < json_object_array_length(paths); i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);
		struct json_object *counters = json_object_object_get(path, "counters");
		const char *state = json_str(path, "state");
		char calls[32], taken[32];

		if (json_flag(path, "observed") && !strcmp(state, "off"))
			state = "observed";
		format_rate(calls, sizeof(calls), json_u64(counters, "calls"), ms);
		format_rate(taken, sizeof(taken), json_u64(counters, "taken"), ms);
		printf("%-8s %-11s %8s %8s", json_str(path, "path"), state, calls, taken);
		print_latency(path, "taken");
		print_latency(path, "stock");
		printf("\n");
		print_rates(path, "fallback/s", true, ms);
		print_rates(path, "other/s", false, ms);
	}
	if (!redraw)
		printf("\n");
}
