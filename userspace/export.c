// SPDX-License-Identifier: GPL-2.0
/*
 * The statistics for a monitoring system. Names end with their unit and are those
 * of the module's counters, so that a new counter needs nothing here.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

/* Bounds of the buckets: 256 ns to 17 s, always the same, as rates want it. */
#define FIRST_BOUND	8
#define LAST_BOUND	34

static struct json_object *metric(struct json_object *list, const char *name, const char *type,
				  const char *help)
{
	struct json_object *obj;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		obj = json_object_array_get_idx(list, i);
		if (!strcmp(json_str(obj, "name"), name))
			return obj;
	}
	obj = json_object_new_object();
	json_set(obj, "name", "%s", name);
	json_set(obj, "type", "%s", type);
	json_set(obj, "help", "%s", help);
	json_array(obj, "samples");
	json_object_array_add(list, obj);
	return obj;
}

/* Returns its labels, to be filled in. */
static struct json_object *sample(struct json_object *metric, const char *suffix,
				  const char *fmt, ...)
	__printf(3, 4);

static struct json_object *sample(struct json_object *metric, const char *suffix,
				  const char *fmt, ...)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *labels = json_object_new_object();
	char value[64];
	va_list args;

	va_start(args, fmt);
	vsnprintf(value, sizeof(value), fmt, args);
	va_end(args);
	json_set(obj, "suffix", "%s", suffix);
	json_set(obj, "value", "%s", value);
	json_object_object_add(obj, "labels", labels);
	json_object_array_add(json_object_object_get(metric, "samples"), obj);
	return labels;
}

static void add_host(struct json_object *list, bool loaded)
{
	struct json_object *labels;
	char version[64] = "";

	if (loaded)
		file_line(version, sizeof(version), "/sys/module/" MODULE "/version");
	labels = sample(metric(list, "mmopt_build_info", "gauge",
			       "Versions of the tool and of the loaded module."), "", "1");
	json_set(labels, "version", "%s", MMOPT_VERSION);
	json_set(labels, "module", "%s", version);
	sample(metric(list, "mmopt_loaded", "gauge", "Whether the module is loaded."), "",
	       "%d", loaded);
}

static void add_state(struct json_object *list, const struct path *path)
{
	static const char *const states[] = {
#define X(id) #id,
		MMOPT_STATES(X)
#undef X
	};
	struct json_object *state, *labels;

	state = metric(list, "mmopt_path_state", "gauge", "1 for the state that the path is in.");
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		labels = sample(state, "", "%d", path_is(path, states[i]));
		json_set(labels, "path", "%s", path->name);
		json_set(labels, "state", "%s", states[i]);
	}
}

static void add_counter(struct json_object *list, const char *path,
			const struct stats_counter *counter)
{
	size_t prefix = strlen(MMOPT_PREFIX_FALLBACK);
	struct json_object *labels;
	char name[128], help[256];

	if (!strncmp(counter->key, MMOPT_PREFIX_FALLBACK, prefix)) {
		labels = sample(metric(list, "mmopt_fallbacks_total", "counter",
				       "Calls left to stock code, by reason."),
				"", "%llu", counter->value);
		json_set(labels, "path", "%s", path);
		json_set(labels, "reason", "%s", counter->key + prefix);
		return;
	}
	snprintf(name, sizeof(name), "mmopt_%s_total", counter->key);
	snprintf(help, sizeof(help), "%s", stats_meaning(path, counter->key));
	labels = sample(metric(list, name, "counter", *help ? help : "A counter of the module."),
			"", "%llu", counter->value);
	json_set(labels, "path", "%s", path);
}

