// SPDX-License-Identifier: GPL-2.0
/* Measure every case with mmopt absent, off and on, in turns, within one boot. */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <mmopt/abi.h>

#include "ab.h"

#define EXIT_USAGE	2
#define EXIT_NO_PERM	4
#define RUNS_MAX	1000
#define PATH_COUNT	(sizeof(paths) / sizeof(paths[0]) - 1)

const char *const ab_mode_names[AB_MODE_COUNT] = {
#define X(id) [AB_##id] = #id,
	AB_MODES(X)
#undef X
};

static const char *const paths[] = {
#define X(id, what) #id,
	MMOPT_PATHS(X)
#undef X
	NULL
};

_Static_assert(PATH_COUNT <= AB_PATHS_MAX, "AB_PATHS_MAX");

/* Those of one path next to each other. */
const struct ab_case *const ab_suites[] = {
	ab_copy_cases, ab_mremap_cases, ab_realloc_cases, ab_madvise_cases, ab_ksm_cases,
	ab_pagemap_cases, NULL
};

volatile int ab_stop;

static const char usage[] =
	"usage: ab-run [OPTION]...\n"
	"Measure the loads of each path with mmopt absent, off and on.\n\n"
	"  --paths LIST    paths, comma between them, or all (all)\n"
	"  --cases GLOB    cases whose name matches (all but those marked full)\n"
	"  --runs N        values for each case and mode (5)\n"
	"  --json FILE     write every value to FILE\n"
	"  --kernel NAME   name of this kernel in FILE (MMOPT_GUEST, or its release)\n"
	"  --commit HASH   version measured, for FILE (MMOPT_COMMIT)\n"
	"  --accel NAME    what runs this machine, for FILE (MMOPT_ACCEL, or none)\n"
	"  --icount        time is instructions (QEMU's -icount shift=0): give these,\n"
	"                  of the cases without interfering threads\n"
	"  --list          list the cases and do nothing\n";

void ab_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("ab-run: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

static void on_signal(int sig)
{
	(void)sig;
	ab_stop = 1;
}

struct options {
	const char *paths;
	const char *cases;
	const char *json;
	unsigned int runs;
	bool icount;
	bool list;
};

static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, word, len) && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

static bool path_wanted(const struct options *o, const char *path)
{
	return !strcmp(o->paths, "all") || in_list(o->paths, path);
}

static bool case_wanted(const struct options *o, const struct ab_case *c)
{
	if (o->cases)
		return !fnmatch(o->cases, c->name, 0);
	return o->list || !c->full;
}

/* Every word of the list must be a path: a slip would measure nothing. */
static int check_paths(const char *list)
{
	char *copy, *word, *rest;
	int bad = 0;

	if (!strcmp(list, "all"))
		return 0;
	copy = strdup(list);
	rest = copy;
	while (copy && (word = strsep(&rest, ","))) {
		const char *const *p = paths;

		while (*p && strcmp(*p, word))
			p++;
		if (!*p) {
			ab_error("no such path: \"%s\"", word);
			bad = 1;
		}
	}
	free(copy);
	return bad;
}

