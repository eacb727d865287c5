// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <json-c/json.h>

#include "ab.h"

enum figure { VALUE, CALL_P99, WORST, CHURN_P99, CHURN_PER_S, FLUSHES, LOCKS };

static double figure(const struct ab_sample *s, enum figure f)
{
	switch (f) {
	case CALL_P99:
		return s->call_p99_us;
	case WORST:
		return s->worst_ms;
	case CHURN_P99:
		return s->churn.p99_us;
	case CHURN_PER_S:
		return s->churn.per_s;
	case FLUSHES:
		return s->flushes;
	case LOCKS:
		return s->locks;
	default:
		return s->value;
	}
}

static double quantile(const struct ab_result *r, enum ab_mode m, enum figure f, double q)
{
	double *v = malloc((r->runs + 1) * sizeof(*v)), result;

	if (!v)
		return NAN;
	for (unsigned int i = 0; i < r->runs; i++)
		v[i] = figure(&r->s[m][i], f);
	result = ab_quantile(v, r->runs, q);
	free(v);
	return result;
}

static double median(const struct ab_result *r, enum ab_mode m, enum figure f)
{
	return quantile(r, m, f, 0.5);
}

/* Five significant digits: enough to tell a ratio of 1.01 from 1.02. */
static const char *number(char *buf, size_t size, double v)
{
	int digits = isfinite(v) && v > 0 ? 4 - (int)floor(log10(v)) : 0;

	snprintf(buf, size, "%.*f", digits < 0 ? 0 : digits > 4 ? 4 : digits, v);
	return buf;
}

static void print_medians(const struct ab_result *r, enum figure f)
{
	char buf[32];

	for (int m = 0; m < AB_MODE_COUNT; m++)
		printf(" %9s", number(buf, sizeof(buf), median(r, m, f)));
}

static void print_range(const struct ab_result *r, enum ab_mode m)
{
	char low[32], high[32];

	printf("  %s..%s", number(low, sizeof(low), quantile(r, m, VALUE, 0)),
	       number(high, sizeof(high), quantile(r, m, VALUE, 1)));
}

static void print_modes(const char *case_title)
{
	printf("%-9s %-26s %-8s", "path", case_title, "unit");
	for (int m = 0; m < AB_MODE_COUNT; m++)
		printf(" %9s", ab_mode_names[m]);
}

static bool contended(const struct ab_result *r)
{
	return r->c->churners || r->c->spinner;
}

static bool has(const struct ab_result *r, enum figure f)
{
	return r->runs && !isnan(figure(&r->s[AB_stock][0], f));
}

static void print_figure(const struct ab_result *r, enum figure f, const char *name,
			 const char *unit)
{
	if (!has(r, f))
		return;
	printf("%-9s   %-24s %-8s", "", name, unit);
	print_medians(r, f);
	printf("\n");
}

static void print_contended(const struct ab_result *r, size_t n)
{
	bool title = false;

	for (; n; n--, r++) {
		if (!contended(r) || !r->runs)
			continue;
		if (!title) {
			printf("\nWhile other threads run, or map and unmap memory (medians)\n\n");
			print_modes("case");
			printf(" %9s %9s  on, min..max\n", "stock/on", "on/limit");
			title = true;
		}
		printf("%-9s %-26s %-8s", r->c->path, r->c->name, r->unit);
		print_medians(r, VALUE);
		printf(" %8.1fx %9.2f",
		       median(r, AB_stock, VALUE) / median(r, AB_on, VALUE),
		       median(r, AB_on, VALUE) / median(r, AB_limit, VALUE));
		print_range(r, AB_on);
		printf("\n");
		print_figure(r, CALL_P99, "p99 of these calls", "us");
		print_figure(r, WORST, "worst of these calls", "ms");
		print_figure(r, CHURN_P99, "p99 of other threads", "us");
		print_figure(r, CHURN_PER_S, "mappings of these", "1/s");
		print_figure(r, FLUSHES, "TLB flushes", "1/call");
		print_figure(r, LOCKS, "mmap_locks taken", "1/page");
	}
}

static void print_quiet(const struct ab_result *r, size_t n)
{
	bool title = false;

	for (; n; n--, r++) {
		if (contended(r) || !r->runs)
			continue;
		if (!title) {
			printf("\nWith nothing to wait for (limit is stock once more)\n\n");
			print_modes("case");
			printf(" %9s %9s  on, min..max\n", "on/stock", "off/stock");
			title = true;
		}
		printf("%-9s %-26s %-8s", r->c->path, r->c->name, r->unit);
		print_medians(r, VALUE);
		printf(" %9.3f %9.3f",
		       median(r, AB_on, VALUE) / median(r, AB_stock, VALUE),
		       median(r, AB_off, VALUE) / median(r, AB_stock, VALUE));
		print_range(r, AB_on);
		printf("\n");
		print_figure(r, FLUSHES, "TLB flushes", "1/call");
		print_figure(r, LOCKS, "mmap_locks taken", "1/page");
	}
}

