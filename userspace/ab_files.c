// SPDX-License-Identifier: GPL-2.0
/* What a run leaves in files: every window, a picture, a page. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ab.h"

/* What is in it stays until there is something to write. */
static FILE *open_one(const char *option, const char *name, int *rc)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f) {
		*rc = fail(RC_FAILED, errno, option, "cannot write %s", name);
		fail_info("nothing was done; give a name in a folder that exists");
	}
	return f;
}

static bool same_file(FILE *a, FILE *b)
{
	struct stat x, y;

	return a && b && !fstat(fileno(a), &x) && !fstat(fileno(b), &y) &&
	       S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int check_gnuplot(void)
{
	char *const argv[] = { "gnuplot", "--version", NULL };
	int null, status, rc;

	if (!ab_opts.plot && !ab_opts.html)
		return RC_OK;
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	status = child_run(argv, -1, null);
	close(null);
	if (!status)
		return RC_OK;
	rc = fail(RC_FAILED, status < 0 ? -status : 0, "gnuplot",
		  "cannot be run, and --plot and --html need it");
	fail_info("nothing was done; install gnuplot-nox, or use --csv");
	return rc;
}

/* Before the run, so that no hour of measuring ends in a file that cannot be written. */
int ab_files_open(struct ab_run *run)
{
	int rc = check_gnuplot();

	if (!rc && ab_opts.csv)
		run->csv = open_one("--csv", ab_opts.csv, &rc);
	if (!rc && ab_opts.plot)
		run->plot = open_one("--plot", ab_opts.plot, &rc);
	if (!rc && ab_opts.html)
		run->html = open_one("--html", ab_opts.html, &rc);
	if (same_file(run->csv, run->plot) || same_file(run->csv, run->html) ||
	    same_file(run->plot, run->html)) {
		rc = fail(RC_USAGE, 0, "ab", "two options name the same file, nothing was done");
		fail_info("give each of --csv, --plot and --html a file of its own");
	}
	return rc;
}

static void csv_row(FILE *f, const struct ab_run *run, size_t k, size_t i)
{
	const struct ab_window *w = &run->window[k];
	const struct ab_cell *cell = &w->cell[i];
	__u64 calls = hist_total(cell->hist);

	fprintf(f, "%zu,%zu,%.3f,%.3f,%s,%s,%llu,", k / 2 + 1, k % 2 + 1, w->at_s, w->length_s,
		run->path[i].path->name, cell->on ? "on" : "off", calls);
	if (calls)
		fprintf(f, "%.0f,%.0f,%.0f,%.0f,", ab_mean_ns(cell),
			exp2(ab_mean_log2(cell->hist)), ab_quantile_ns(cell->hist, 0.5),
			ab_quantile_ns(cell->hist, 0.99));
	else
		fprintf(f, ",,,,");
	if (ab_opts.metric)
		fprintf(f, "%.10g", w->metric);
	fputc('\n', f);
}

static void write_csv(FILE *f, const struct ab_run *run)
{
	fputs("pair,window,at_s,length_s,path,state,calls,", f);
	fputs("mean_ns,log_mean_ns,p50_ns,p99_ns,metric\n", f);
	for (size_t k = 0; k < run->windows; k++)
		for (size_t i = 0; i < run->paths; i++)
			csv_row(f, run, k, i);
}

static bool in_use(const struct ab_path *p, size_t bucket)
{
	return bucket < HIST_BUCKETS && (p->share[0][bucket] || p->share[1][bucket]);
}

/*
 * Share of the windows of a state in each bucket, from where it begins, with a
 * nought on both sides; and the ratio of each pair.
 */
static void plot_data(FILE *f, const struct ab_run *run, size_t i)
{
	const struct ab_path *p = &run->path[i];
	double off = (double)hist_total(p->share[0]), on = (double)hist_total(p->share[1]);

	fprintf(f, "$hist%zu << END\n", i);
	for (size_t k = 0; k <= HIST_BUCKETS; k++) {
		if (in_use(p, k) && !in_use(p, k - 1))
			fprintf(f, "%g 0 0\n", exp2((double)k) / 1000);
		if (in_use(p, k))
			fprintf(f, "%g %g %g\n", exp2((double)k) / 1000,
				100 * (double)p->share[0][k] / off,
				100 * (double)p->share[1][k] / on);
		else if (in_use(p, k - 1))
			fprintf(f, "%g 0 0\n", exp2((double)k) / 1000);
	}
	fprintf(f, "END\n$ratio%zu << END\n", i);
	for (size_t k = 0; k + 1 < run->windows; k += 2) {
		const struct ab_cell *a = &run->window[k].cell[i];
		const struct ab_cell *b = &run->window[k + 1].cell[i];
		double diff;

		if (!hist_total(a->hist) || !hist_total(b->hist))
			continue;
		diff = ab_mean_log2(a->hist) - ab_mean_log2(b->hist);
		fprintf(f, "%g %g\n", run->window[k].at_s, exp2(a->on ? -diff : diff));
	}
	fprintf(f, "END\n");
}

static void plot_panels(FILE *f, const struct ab_run *run, size_t i)
{
	const struct ab_path *p = &run->path[i];

	fprintf(f, "set title '%s: calls of each state'\n", p->path->name);
	fprintf(f, "set xlabel 'us'; set ylabel '%%'; set logscale x; unset logscale y\n");
	fprintf(f, "set xrange [*:*]; set yrange [0:*]\n");
	fprintf(f, "plot $hist%zu using 1:2 with steps ls 1 title 'off',\\\n", i);
	fprintf(f, "'' using 1:3 with steps ls 2 title '%s'\n", ab_opts.aa ? "off too" : "on");

	fprintf(f, "set title '%s: off / on of each pair of windows'\n", p->path->name);
	fprintf(f, "set xlabel 's'; unset ylabel; unset logscale x; set logscale y\n");
	fprintf(f, "set xrange [0:*]; set yrange [*<0.9:1.1<*]\n");
	fprintf(f, "plot $ratio%zu using 1:2 with points pt 7 ps 0.6 notitle", i);
	fprintf(f, ", 1 ls 1 notitle");
	if (p->time->verdict != AB_TOO_LITTLE) {
		fprintf(f, ", %g ls 2 title 'estimate'", p->time->ratio);
		fprintf(f, ", %g ls 3 title '%.4g %% confidence'", p->time->low,
			100 * p->time->level);
		fprintf(f, ", %g ls 3 notitle", p->time->high);
	}
	fputc('\n', f);
}

static bool drawable(const struct ab_path *p)
{
	return p->time->n > 0;
}

static size_t rows(const struct ab_run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->paths; i++)
		n += drawable(&run->path[i]);
	return n;
}

