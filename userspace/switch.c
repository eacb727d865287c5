// SPDX-License-Identifier: GPL-2.0
/* One path, on or off, and what to say if it does not do as it is told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mmopt.h"

bool path_is(const struct path *path, const char *state)
{
	return !strcmp(path->state, state);
}

/*
 * Lockdown closes every debugfs file that can be written; the module parameter
 * stays open. It takes the whole set of paths that shall be on.
 */
static int write_parameter(const struct path_list *all, const struct path *path, bool on)
{
	char set[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < all->n && len < sizeof(set); i++) {
		const struct path *other = &all->v[i];

		if (other == path ? on : path_is(other, "on"))
			len += (size_t)snprintf(set + len, sizeof(set) - len, "%s%s",
						len ? "," : "", other->name);
	}
	return file_write(len ? set : "none", PARAM_ENABLE);
}

static int denied(const struct path *path, int err, bool locked)
{
	int rc;

	if (!locked) {
		rc = fail(RC_DENIED, err, path->name, "cannot be switched");
		fail_info("run mmopt as root");
		return rc;
	}
	rc = fail(RC_LOCKDOWN, err, path->name,
		  "cannot be switched: neither debugfs nor the module parameter can be written%s%s",
		  *host_lockdown() ? ", lockdown is " : "", host_lockdown());
	fail_info("set the paths at load: 'options mmopt enable=%s' in /etc/modprobe.d",
		  path->name);
	return rc;
}

/* The module, not lockdown, says EPERM on a kernel that nobody has tested. */
bool path_held_back(const struct path *path)
{
	char allowed[8];

	if (!path->untested)
		return false;
	file_line(allowed, sizeof(allowed), PARAM_UNTESTED);
	return allowed[0] != 'Y' && allowed[0] != '1';
}

/* Calls are still in the path, and the wait for them was given up. */
static int still_draining(const struct path *path)
{
	struct json_object *tasks = json_array(out_doc(), "inside");
	char names[1024];
	int rc;

	tasks_inside(tasks);
	tasks_name(names, sizeof(names), tasks);
	if (interrupted)
		rc = fail(RC_STALLED, EINTR, path->name, "calls are still under way, in %s", names);
	else
		rc = fail(RC_STALLED, ETIMEDOUT, path->name,
			  "calls are still under way after %u s, in %s", opts.timeout_s, names);
	fail_info("new calls run stock code already; 'mmopt disable %s' waits again", path->name);
	return rc;
}

static int refused(struct path *path, bool on, int err)
{
	int rc;

	if (path_state(path))
		path->reason[0] = '\0';
	if (err == EINTR && !on && path_is(path, "draining"))
		return still_draining(path);
	rc = fail(err == EOPNOTSUPP ? RC_UNAVAILABLE : err == EBUSY ? RC_OWNED : RC_FAILED,
		  err, path->name, "cannot %s%s%s", on ? "enable" : "disable",
		  *path->reason ? ", " : "", path->reason);
	switch (err) {
	case EOPNOTSUPP:
		fail_info("this path does not fit this kernel; the others are not affected");
		break;
	case EPERM:
		fail_info("this kernel is untested: write 1 to " PARAM_UNTESTED " to try it");
		break;
	case EIO:
		fail_info("'mmopt disable %s' acknowledges that; see the kernel log first (dmesg)",
			  path->name);
		break;
	case EBUSY:
		fail_info("another livepatch or probe may own a function: see 'mmopt check'");
		break;
	case EINTR:
		fail_info("the path is being switched by somebody else: try again");
		break;
	case ENOENT:
		fail_info("the module has no such switch: see 'mmopt version'");
		break;
	default:
		fail_info("see the kernel log (dmesg)");
	}
	return rc;
}

/* The switch was taken; is the path what it should be? */
static int confirm(struct path *path, bool on)
{
	int ret = path_state(path), rc;

	if (ret) {
		rc = fail(RC_FAILED, -ret, path->name, "switched, but its state cannot be read");
		fail_info("run 'mmopt status', and see the kernel log (dmesg)");
		return rc;
	}
	if (path_is(path, on ? "on" : "off"))
		return RC_OK;
	rc = fail(RC_FAILED, 0, path->name, "should be %s, but is %s%s%s", on ? "on" : "off",
		  path->state, *path->reason ? ": " : "", path->reason);
	fail_info("see the kernel log (dmesg)");
	return rc;
}

int path_switch(const struct path_list *all, struct path *path, bool on, const char **via)
{
	bool locked = false;
	int ret;

	*via = "debugfs";
	timer_start(opts.timeout_s);
	ret = file_write(on ? "1" : "0", "%s/%s/" MMOPT_FILE_ENABLED, control_dir(), path->name);
	if (ret == -EPERM && !path_held_back(path)) {
		locked = true;
		*via = "parameter";
		ret = write_parameter(all, path, on);
	}
	timer_stop();
	if (ret == -EACCES || (ret == -EPERM && locked))
		return denied(path, -ret, locked);
	if (ret)
		return refused(path, on, -ret);
	return confirm(path, on);
}

bool path_observed(const struct path *path)
{
	char value[8];

	return !file_line(value, sizeof(value), "%s/%s/" MMOPT_FILE_OBSERVE, control_dir(),
			  path->name) && value[0] == '1';
}

int path_observe(struct path *path, bool on)
{
	int rc, ret;

	timer_start(opts.timeout_s);
	ret = file_write(on ? "1" : "0", "%s/%s/" MMOPT_FILE_OBSERVE, control_dir(), path->name);
	timer_stop();
	if (!ret)
		return RC_OK;
	if (ret == -EINTR && !on)
		return still_draining(path);
	rc = fail(ret == -EACCES ? RC_DENIED : ret == -EPERM ? RC_LOCKDOWN :
		  ret == -EBUSY ? RC_OWNED : ret == -EOPNOTSUPP ? RC_UNAVAILABLE : RC_FAILED,
		  -ret, path->name, "cannot %s observing it", on ? "start" : "stop");
	if (ret == -EBUSY)
		fail_info("another livepatch or probe may own a function: see 'mmopt check'");
	else
		fail_info("run mmopt as root, and see the kernel log (dmesg)");
	return rc;
}
