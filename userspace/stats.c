// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "mmopt.h"

const char *const hist_names[HIST_COUNT] = {
	[HIST_TAKEN] = "taken",
	[HIST_STOCK] = "stock",
};

/* A key may mean different things to different paths; without a path, it is for all. */
static const struct {
	const char *path;
	const char *key;
	const char *meaning;
} meanings[] = {
#define X(id, meaning) { "", #id, meaning },
	MMOPT_COUNTERS(X)
#undef X
	{ "", MMOPT_KEY_NMISSED, "hits of a hook that were missed, so that stock code ran" },
#define X(id, meaning) { "copy", #id, meaning },
	MMOPT_COPY_COUNTERS(X)
#undef X
#define X(id, meaning) { "copy", MMOPT_PREFIX_FALLBACK #id, meaning },
	MMOPT_COPY_FALLBACKS(X)
#undef X
#define X(id, meaning) { "madvise", MMOPT_PREFIX_FALLBACK #id, meaning },
	MMOPT_MADVISE_FALLBACKS(X)
#undef X
#define X(id, meaning) { "mremap", #id, meaning },
	MMOPT_MREMAP_COUNTERS(X)
#undef X
#define X(id, meaning) { "mremap", MMOPT_PREFIX_FALLBACK #id, meaning },
	MMOPT_MREMAP_FALLBACKS(X)
#undef X
#define X(id, meaning) { "ksm", #id, meaning },
	MMOPT_KSM_COUNTERS(X)
#undef X
#define X(id, meaning) { "ksm", MMOPT_PREFIX_FALLBACK #id, meaning },
	MMOPT_KSM_FALLBACKS(X)
#undef X
#define X(id, meaning) { "pagemap", #id, meaning },
	MMOPT_PAGEMAP_COUNTERS(X)
#undef X
#define X(id, meaning) { "pagemap", MMOPT_PREFIX_FALLBACK #id, meaning },
	MMOPT_PAGEMAP_FALLBACKS(X)
#undef X
};

const char *stats_meaning(const char *path, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (!strcmp(meanings[i].key, key) &&
		    (!*meanings[i].path || !strcmp(meanings[i].path, path)))
			return meanings[i].meaning;
	return "";
}

struct json_object *hist_json(const __u64 *hist)
{
	struct json_object *obj = json_object_new_object(), *buckets;

	json_set_u64(obj, "count", hist_total(hist));
	json_set_u64(obj, "p50_below_ns", hist_below(hist, 50));
	json_set_u64(obj, "p99_below_ns", hist_below(hist, 99));
	buckets = json_array(obj, "buckets");
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		struct json_object *bucket;

		if (!hist[i])
			continue;
		bucket = json_object_new_object();
		json_set_u64(bucket, "ns_min", 1ULL << i);
		json_set_u64(bucket, "count", hist[i]);
		json_object_array_add(buckets, bucket);
	}
	return obj;
}

static struct json_object *stats_json(const struct stats *stats, const char *path)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *counters = json_object_new_object();
	struct json_object *latency = json_object_new_object();

	json_set(obj, "path", "%s", path);
	json_set(obj, "summary", "%s", path_summary(path));
	json_set_u64(obj, "v", stats->version);
	for (size_t i = 0; i < stats->n; i++)
		json_set_u64(counters, stats->counters[i].key, stats->counters[i].value);
	json_object_object_add(obj, "counters", counters);
	for (size_t i = 0; i < HIST_COUNT; i++) {
		struct json_object *hist = hist_json(stats->hist[i]);

		json_set_u64(hist, "sum_ns", stats->sum_ns[i]);
		json_object_object_add(latency, hist_names[i], hist);
	}
	json_object_object_add(obj, "latency", latency);
	return obj;
}

static int one_path(struct json_object *paths, const char *name)
{
	struct stats stats;
	int rc = stats_read(&stats, name);

	if (stats.text)
		json_object_array_add(paths, stats_json(&stats, name));
	stats_free(&stats);
	return rc;
}

int cmd_stats(struct json_object *doc, int argc, char **argv)
{
	struct json_object *paths;
	struct path_list list;
	int rc;

	rc = paths_named(&list, argc, argv);
	if (!rc) {
		paths = json_array(doc, "paths");
		for (size_t i = 0; i < list.n; i++)
			rc = rc_first(rc, one_path(paths, list.v[i].name));
	}
	paths_free(&list);
	return rc;
}

void format_ns(char *buf, size_t size, __u64 ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double value = (double)ns;
	size_t unit = 0;

	if (!ns) {
		snprintf(buf, size, "-");
		return;
	}
	while (value >= 1000 && unit < ARRAY_SIZE(units) - 1) {
		value /= 1000;
		unit++;
	}
	snprintf(buf, size, "%.3g %s", value, units[unit]);
}

static void print_counters(struct json_object *path)
{
	struct json_object *counters = json_object_object_get(path, "counters");

	json_object_object_foreach(counters, key, value) {
		const char *meaning = stats_meaning(json_str(path, "path"), key);

		(void)value;
		printf("  %-24s %12llu%s%s\n", key, json_u64(counters, key),
		       *meaning ? "  " : "", meaning);
	}
}

static void print_hist(struct json_object *latency, const char *name)
{
	struct json_object *hist = json_object_object_get(latency, name);
	char p50[32], p99[32];

	format_ns(p50, sizeof(p50), json_u64(hist, "p50_below_ns"));
	format_ns(p99, sizeof(p99), json_u64(hist, "p99_below_ns"));
	printf("  %-24s %12llu %11s %11s\n", name,
	       json_u64(hist, "count"), p50, p99);
}

void print_stats(struct json_object *doc)
{
	struct json_object *paths = json_object_object_get(doc, "paths");
	size_t i, n = json_object_array_length(paths);

	for (i = 0; i < n; i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);
		struct json_object *latency = json_object_object_get(path, "latency");
		const char *summary = json_str(path, "summary");

		printf("%s%s%s%s\n", i ? "\n" : "", json_str(path, "path"),
		       *summary ? ": " : "", summary);
		print_counters(path);
		printf("  %-24s %12s %11s %11s\n", "latency", "timed calls",
		       "p50 below", "p99 below");
		print_hist(latency, hist_names[HIST_TAKEN]);
		print_hist(latency, hist_names[HIST_STOCK]);
	}
}