static int parse(int argc, char **argv, struct options *o, struct ab_host *host)
{
	static const struct option longs[] = {
		{ "paths", required_argument, NULL, 'p' },
		{ "cases", required_argument, NULL, 'c' },
		{ "runs", required_argument, NULL, 'r' },
		{ "json", required_argument, NULL, 'j' },
		{ "kernel", required_argument, NULL, 'k' },
		{ "commit", required_argument, NULL, 'g' },
		{ "accel", required_argument, NULL, 'a' },
		{ "icount", no_argument, NULL, 'i' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	char *end;
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 'p':
			o->paths = optarg;
			break;
		case 'c':
			o->cases = optarg;
			break;
		case 'r':
			o->runs = strtoul(optarg, &end, 10);
			if (*end || !o->runs || o->runs > RUNS_MAX) {
				ab_error("--runs takes a number from 1 to %d", RUNS_MAX);
				return EXIT_USAGE;
			}
			break;
		case 'j':
			o->json = optarg;
			break;
		case 'k':
			host->kernel = optarg;
			break;
		case 'g':
			host->commit = optarg;
			break;
		case 'a':
			host->accel = optarg;
			break;
		case 'i':
			o->icount = true;
			break;
		case 'l':
			o->list = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	return check_paths(o->paths) ? EXIT_USAGE : 0;
}

/* With -icount shift=0 the machine's clock adds a nanosecond an instruction. */
static const char *unit_of(const struct options *o, const struct ab_case *c)
{
	if (!o->icount)
		return c->unit;
	if (!strcmp(c->unit, "ms"))
		return "insn";
	return strcmp(strchr(c->unit, '/'), "/fork") ? "insn/call" : "insn/fork";
}

static void to_instructions(struct ab_result *r, unsigned int runs)
{
	double scale = !strncmp(r->c->unit, "us", 2) ? 1e3 : !strcmp(r->c->unit, "ms") ? 1e6 : 1;

	if (!strncmp(r->unit, "insn", 4))
		for (int m = 0; m < AB_MODE_COUNT; m++)
			for (unsigned int i = 0; i < runs; i++)
				r->s[m][i].value *= scale;
}

/* The results to fill, one for each selected case; NULL with *n = 0 if none. */
static struct ab_result *select_cases(const struct options *o, size_t *n)
{
	struct ab_result *r = NULL, *more;

	*n = 0;
	for (const struct ab_case *const *suite = ab_suites; *suite; suite++) {
		for (const struct ab_case *c = *suite; c->name; c++) {
			if (!path_wanted(o, c->path) || !case_wanted(o, c) ||
			    (o->icount && (c->churners || c->spinner)))
				continue;
			more = realloc(r, (*n + 1) * sizeof(*r));
			if (!more)
				abort();
			r = more;
			r[*n] = (struct ab_result){ .c = c, .unit = unit_of(o, c) };
			for (int m = 0; m < AB_MODE_COUNT; m++) {
				r[*n].s[m] = calloc(o->runs, sizeof(**r->s));
				if (!r[*n].s[m])
					abort();
			}
			++*n;
		}
	}
	return r;
}

static void free_results(struct ab_result *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (int m = 0; m < AB_MODE_COUNT; m++)
			free(r[i].s[m]);
	free(r);
}

/* Measure one case in the mode that holds now, and prove that it did hold. */
static int measure(struct ab_result *r, enum ab_mode mode, struct ab_sample *s)
{
	static struct ab_counters before, after;
	bool loaded = mode == AB_off || mode == AB_on;
	const struct ab_case *c = r->c;
	unsigned long long taken;

	*s = (struct ab_sample){ NAN, NAN, NAN, { NAN, NAN }, NAN, NAN, 0 };
	if (loaded && ab_counters_read(c->path, &before))
		return -1;
	if (c->run(c, mode, s))
		return -1;
	if (!loaded)
		return 0;
	if (ab_counters_read(c->path, &after))
		return -1;
	taken = ab_counter(&after, "taken") - ab_counter(&before, "taken");
	if (mode == AB_off) {
		if (!taken)
			return 0;
		ab_error("%s: %llu CALLS TAKEN WHILE THE PATH WAS OFF", c->name, taken);
		return -1;
	}
	ab_counters_add_delta(&r->counters, &before, &after);
	if (ab_still_on(c->path))
		return -1;
	if (taken >= s->calls)
		return 0;
	ab_error("%s: %lu CALLS MADE, ONLY %llu TAKEN", c->name, s->calls, taken);
	for (size_t i = 0; i < after.n; i++)
		ab_error("  %s %+lld", after.c[i].key,
			 (long long)(after.c[i].value - ab_counter(&before, after.c[i].key)));
	return -1;
}

/*
 * The first half of a pair of rounds goes through the modes in one direction,
 * the second half backwards, so that a slow drift of the machine hits all of
 * them alike. A mode is entered once a round, for all cases: entering costs a
 * load, an unload or a livepatch transition.
 */
static int measure_path(const char *path, struct ab_result *r, size_t n, unsigned int runs)
{
	struct ab_sample warm;
	uint64_t t;

	if (ab_set_mode(path, AB_stock))
		return -1;
	for (size_t i = 0; i < n; i++) {
		int err = r[i].c->setup ? r[i].c->setup(r[i].c) : 0;

		if (err < 0)
			return -1;
		r[i].skip = err == AB_SKIP;
		if (!r[i].skip && measure(&r[i], AB_stock, &warm))
			return -1;
	}
	for (unsigned int round = 0; round < runs; round++) {
		for (int step = 0; step < AB_MODE_COUNT; step++) {
			int mode = round % 2 ? AB_MODE_COUNT - 1 - step : step;

			t = ab_now();
			if (ab_set_mode(path, mode))
				return -1;
			for (size_t i = 0; i < n && !ab_stop; i++)
				if (!r[i].skip && measure(&r[i], mode, &r[i].s[mode][round]))
					return -1;
			if (ab_stop)
				return -1;
			fprintf(stderr, "%s: round %u of %u, %s: %.1f s\n", path, round + 1,
				runs, ab_mode_names[mode], (ab_now() - t) / 1e9);
		}
		for (size_t i = 0; i < n; i++)
			r[i].runs += !r[i].skip;
	}
	return 0;
}

/* The results of one path, which lie next to each other. */
static struct ab_result *results_of(const char *path, struct ab_result *r, size_t *n)
{
	struct ab_result *end = r + *n, *last;

	while (r < end && strcmp(r->c->path, path))
		r++;
	for (last = r; last < end && !strcmp(last->c->path, path); last++)
		;
	*n = last - r;
	return r;
}

/* Find out what can be measured here, and whether that takes a swap device. */
static int probe(struct ab_host *host, struct ab_result *r, size_t n, bool *possible,
		 bool *swap)
{
	for (size_t i = 0; i < PATH_COUNT; i++) {
		char *why = host->missing[host->nmissing].why;
		size_t count = n;
		struct ab_result *mine = results_of(paths[i], r, &count);
		int available = count ? ab_available(paths[i], why) : 0;

		if (available < 0)
			return -1;
		possible[i] = available;
		if (count && !available)
			host->missing[host->nmissing++].path = paths[i];
		for (size_t k = 0; available && k < count; k++)
			*swap |= mine[k].c->swap;
	}
	return 0;
}

static int measure_all(const struct options *o, struct ab_host *host,
		       struct ab_result *r, size_t n)
{
	bool possible[PATH_COUNT], swap = false;

	if (ab_load() || probe(host, r, n, possible, &swap))
		return -1;
	if (swap && ab_swap_on())
		return -1;
	for (size_t i = 0; i < PATH_COUNT; i++) {
		size_t count = n;
		struct ab_result *mine = results_of(paths[i], r, &count);

		if (possible[i] && measure_path(paths[i], mine, count, o->runs))
			return -1;
		/* The next path is to have the machine to itself. */
		for (size_t k = 0; k < count; k++)
			if (mine[k].c->teardown)
				mine[k].c->teardown(mine[k].c);
	}
	for (size_t i = 0; i < n; i++)
		to_instructions(&r[i], r[i].runs);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .paths = "all", .runs = 5 };
	struct ab_host host = {
		.kernel = getenv("MMOPT_GUEST"),
		.accel = getenv("MMOPT_ACCEL") ?: "none",
		.commit = getenv("MMOPT_COMMIT") ?: "unknown",
	};
	struct sigaction sa = { .sa_handler = on_signal };
	struct ab_result *r;
	size_t n;
	int err;

	if (argc == 3 && !strcmp(argv[1], AB_AS_CHURN))
		return ab_churn_main(argv[2]);
	if (argc == 3 && !strcmp(argv[1], AB_AS_FORK))
		return ab_fork_main(argv[2]);
	if (argc == 3 && !strcmp(argv[1], AB_AS_SPIN))
		return ab_spin_main();
	if (argc == 3 && !strcmp(argv[1], AB_AS_KSM))
		return ab_ksm_main();
	err = parse(argc, argv, &o, &host);
	if (err)
		return err;
	r = select_cases(&o, &n);
	if (!n) {
		ab_error("no case matches");
		return EXIT_USAGE;
	}
	if (o.list) {
		for (size_t i = 0; i < n; i++)
			printf("%s %s %s%s\n", r[i].c->path, r[i].c->name, r[i].unit,
			       r[i].c->full ? " full" : "");
		free_results(r, n);
		return 0;
	}
	if (geteuid()) {
		ab_error("only root can load modules and switch paths");
		return EXIT_NO_PERM;
	}
	if (ab_loaded()) {
		ab_error("mmopt is loaded: \"mmopt unload\" first, for the runs without it");
		return 1;
	}

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* A huge page is a single entry: its walk would show nothing. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);

	err = measure_all(&o, &host, r, n);
	if (ab_unload())
		err = -1;
	ab_swap_off();
	if (ab_stop)
		ab_error("interrupted");
	if (!err)
		ab_print(&host, r, n);
	if (!err && o.json)
		err = ab_write_json(o.json, &host, r, n);
	free_results(r, n);
	return err ? 1 : 0;
}
