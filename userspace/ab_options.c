// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ab.h"

#define SECONDS_MAX	86400
#define WINDOW_MIN	0.1
#define WINDOW_MAX	3600
/* What is aimed at if the user leaves the windows to us. */
#define WINDOW_USUAL	1.0
#define WINDOWS_USUAL	40

struct ab_options ab_opts;

static int not_a_number(const char *name, const char *text, const char *range)
{
	char option[32] = "--";
	int rc = fail(RC_USAGE, 0, strncat(option, name, sizeof(option) - 3),
		      "%s is not a number that it takes", text);

	fail_info("give %s", range);
	return rc;
}

static bool whole(const char *text, unsigned long max, unsigned int *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n > max)
		return false;
	*value = (unsigned int)n;
	return true;
}

static int set_window(const char *name, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (!*text || text[strspn(text, "0123456789.")] || *end)
		return not_a_number(name, text, "seconds, from 0.1 to 3600");
	if (value < WINDOW_MIN || value > WINDOW_MAX) {
		int rc = fail(RC_USAGE, 0, "--window", "%s s is too %s", text,
			      value < WINDOW_MIN ? "short" : "long");

		fail_info("give 0.1 to 3600 s: switching a path takes some of each window");
		return rc;
	}
	ab_opts.window_s = value;
	return RC_OK;
}

static int set_better(enum ab_better better)
{
	int rc = RC_OK;

	if (ab_opts.better && ab_opts.better != better) {
		rc = fail(RC_USAGE, 0, "--metric", "only one of lower and higher is better");
		fail_info("give one of --lower-is-better and --higher-is-better");
	}
	ab_opts.better = better;
	return rc;
}

static int set_plot(const char *file)
{
	size_t len = strlen(file);
	const char *end = len < 5 ? "" : file + len - 4;
	int rc;

	ab_opts.plot = file;
	ab_opts.plot_png = !strcmp(end, ".png");
	if (ab_opts.plot_png || !strcmp(end, ".svg"))
		return RC_OK;
	rc = fail(RC_USAGE, 0, "--plot", "%s ends neither in .svg nor in .png", file);
	fail_info("the name tells which of the two is wanted");
	return rc;
}

static int set_seed(const char *name, const char *text)
{
	ab_opts.has_seed = true;
	if (whole(text, UINT_MAX, &ab_opts.seed))
		return RC_OK;
	return not_a_number(name, text, "a whole number from 0 to 4294967295");
}

static int set_seconds(const char *name, const char *text)
{
	if (whole(text, SECONDS_MAX, &ab_opts.seconds) && ab_opts.seconds)
		return RC_OK;
	return not_a_number(name, text, "a whole number of seconds from 1 to 86400");
}

/* One long option, by its name. */
int ab_option(const char *name, const char *value)
{
	if (!strcmp(name, "seconds"))
		return set_seconds(name, value);
	if (!strcmp(name, "window"))
		return set_window(name, value);
	if (!strcmp(name, "seed"))
		return set_seed(name, value);
	if (!strcmp(name, "plot"))
		return set_plot(value);
	if (!strcmp(name, "lower-is-better"))
		return set_better(AB_LOWER);
	if (!strcmp(name, "higher-is-better"))
		return set_better(AB_HIGHER);
	if (!strcmp(name, "metric"))
		ab_opts.metric = value;
	else if (!strcmp(name, "csv"))
		ab_opts.csv = value;
	else if (!strcmp(name, "html"))
		ab_opts.html = value;
	else
		ab_opts.aa = true;
	return RC_OK;
}

/* Would the time do, even if chance made every window as long as it may? */
static int check_time(size_t paths)
{
	size_t pairs = ab_pairs_needed(paths * (ab_opts.metric ? 2 : 1));
	double need = 2 * (double)pairs * ab_opts.window_s * AB_LONGEST;
	int rc;

	if (!ab_opts.seconds || ab_opts.seconds >= need)
		return RC_OK;
	rc = fail(RC_USAGE, 0, "--window",
		  "too long: %zu pairs of windows of %g s do not fit into %u s", pairs,
		  ab_opts.window_s, ab_opts.seconds);
	fail_info("give a shorter --window, or --seconds %u", (unsigned int)need + 1);
	return rc;
}

static void set_defaults(void)
{
	if (!ab_opts.seconds && !ab_opts.load)
		ab_opts.seconds = 60;
	if (!ab_opts.window_s) {
		ab_opts.window_s = WINDOW_USUAL;
		if (ab_opts.seconds && ab_opts.seconds < WINDOW_USUAL * WINDOWS_USUAL)
			ab_opts.window_s = (double)ab_opts.seconds / WINDOWS_USUAL;
		if (ab_opts.window_s < WINDOW_MIN)
			ab_opts.window_s = WINDOW_MIN;
	}
	if (!ab_opts.has_seed &&
	    getrandom(&ab_opts.seed, sizeof(ab_opts.seed), 0) != sizeof(ab_opts.seed))
		abort();
}

/* All options together. What follows "--" is taken from the arguments. */
int ab_options_finish(int *argc, char **argv)
{
	int rc;

	if (opts.after_dashes > 0 && opts.after_dashes <= *argc) {
		*argc -= opts.after_dashes;
		ab_opts.load = argv + *argc;
	}
	if (!*argc) {
		rc = fail(RC_USAGE, 0, "ab", "no path given");
		fail_info("name one or more paths, before '--' and a command");
		return rc;
	}
	if (ab_opts.better && !ab_opts.metric) {
		rc = fail(RC_USAGE, 0, "ab", "there is no --metric that could be better");
		fail_info("of latencies, lower is better");
		return rc;
	}
	set_defaults();
	return check_time((size_t)*argc);
}
