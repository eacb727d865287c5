// SPDX-License-Identifier: GPL-2.0
/*
 * The state machine of a path, the same for every path.
 *
 *	off --enable--> on --disable--> draining --> off
 *	 any --trip--> tripped --disable--> off
 *	 unavailable for good, from load on
 *
 * A path is armed while it is on or observed. What a path file is asked to do
 * runs under the lock of the path; the state is read without it, so that
 * "draining" can be seen.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"

#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "hook/hook.h"
#include "params.h"
#include "path.h"

#define X(id, what) &mmopt_path_##id,
struct mmopt_path *const mmopt_paths[] = { MMOPT_PATHS(X) NULL };
#undef X

#define X(id) #id,
static const char *const state_name[] = { MMOPT_STATES(X) };
#undef X

/**
 * mmopt_path_find() - look a path up by name
 * @name: not necessarily terminated
 * @len:  its length in bytes
 *
 * Return: the path or NULL.
 */
struct mmopt_path *mmopt_path_find(const char *name, size_t len)
{
	struct mmopt_path *path;
	unsigned int i;

	mmopt_for_each_path(path, i)
		if (strlen(path->name) == len && !strncmp(path->name, name, len))
			return path;
	return NULL;
}

/* @why may be NULL: then the reason that stands is wiped. */
static void set_state(struct mmopt_path *path, enum mmopt_state state,
		      const char *why)
{
	spin_lock(&path->say);
	path->state = state;
	strscpy(path->reason, why ?: "", sizeof(path->reason));
	spin_unlock(&path->say);
	trace_mmopt_state(path->name, state_name[state]);
}

/**
 * mmopt_path_describe() - the state in words
 * @path: the path
 * @buf:  gets "state" or "state: reason", without a newline
 * @len:  its size in bytes
 *
 * Return: length of the description.
 */
int mmopt_path_describe(struct mmopt_path *path, char *buf, size_t len)
{
	int n;

	spin_lock(&path->say);
	n = scnprintf(buf, len, "%s%s%s", state_name[path->state],
		      path->reason[0] ? ": " : "", path->reason);
	spin_unlock(&path->say);
	return n;
}

static int arm_hooks(struct mmopt_path *path, char *why, size_t why_len)
{
	return path->sites ? mmopt_callsites_arm(path->sites, why, why_len) :
			     mmopt_entry_arm(path->entry, why, why_len);
}

static int disarm_hooks(struct mmopt_path *path, char *why, size_t why_len)
{
	return path->sites ? mmopt_callsites_disarm(path->sites, why, why_len) :
			     mmopt_entry_disarm(path->entry, why, why_len);
}

/*
 * Caller holds path->lock. On failure the path goes on holding the module, and
 * says why, unless it has a trip to tell of.
 */
static int disarm(struct mmopt_path *path)
{
	char why[MMOPT_REASON_LEN] = "";
	int err;

	if (!path->held)
		return 0;
	err = disarm_hooks(path, why, sizeof(why));
	path->armed = false;
	if (!err) {
		if (path->ops->stop)
			path->ops->stop(path);
		path->held = false;
		module_put(THIS_MODULE);
	}
	if (err && path->state != MMOPT_STATE_tripped)
		set_state(path, MMOPT_STATE_draining, why);
	else if (path->state == MMOPT_STATE_draining)
		set_state(path, MMOPT_STATE_off, NULL);
	return err;
}

/* Runs outside of the call that tripped: text is turned under mutexes. */
static void trip_work(struct work_struct *work)
{
	struct mmopt_path *path = container_of(work, struct mmopt_path, trip_work);

	mutex_lock(&path->lock);
	if (path->state == MMOPT_STATE_tripped) {
		if (path->enabled)
			static_branch_disable(path->fast);
		path->enabled = false;
	}
	mutex_unlock(&path->lock);
}

/**
 * mmopt_path_trip() - take a path that saw the impossible out of service
 * @path: the path
 * @why:  what it saw
 *
 * The state changes at once, and the path is switched off soon after. Its hooks
 * stay, passing calls on, until somebody acknowledges by switching it off. The
 * caller lets stock code do the call at hand.
 *
 * Context: process; may be called with mutexes held.
 */
void mmopt_path_trip(struct mmopt_path *path, const char *why)
{
	set_state(path, MMOPT_STATE_tripped, why);
	trace_mmopt_trip(path->name, why);
	pr_err("%s tripped, stock code runs: %s\n", path->name, why);
	schedule_work(&path->trip_work);
}

/* What forbids arming now; 0 if nothing does. Caller holds path->lock. */
static int forbidden(const struct mmopt_path *path, char *why, size_t why_len)
{
	if (path->state == MMOPT_STATE_unavailable)
		return -EOPNOTSUPP;
	if (path->state == MMOPT_STATE_tripped)
		return -EIO;
	if (mmopt_untested()) {
		snprintf(why, why_len, "this kernel series is untested, see allow_untested");
		return -EPERM;
	}
	return 0;
}

/* The first function of a path that another patcher owns, or NULL. */
static const char *owned(const struct mmopt_path *path)
{
	const char *const *name;

	for (name = path->bypassed; name && *name; name++)
		if (mmopt_entry_owned(*name))
			return *name;
	return NULL;
}

