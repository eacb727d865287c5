// SPDX-License-Identifier: GPL-2.0
/*
 * The windows. Pairs of them follow each other, off and on, or on and off as a
 * coin says, for each path another one. Lengths vary at random, so that a load
 * with a rhythm of its own does not keep step. The beginning of a window does
 * not count, as calls of the state before still end in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ab.h"

#define SHORTEST	(2 - AB_LONGEST)
#define SETTLE		0.125
#define SLICE_MS	20

static bool failed(struct ab_run *run, int rc)
{
	run->rc = rc_first(run->rc, rc);
	return false;
}

static double since_start(const struct ab_run *run)
{
	return (double)(now_ms() - run->start_ms) / 1000;
}

/* Returns false if it is over: a signal came, or the load has ended. */
static bool go_on(struct ab_run *run)
{
	if (interrupted) {
		failed(run, fail(RC_FAILED, EINTR, "ab", "ended after %zu pairs of windows",
				 run->pairs));
		fail_info("what was measured until then is reported");
		return false;
	}
	if (run->load.pid > 0 && !run->load.ended)
		run->load.ended = child_ended(run->load.pid, &run->load.status);
	return !run->load.ended;
}

static bool pause_for(struct ab_run *run, double seconds)
{
	__u64 end = now_ms() + (__u64)(seconds * 1000), now;

	while (go_on(run)) {
		now = now_ms();
		if (now >= end)
			return true;
		nap_ms((unsigned int)(end - now < SLICE_MS ? end - now : SLICE_MS));
	}
	return false;
}

static bool switch_all(struct ab_run *run, const struct ab_window *w)
{
	__u64 before = now_ms(), took;

	for (size_t i = 0; i < run->paths; i++) {
		struct path *path = run->path[i].path;
		bool on = w->cell[i].on && !ab_opts.aa;
		const char *via;
		int rc;

		if (path_is(path, "on") == on)
			continue;
		rc = path_switch(&run->list, path, on, &via);
		if (rc)
			return failed(run, rc);
	}
	took = now_ms() - before;
	if (took > run->slowest_switch_ms)
		run->slowest_switch_ms = took;
	return true;
}

/* Nobody else, and no trip, has changed what this window is of. */
static bool states_hold(struct ab_run *run, const struct ab_window *w)
{
	for (size_t i = 0; i < run->paths; i++) {
		struct path *path = run->path[i].path;
		bool on = w->cell[i].on && !ab_opts.aa;
		int ret = path_state(path);

		if (ret) {
			failed(run, fail(RC_FAILED, -ret, path->name, "its state cannot be read"));
			fail_info("see the kernel log (dmesg)");
			return false;
		}
		if (path_is(path, on ? "on" : "off"))
			continue;
		if (path_is(path, "tripped")) {
			failed(run, fail(RC_FAILED, EIO, path->name, "has tripped: %s",
					 path->reason));
			fail_info("stock code runs; see the kernel log (dmesg)");
		} else {
			run->path[i].taken_off = on && path_is(path, "off");
			failed(run, fail(RC_FAILED, 0, path->name,
					 "is %s, somebody else has switched it", path->state));
			fail_info("let nobody switch it during a run");
		}
		return false;
	}
	return true;
}

double ab_mean_ns(const struct ab_cell *cell)
{
	return (double)cell->sum_ns / (double)hist_total(cell->hist);
}

/* From what was at the beginning of a window to the difference at its end. */
static bool advance(struct ab_run *run, const char *name, __u64 *value, __u64 now)
{
	if (now < *value) {
		failed(run, fail(RC_FAILED, 0, name, "its counters were set to zero meanwhile"));
		fail_info("let nobody reset them during a run");
		return false;
	}
	*value = now - *value;
	return true;
}

/*
 * At the beginning of a window the histograms are kept, at its end they become
 * the difference. Calls that fell back to stock code belong to the state too.
 */
static bool read_all(struct ab_run *run, struct ab_window *w, bool end)
{
	for (size_t i = 0; i < run->paths; i++) {
		const char *name = run->path[i].path->name;
		struct ab_cell *cell = &w->cell[i];
		__u64 now[HIST_BUCKETS], sum;
		struct stats stats;
		bool good = true;
		int rc = stats_read(&stats, name);

		for (size_t k = 0; k < HIST_BUCKETS; k++)
			now[k] = stats.hist[HIST_TAKEN][k] + stats.hist[HIST_STOCK][k];
		sum = stats.sum_ns[HIST_TAKEN] + stats.sum_ns[HIST_STOCK];
		stats_free(&stats);
		if (rc)
			return failed(run, rc);
		if (!end) {
			memcpy(cell->hist, now, sizeof(now));
			cell->sum_ns = sum;
			continue;
		}
		for (size_t k = 0; good && k < HIST_BUCKETS; k++)
			good = advance(run, name, &cell->hist[k], now[k]);
		good = good && advance(run, name, &cell->sum_ns, sum);
		if (!good)
			return false;
	}
	return true;
}

static bool ask_metric(struct ab_run *run, struct ab_window *w)
{
	int rc = ab_opts.metric ? ab_metric(&w->metric) : RC_OK;

	return rc ? failed(run, rc) : true;
}

static struct ab_window *add_window(struct ab_run *run)
{
	struct ab_window *v = reallocarray(run->window, run->windows + 1, sizeof(*v)), *w;

	if (!v)
		abort();
	run->window = v;
	w = &v[run->windows++];
	memset(w, 0, sizeof(*w));
	w->cell = calloc(run->paths, sizeof(*w->cell));
	if (!w->cell)
		abort();
	w->length_s = ab_opts.window_s *
		      (SHORTEST + (AB_LONGEST - SHORTEST) * ab_random(&run->random));
	return w;
}

static void drop_window(struct ab_run *run)
{
	free(run->window[--run->windows].cell);
}

static bool run_window(struct ab_run *run, struct ab_window *w)
{
	w->at_s = since_start(run);
	return switch_all(run, w) && pause_for(run, w->length_s * SETTLE) &&
	       read_all(run, w, false) && pause_for(run, w->length_s * (1 - SETTLE)) &&
	       states_hold(run, w) && read_all(run, w, true) && ask_metric(run, w);
}

/* A pair is whole or not there at all. */
static bool run_pair(struct ab_run *run)
{
	size_t first = run->windows;
	double end = since_start(run);
	bool good;

	end += add_window(run)->length_s;
	end += add_window(run)->length_s;
	good = !ab_opts.seconds || end <= ab_opts.seconds;
	for (size_t i = 0; i < run->paths; i++) {
		run->window[first].cell[i].on = ab_coin(&run->random);
		run->window[first + 1].cell[i].on = !run->window[first].cell[i].on;
	}
	good = good && run_window(run, &run->window[first]) &&
	       run_window(run, &run->window[first + 1]);
	while (!good && run->windows > first)
		drop_window(run);
	run->pairs += good;
	return good;
}

/* Until the time is over or something ends it; what that was is in run->rc. */
void ab_windows(struct ab_run *run)
{
	run->start_ms = now_ms();
	while (go_on(run) && run_pair(run))
		;
	run->end_ms = now_ms();
	if ((double)run->slowest_switch_ms > ab_opts.window_s * 1000 / 2)
		out_warn("ab", "switching took up to %llu ms of windows of %g s: make them longer",
			 run->slowest_switch_ms, ab_opts.window_s);
}