/* Nothing in it is the user's: names of paths are letters, digits and underscores. */
static void plot_script(FILE *f, const struct ab_run *run, bool png)
{
	size_t n = rows(run);

	for (size_t i = 0; i < run->paths; i++)
		if (drawable(&run->path[i]))
			plot_data(f, run, i);
	fprintf(f, "set terminal %s noenhanced size 1000,%zu\n",
		png ? "pngcairo" : "svg background '#ffffff'", 40 + 320 * n);
	fprintf(f, "set style line 1 lw 2 lc rgb '#b2182b'\n");
	fprintf(f, "set style line 2 lw 2 lc rgb '#2166ac'\n");
	fprintf(f, "set style line 3 dt 2 lc rgb '#2166ac'\n");
	fprintf(f, "set grid lc rgb '#dddddd' lt 1; set tics nomirror; set border 3\n");
	fprintf(f, "set samples 2; set key outside bottom center horizontal\n");
	fprintf(f, "set multiplot layout %zu,2\n", n);
	for (size_t i = 0; i < run->paths; i++)
		if (drawable(&run->path[i]))
			plot_panels(f, run, i);
	fprintf(f, "unset multiplot\n");
}

static int plot_failed(int err)
{
	int rc = fail(RC_FAILED, err, "gnuplot", "cannot draw");

	fail_info("what it said is above; --csv has the figures");
	return rc;
}

/*
 * gnuplot reads the script from a file and writes to one: it need not know names, nor
 * (-d) what somebody wants of it elsewhere.
 */
static int draw(const struct ab_run *run, bool png, int out)
{
	char *const argv[] = { "gnuplot", "-d", NULL };
	FILE *script = tmpfile();
	int status;

	if (!script)
		return plot_failed(errno);
	plot_script(script, run, png);
	if (fflush(script) || ferror(script)) {
		fclose(script);
		return plot_failed(EIO);
	}
	rewind(script);
	status = child_run(argv, fileno(script), out);
	fclose(script);
	return status ? plot_failed(status < 0 ? -status : 0) : RC_OK;
}

/* The picture as text, or NULL. */
static char *draw_svg(struct ab_run *run)
{
	FILE *f = tmpfile();
	char *text = NULL;
	size_t size = 0;
	int rc;

	if (!f) {
		run->rc = rc_first(run->rc, plot_failed(errno));
		return NULL;
	}
	rc = draw(run, false, fileno(f));
	rewind(f);
	if (!rc && getdelim(&text, &size, '\0', f) < 0)
		rc = plot_failed(0);
	fclose(f);
	run->rc = rc_first(run->rc, rc);
	return text;
}

static void finish(struct ab_run *run, FILE **f, const char *option)
{
	bool bad;

	if (!*f)
		return;
	/* What was in it may have been longer; EINVAL: a pipe or device has no length. */
	bad = fflush(*f) || ferror(*f) ||
	      (ftruncate(fileno(*f), lseek(fileno(*f), 0, SEEK_CUR)) && errno != EINVAL);
	if (fclose(*f) || bad) {
		run->rc = rc_first(run->rc, fail(RC_FAILED, errno, option, "cannot write it all"));
		fail_info("is the disk full?");
	}
	*f = NULL;
}

void ab_files_write(struct ab_run *run, struct json_object *doc)
{
	bool any = rows(run) > 0;
	char *svg = NULL;

	if (run->csv)
		write_csv(run->csv, run);
	finish(run, &run->csv, "--csv");
	if (!any && (run->plot || run->html))
		out_warn("ab", "no pair of windows with calls, so there is nothing to draw");
	if (any && run->plot)
		run->rc = rc_first(run->rc, draw(run, ab_opts.plot_png, fileno(run->plot)));
	finish(run, &run->plot, "--plot");
	if (any && run->html)
		svg = draw_svg(run);
	if (run->html)
		ab_html(doc, svg, run->html);
	free(svg);
	finish(run, &run->html, "--html");
}

/* Those that were opened and are not needed after all. */
void ab_files_close(struct ab_run *run)
{
	FILE *files[] = { run->csv, run->plot, run->html };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (files[i])
			fclose(files[i]);
}
