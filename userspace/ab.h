/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of "mmopt ab" share. */
#ifndef AB_H
#define AB_H

#include <stdio.h>
#include <sys/types.h>

#include "ab_stat.h"
#include "mmopt.h"

enum ab_better { AB_NEITHER, AB_LOWER, AB_HIGHER };

/* ab_options.c */
struct ab_options {
	unsigned int seconds;	/* 0: as long as the command runs */
	double window_s;
	bool has_seed;
	unsigned int seed;
	bool aa;
	const char *metric;	/* a command of the shell */
	enum ab_better better;
	const char *csv, *plot, *html;
	bool plot_png;
	char **load;		/* a command and its arguments, or NULL */
};

extern struct ab_options ab_opts;

#define AB_LONGEST	1.25	/* a window, in relation to the length asked for */

int ab_options_finish(int *argc, char **argv);

/* One path in one window. */
struct ab_cell {
	bool on;
	__u64 hist[HIST_BUCKETS];
	__u64 sum_ns;
};

/* Two that follow each other are a pair. */
struct ab_window {
	double at_s, length_s;
	double metric;
	struct ab_cell *cell;	/* for each path */
};

struct ab_path {
	struct path *path;
	bool touched, was_on, was_observed;
	bool taken_off;		/* by somebody else, while it was on */
	/* Off and on. In all but the first, each window with calls counts as any other. */
	__u64 calls[2];
	size_t windows[2];
	double means_ns[2];
	__u64 share[2][HIST_BUCKETS];
	struct ab_series *time, *metric;
};

struct ab_load {
	pid_t pid;
	bool ended, stopped;	/* by itself, by us */
	int status;
};

struct ab_run {
	struct path_list list;
	struct ab_path *path;
	size_t paths;
	struct ab_window *window;
	size_t windows, pairs;	/* pairs: that are whole */
	struct ab_series *series;
	size_t n_series;
	struct ab_random random;
	struct ab_load load;
	__u64 start_ms, end_ms, slowest_switch_ms;
	int rc;			/* what ended it early */
	FILE *csv, *plot, *html;
};

/* ab_child.c: other programs */
pid_t child_start(char *const argv[], int in, int out);
bool child_ended(pid_t pid, int *status);
int child_stop(pid_t pid, unsigned int grace_ms);
int child_run(char *const argv[], int in, int out);
int ab_metric(double *value);

/* ab_windows.c: the measuring */
double ab_mean_ns(const struct ab_cell *cell);
void ab_windows(struct ab_run *run);

/* ab_report.c */
void ab_report(struct ab_run *run, struct json_object *doc);

/* ab_files.c */
int ab_files_open(struct ab_run *run);
void ab_files_write(struct ab_run *run, struct json_object *doc);
void ab_files_close(struct ab_run *run);

/* ab_html.c */
void ab_html(struct json_object *doc, const char *svg, FILE *out);

#endif /* AB_H */