static int arm(struct mmopt_path *path, char *why, size_t why_len)
{
	int err = forbidden(path, why, why_len);
	const char *name;

	if (err)
		return err;
	/* Also if armed: somebody may have come since. */
	name = owned(path);
	if (name) {
		snprintf(why, why_len,
			 "another livepatch or probe owns %s, or kernel.ftrace_enabled is 0",
			 name);
		return -EBUSY;
	}
	if (path->armed)
		return 0;
	if (!path->held && !try_module_get(THIS_MODULE))
		return -ENODEV;
	if (!path->held && path->ops->start)
		err = path->ops->start(path, why, why_len);
	if (!err) {
		err = arm_hooks(path, why, why_len);
		if (err && !path->held && path->ops->stop)
			path->ops->stop(path);
	}
	if (err && !path->held)
		module_put(THIS_MODULE);
	if (err)
		return err;
	path->armed = true;
	path->held = true;
	return 0;
}

static int enable(struct mmopt_path *path)
{
	char why[MMOPT_REASON_LEN] = "";
	int err;

	err = arm(path, why, sizeof(why));
	if (!err) {
		path->enabled = true;
		set_state(path, MMOPT_STATE_on, NULL);
		static_branch_enable(path->fast);
	} else if (why[0] && path->state == MMOPT_STATE_off) {
		/* It says why it stays off until it is switched again. */
		set_state(path, MMOPT_STATE_off, why);
		pr_warn("%s stays off: %s\n", path->name, why);
	}
	return err;
}

static int disable(struct mmopt_path *path)
{
	int err = 0;

	if (path->enabled) {
		set_state(path, MMOPT_STATE_draining, NULL);
		static_branch_disable(path->fast);
		path->enabled = false;
	}
	if (!path->observe)
		err = disarm(path);
	if (!err && path->state != MMOPT_STATE_unavailable)
		set_state(path, MMOPT_STATE_off, NULL);
	return err;
}

/**
 * mmopt_path_enable() - switch a path on or off
 * @path: the path
 * @on:   which of the two
 *
 * Off also acknowledges a trip.
 *
 * Context: sleeps; off waits for the calls under way, unless a signal comes.
 * Return: 0, -EOPNOTSUPP if the path is unavailable, -EPERM if the kernel is
 * untested and allow_untested is not set, -EIO if the path has tripped, -EBUSY
 * if another patcher owns a function, -EINTR if the path is off and calls are
 * still under way, or what arming said.
 */
int mmopt_path_enable(struct mmopt_path *path, bool on)
{
	int err = 0;

	if (mutex_lock_interruptible(&path->lock))
		return -EINTR;
	if (!on)
		err = disable(path);
	else if (path->state != MMOPT_STATE_on)
		err = enable(path);
	mutex_unlock(&path->lock);
	return err;
}

/**
 * mmopt_path_observe() - keep the hooks of a path armed while it is off
 * @path:    the path
 * @observe: yes or no
 *
 * Context: sleeps.
 * Return: as mmopt_path_enable().
 */
int mmopt_path_observe(struct mmopt_path *path, bool observe)
{
	char why[MMOPT_REASON_LEN] = "";
	int err = 0;

	if (mutex_lock_interruptible(&path->lock))
		return -EINTR;
	if (observe)
		err = arm(path, why, sizeof(why));
	if (!err)
		path->observe = observe;
	else if (why[0])
		pr_warn("%s is not observed: %s\n", path->name, why);
	if (!observe && !path->enabled)
		err = disarm(path);
	mutex_unlock(&path->lock);
	return err;
}

/**
 * mmopt_path_recheck() - has another patcher come?
 *
 * A livepatch of a function that a path bypasses would take no effect on the
 * calls that the path takes, so the path steps back.
 *
 * Context: sleeps.
 * Return: whether to ask again later: a path is being switched.
 */
bool mmopt_path_recheck(void)
{
	char why[MMOPT_REASON_LEN];
	struct mmopt_path *path;
	bool again = false;
	const char *name;
	unsigned int i;

	mmopt_for_each_path(path, i) {
		if (!mutex_trylock(&path->lock)) {
			again = true;
			continue;
		}
		name = path->armed ? owned(path) : NULL;
		if (name) {
			snprintf(why, sizeof(why), "another livepatch or probe has taken %s",
				 name);
			mmopt_path_trip(path, why);
		}
		mutex_unlock(&path->lock);
	}
	return again;
}

/**
 * mmopt_path_init() - bring a path up, off
 * @path:  the path
 * @unfit: why no path can work here, or NULL
 *
 * A path that does not fit the running kernel is unavailable, which is no
 * failure.
 *
 * Context: module init.
 * Return: 0 or -ENOMEM.
 */
int mmopt_path_init(struct mmopt_path *path, const char *unfit)
{
	char why[MMOPT_REASON_LEN] = "";
	int err;

	mutex_init(&path->lock);
	spin_lock_init(&path->say);
	INIT_WORK(&path->trip_work, trip_work);
	err = mmopt_stats_init(&path->stats);
	if (err)
		return err;
	if (unfit)
		strscpy(why, unfit, sizeof(why));
	else if (!path->ops->probe(path, why, sizeof(why)))
		return 0;
	set_state(path, MMOPT_STATE_unavailable, why);
	pr_info("%s unavailable: %s\n", path->name, why);
	return 0;
}

/**
 * mmopt_path_exit() - take a path down
 * @path: the path, initialised before
 *
 * An armed path holds the module; but there is rmmod --force.
 *
 * Context: sleeps until no task is in the path's functions.
 */
void mmopt_path_exit(struct mmopt_path *path)
{
	char why[MMOPT_REASON_LEN];

	cancel_work_sync(&path->trip_work);
	while (path->held && disarm_hooks(path, why, sizeof(why)))
		msleep(100);
	if (path->held && path->ops->stop)
		path->ops->stop(path);
	if (path->sites)
		mmopt_callsites_exit(path->sites);
	if (path->entry)
		mmopt_drain_exit(&path->entry->drain);
	mmopt_stats_exit(&path->stats);
}
