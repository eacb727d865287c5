// SPDX-License-Identifier: GPL-2.0
/*
 * Measures what paths do for the load that this host has: see ab_windows.c for
 * how, ab_stat.c for what may be concluded. However it ends, the host is left
 * as it was found.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ab.h"

#define STOP_MS		10000

static int unfit(int rc, const struct path *path, int err, const char *hint)
{
	fail(rc, err, path->name, "is %s%s%s", path->state, *path->reason ? ": " : "",
	     path->reason);
	fail_info("%s", hint);
	return rc;
}

/* Can this path be measured here and now? */
static int check_path(const struct path *path)
{
	int rc;

	if (path_is(path, "unavailable"))
		return unfit(RC_UNAVAILABLE, path, EOPNOTSUPP,
			     "this path does not fit this kernel");
	if (path_is(path, "tripped"))
		return unfit(RC_FAILED, path, EIO,
			     "'mmopt disable' acknowledges that; see dmesg first");
	if (!path_is(path, "on") && !path_is(path, "off"))
		return unfit(RC_STALLED, path, EBUSY,
			     "'mmopt disable' waits for the calls under way");
	if (path_held_back(path)) {
		rc = fail(RC_FAILED, EPERM, path->name, "cannot be enabled for it");
		fail_info("this kernel is untested: write 1 to " PARAM_UNTESTED " to try it");
		return rc;
	}
	return RC_OK;
}

static int check_lockdown(void)
{
	int rc;

	if (!host_locked_down())
		return RC_OK;
	rc = fail(RC_LOCKDOWN, EPERM, "ab", "stock calls cannot be timed, lockdown is %s",
		  host_lockdown());
	fail_info("compare 'mmopt stats' of before and after 'mmopt enable' instead");
	return rc;
}

static int choose_paths(struct ab_run *run, int argc, char **argv)
{
	int rc = paths_read(&run->list);

	if (!rc)
		rc = paths_check_names(&run->list, argc, argv);
	if (rc)
		return rc;
	run->paths = (size_t)argc;
	run->n_series = run->paths * (ab_opts.metric ? 2 : 1);
	run->path = calloc(run->paths, sizeof(*run->path));
	run->series = calloc(run->n_series, sizeof(*run->series));
	if (!run->path || !run->series)
		abort();
	for (size_t i = 0; i < run->paths; i++) {
		run->path[i].path = paths_find(&run->list, argv[i]);
		run->path[i].time = &run->series[i];
		run->path[i].metric = ab_opts.metric ? &run->series[run->paths + i] : NULL;
		for (size_t k = 0; k < i; k++) {
			if (run->path[k].path != run->path[i].path)
				continue;
			rc = fail(RC_USAGE, 0, argv[i], "given twice, nothing was done");
			fail_info("name each path once");
		}
	}
	for (size_t i = 0; i < run->paths; i++)
		rc = rc_first(rc, check_path(run->path[i].path));
	return rc;
}

static int start_load(struct ab_run *run)
{
	int rc;

	if (!ab_opts.load)
		return RC_OK;
	/* Standard output is for the result. */
	run->load.pid = child_start(ab_opts.load, -1, STDERR_FILENO);
	if (run->load.pid > 0)
		return RC_OK;
	rc = fail(RC_FAILED, (int)-run->load.pid, ab_opts.load[0], "cannot be run");
	fail_info("nothing was done; is the command right?");
	return rc;
}

static int observe_all(struct ab_run *run)
{
	for (size_t i = 0; i < run->paths; i++) {
		struct ab_path *p = &run->path[i];
		int rc;

		p->was_on = path_is(p->path, "on");
		p->was_observed = path_observed(p->path);
		p->touched = true;
		rc = p->was_observed ? RC_OK : path_observe(p->path, true);
		if (rc)
			return rc;
	}
	return RC_OK;
}

/* A path that has tripped stays as the trip left it: nobody has looked at that yet. */
static int restore_path(struct ab_run *run, struct ab_path *p)
{
	const char *via;
	int rc = RC_OK;

	if (!path_state(p->path) && path_is(p->path, "tripped"))
		out_warn(p->path->name, "it has tripped and was left off%s",
			 p->was_on ? ", though it was on before" : "");
	else if (p->taken_off && path_is(p->path, "off"))
		out_warn(p->path->name, "somebody has switched it off, and it was left so");
	else if (path_is(p->path, "on") != p->was_on)
		rc = path_switch(&run->list, p->path, p->was_on, &via);
	if (path_observed(p->path) != p->was_observed)
		rc = rc_first(rc, path_observe(p->path, p->was_observed));
	return rc;
}

/* Not to be interrupted: it may wait for calls under way, but no longer than --timeout. */
static int restore(struct ab_run *run)
{
	sigset_t signals, before;
	int rc = RC_OK;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGQUIT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	for (size_t i = 0; i < run->paths; i++)
		if (run->path[i].touched)
			rc = rc_first(rc, restore_path(run, &run->path[i]));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* A load that we end may say so as it likes; one that ends badly by itself failed. */
static int end_load(struct ab_run *run)
{
	struct ab_load *load = &run->load;
	int rc;

	if (load->pid <= 0)
		return RC_OK;
	if (!load->ended)
		load->ended = child_ended(load->pid, &load->status);
	if (!load->ended) {
		load->status = child_stop(load->pid, STOP_MS);
		load->stopped = true;
		return RC_OK;
	}
	if (!load->status)
		return RC_OK;
	if (WIFSIGNALED(load->status))
		rc = fail(RC_FAILED, 0, ab_opts.load[0],
			  "was killed by signal %d, after %zu pairs of windows",
			  WTERMSIG(load->status), run->pairs);
	else
		rc = fail(RC_FAILED, 0, ab_opts.load[0],
			  "failed with status %d, after %zu pairs of windows",
			  WEXITSTATUS(load->status), run->pairs);
	fail_info("what was measured until then is reported");
	return rc;
}

static void measure(struct ab_run *run)
{
	int rc;

	ab_random_seed(&run->random, ab_opts.seed);
	if (ab_opts.seconds)
		progress("measuring for %u s in windows of about %g s", ab_opts.seconds,
			 ab_opts.window_s);
	else
		progress("measuring in windows of about %g s until the command ends",
			 ab_opts.window_s);
	rc = observe_all(run);
	if (!rc)
		ab_windows(run);
	run->rc = rc_first(run->rc, rc);
	run->rc = rc_first(run->rc, restore(run));
}

static void ab_free(struct ab_run *run)
{
	for (size_t i = 0; i < run->windows; i++)
		free(run->window[i].cell);
	for (size_t i = 0; i < run->n_series; i++)
		free(run->series[i].diff);
	free(run->window);
	free(run->series);
	free(run->path);
	paths_free(&run->list);
	ab_files_close(run);
}

int cmd_ab(struct json_object *doc, int argc, char **argv)
{
	struct ab_run run = { 0 };
	int rc;

	rc = ab_options_finish(&argc, argv);
	if (!rc)
		rc = control_open();
	if (!rc)
		rc = check_lockdown();
	if (!rc && !control_lock(LOCK_EX))
		rc = control_busy("another mmopt");
	if (!rc)
		rc = choose_paths(&run, argc, argv);
	if (!rc)
		rc = ab_files_open(&run);
	catch_signals();
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!rc)
		rc = start_load(&run);
	if (!rc) {
		measure(&run);
		rc = rc_first(run.rc, end_load(&run));
		run.rc = rc;
		if (run.start_ms) {
			ab_report(&run, doc);
			ab_files_write(&run, doc);
		}
		rc = run.rc;
	}
	ab_free(&run);
	return rc;
}