void ab_print(const struct ab_host *host, const struct ab_result *r, size_t n)
{
	for (unsigned int i = 0; i < host->nmissing; i++)
		printf("%s: unavailable: %s\n", host->missing[i].path, host->missing[i].why);
	print_contended(r, n);
	print_quiet(r, n);
}

static struct json_object *json_number(double v)
{
	char buf[32];

	if (isnan(v))
		return NULL;
	return json_object_new_double_s(v, number(buf, sizeof(buf), v));
}

static struct json_object *json_modes(const struct ab_result *r, enum figure f,
				      struct json_object *to)
{
	for (int m = 0; m < AB_MODE_COUNT; m++) {
		struct json_object *values = json_object_new_array();

		for (unsigned int i = 0; i < r->runs; i++)
			json_object_array_add(values, json_number(figure(&r->s[m][i], f)));
		json_object_object_add(to, ab_mode_names[m], values);
	}
	return to;
}

static struct json_object *json_result(const struct ab_result *r)
{
	struct json_object *o = json_object_new_object(), *counters = json_object_new_object();

	json_object_object_add(o, "path", json_object_new_string(r->c->path));
	json_object_object_add(o, "case", json_object_new_string(r->c->name));
	json_object_object_add(o, "unit", json_object_new_string(r->unit));
	json_modes(r, VALUE, o);
	if (r->c->churners) {
		json_object_object_add(o, "call_p99_us",
				       json_modes(r, CALL_P99, json_object_new_object()));
		json_object_object_add(o, "churn_p99_us",
				       json_modes(r, CHURN_P99, json_object_new_object()));
		json_object_object_add(o, "churn_per_s",
				       json_modes(r, CHURN_PER_S, json_object_new_object()));
	}
	if (has(r, WORST))
		json_object_object_add(o, "worst_ms",
				       json_modes(r, WORST, json_object_new_object()));
	if (has(r, FLUSHES))
		json_object_object_add(o, "flushes_per_call",
				       json_modes(r, FLUSHES, json_object_new_object()));
	if (has(r, LOCKS))
		json_object_object_add(o, "locks_per_page",
				       json_modes(r, LOCKS, json_object_new_object()));
	for (size_t i = 0; i < r->counters.n; i++)
		json_object_object_add(counters, r->counters.c[i].key,
				       json_object_new_int64(r->counters.c[i].value));
	json_object_object_add(o, "counters", counters);
	return o;
}

static struct json_object *json_all(const struct ab_host *host,
				    const struct ab_result *r, size_t n)
{
	struct json_object *o = json_object_new_object(), *results = json_object_new_array();
	struct json_object *missing = json_object_new_object();
	struct utsname uts;

	uname(&uts);
	json_object_object_add(o, "kernel", json_object_new_string(host->kernel ?: uts.release));
	json_object_object_add(o, "release", json_object_new_string(uts.release));
	json_object_object_add(o, "accel", json_object_new_string(host->accel));
	json_object_object_add(o, "cpus", json_object_new_int64(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_object_add(o, "commit", json_object_new_string(host->commit));
	for (; n; n--, r++)
		if (r->runs)
			json_object_array_add(results, json_result(r));
	json_object_object_add(o, "results", results);
	for (unsigned int i = 0; i < host->nmissing; i++)
		json_object_object_add(missing, host->missing[i].path,
				       json_object_new_string(host->missing[i].why));
	if (host->nmissing)
		json_object_object_add(o, "unavailable", missing);
	else
		json_object_put(missing);
	return o;
}

/* Whoever waits for the file sees all of it or nothing. */
int ab_write_json(const char *file, const struct ab_host *host,
		  const struct ab_result *r, size_t n)
{
	struct json_object *o = json_all(host, r, n);
	char *part = NULL;
	int err = -1;

	if (asprintf(&part, "%s.part", file) < 0) {
		part = NULL;
		errno = ENOMEM;
	} else if (!json_object_to_file_ext(part, o, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_SPACED |
					    JSON_C_TO_STRING_NOSLASHESCAPE)) {
		err = rename(part, file);
	}
	if (err)
		ab_error("%s: %s", file, strerror(errno));
	free(part);
	json_object_put(o);
	return err;
}