static void add_latency(struct json_object *list, const char *path, const struct stats *stats)
{
	struct json_object *seconds, *labels;

	seconds = metric(list, "mmopt_call_seconds", "histogram",
			 "How long calls took, done the fast way (taken) or by stock code.");
	for (size_t h = 0; h < HIST_COUNT; h++) {
		__u64 below = 0, total = hist_total(stats->hist[h]);

		for (size_t i = 0; i < LAST_BOUND; i++) {
			below += stats->hist[h][i];
			if (i + 1 < FIRST_BOUND)
				continue;
			labels = sample(seconds, "_bucket", "%llu", below);
			json_set(labels, "path", "%s", path);
			json_set(labels, "way", "%s", hist_names[h]);
			json_set(labels, "le", "%.12g", (double)(2ULL << i) / 1e9);
		}
		labels = sample(seconds, "_bucket", "%llu", total);
		json_set(labels, "path", "%s", path);
		json_set(labels, "way", "%s", hist_names[h]);
		json_set(labels, "le", "+Inf");
		labels = sample(seconds, "_sum", "%llu.%09llu", stats->sum_ns[h] / 1000000000,
				stats->sum_ns[h] % 1000000000);
		json_set(labels, "path", "%s", path);
		json_set(labels, "way", "%s", hist_names[h]);
		labels = sample(seconds, "_count", "%llu", total);
		json_set(labels, "path", "%s", path);
		json_set(labels, "way", "%s", hist_names[h]);
	}
}

static int add_paths(struct json_object *list)
{
	struct path_list paths;
	int rc = paths_read(&paths);

	for (size_t i = 0; i < paths.n; i++) {
		const char *name = paths.v[i].name;
		struct stats stats;

		add_state(list, &paths.v[i]);
		rc = rc_first(rc, stats_read(&stats, name));
		for (size_t j = 0; j < stats.n; j++)
			add_counter(list, name, &stats.counters[j]);
		add_latency(list, name, &stats);
		stats_free(&stats);
	}
	paths_free(&paths);
	return rc;
}

static void render_labels(FILE *to, struct json_object *labels)
{
	const char *before = "{";

	json_object_object_foreach(labels, key, value) {
		const char *c = json_object_get_string(value);

		fprintf(to, "%s%s=\"", before, key);
		for (; *c; c++)
			fprintf(to, "%s%c", *c == '\\' || *c == '"' ? "\\" : "", *c);
		fputc('"', to);
		before = ",";
	}
	if (*before == ',')
		fputc('}', to);
}

static void render(FILE *to, struct json_object *list)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *metric = json_object_array_get_idx(list, i);
		struct json_object *samples = json_object_object_get(metric, "samples");
		const char *name = json_str(metric, "name");

		fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, json_str(metric, "help"), name,
			json_str(metric, "type"));
		for (size_t j = 0; j < json_object_array_length(samples); j++) {
			struct json_object *sample = json_object_array_get_idx(samples, j);

			fprintf(to, "%s%s", name, json_str(sample, "suffix"));
			render_labels(to, json_object_object_get(sample, "labels"));
			fprintf(to, " %s\n", json_str(sample, "value"));
		}
	}
}

static int write_file(struct json_object *list)
{
	size_t size;
	char *text;
	FILE *to = open_memstream(&text, &size);
	int ret, rc;

	if (!to)
		abort();
	render(to, list);
	if (fclose(to))
		abort();
	catch_signals();	/* nothing half done stays behind */
	ret = file_replace(opts.output, text);
	free(text);
	if (!ret)
		return RC_OK;
	rc = fail(RC_FAILED, -ret, opts.output, "cannot be replaced");
	fail_info("its folder must exist, with room, and be writable");
	return rc;
}

int cmd_export(struct json_object *doc, int argc, char **argv)
{
	struct json_object *list;
	int rc, loaded;

	(void)argc;
	(void)argv;
	if (!opts.prometheus) {
		rc = fail(RC_USAGE, 0, "export", "no format was given");
		fail_info("give --prometheus");
		return rc;
	}
	list = json_object_new_array();
	loaded = control_open();
	rc = loaded == RC_NOT_LOADED ? RC_OK : loaded;
	if (!rc)
		add_host(list, !loaded);
	if (!rc && !loaded)
		rc = add_paths(list);
	/* Part of the truth shall not replace what is known. */
	if (!rc && opts.output)
		rc = write_file(list);
	if (!rc && opts.output)
		json_set(doc, "output", "%s", opts.output);
	if (!rc)
		json_object_object_add(doc, "metrics", json_object_get(list));
	json_object_put(list);
	return rc_first(rc, loaded);
}

void print_export(struct json_object *doc)
{
	if (!opts.output)
		render(stdout, json_object_object_get(doc, "metrics"));
}
