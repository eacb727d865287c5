// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters, and "nommopt" on the kernel command line. "enable" is a
 * second switch for hosts whose lockdown closes debugfs to writers.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "ksym.h"
#include "params.h"
#include "path.h"

static bool allow_untested;
module_param(allow_untested, bool, 0644);
MODULE_PARM_DESC(allow_untested, "let paths be switched on although this kernel series is not in the test suite (default: no)");

/* Paths wanted on by the parameter, before the module is live. */
static unsigned long wanted_at_load;
static bool live;
static DEFINE_MUTEX(enable_lock);

/**
 * mmopt_untested() - is arming forbidden, this kernel being untested?
 */
bool mmopt_untested(void)
{
	return !MMOPT_KERNEL_TESTED && !READ_ONCE(allow_untested);
}

/**
 * mmopt_inert() - was mmopt told at boot to keep its hands off?
 *
 * Looks for the whole word "nommopt" on the kernel command line.
 */
bool mmopt_inert(void)
{
	const char *const *line = (const char *const *)mmopt_ksym("saved_command_line");
	static const char word[] = "nommopt";
	const char *at;

	/* When in doubt, yes. */
	if (!line)
		return true;
	for (at = *line; (at = strstr(at, word)); at++) {
		char before = at == *line ? ' ' : at[-1];
		char after = at[sizeof(word) - 1];

		if (before == ' ' && (after == ' ' || after == '\n' || !after))
			return true;
	}
	return false;
}

/*
 * A comma list of paths, "all" or "none", perhaps with a newline at the end, as a
 * set of indices into mmopt_paths.
 */
static int parse_paths(const char *val, unsigned long *set)
{
	size_t left = strlen(val), len;
	struct mmopt_path *path, *found;
	unsigned int i;

	if (left && val[left - 1] == '\n')
		left--;
	*set = 0;
	if (left == 4 && !strncmp(val, "none", 4))
		return 0;
	if (left == 3 && !strncmp(val, "all", 3)) {
		*set = ~0UL;
		return 0;
	}
	for (;;) {
		len = strcspn(val, ",\n");
		found = mmopt_path_find(val, len);
		if (!found)
			return -EINVAL;
		mmopt_for_each_path(path, i)
			if (path == found)
				*set |= BIT(i);
		if (len == left)
			return 0;
		if (val[len] != ',')
			return -EINVAL;
		val += len + 1;
		left -= len + 1;
	}
}

/*
 * Switches exactly the paths of @set on; all are tried, the first error wins.
 * "all" means those that are available.
 */
static int apply(unsigned long set)
{
	struct mmopt_path *path;
	unsigned int i;
	int err, first = 0;

	mmopt_for_each_path(path, i) {
		err = mmopt_path_enable(path, set & BIT(i));
		if (set == ~0UL && err == -EOPNOTSUPP)
			err = 0;
		if (!first)
			first = err;
	}
	return first;
}

static int enable_set(const char *val, const struct kernel_param *kp)
{
	unsigned long set;
	int err;

	err = parse_paths(val, &set);
	if (err)
		return err;
	/* Switching can take long, and nobody shall wait for it unkillably. */
	kernel_param_unlock(THIS_MODULE);
	err = mutex_lock_interruptible(&enable_lock);
	if (!err) {
		wanted_at_load = live ? 0 : set;
		if (live)
			err = apply(set);
		mutex_unlock(&enable_lock);
	}
	kernel_param_lock(THIS_MODULE);
	return err;
}

static int enable_get(char *buf, const struct kernel_param *kp)
{
	struct mmopt_path *path;
	unsigned int i;
	int n = 0;

	mmopt_for_each_path(path, i)
		if (READ_ONCE(path->enabled))
			n += scnprintf(buf + n, PAGE_SIZE - n, "%s%s",
				       n ? "," : "", path->name);
	return n + scnprintf(buf + n, PAGE_SIZE - n, "%s\n", n ? "" : "none");
}

static const struct kernel_param_ops enable_ops = {
	.set = enable_set,
	.get = enable_get,
};

module_param_cb(enable, &enable_ops, NULL, 0644);
MODULE_PARM_DESC(enable, "paths to switch on, separated by commas, or all or none; every other path is switched off (default: none)");

/* Unless somebody has asked for something else since. */
static void enable_at_load_fn(struct work_struct *work)
{
	mutex_lock(&enable_lock);
	if (live && wanted_at_load)
		apply(wanted_at_load);
	wanted_at_load = 0;
	mutex_unlock(&enable_lock);
}

static DECLARE_WORK(enable_at_load, enable_at_load_fn);

/**
 * mmopt_params_live() - the paths can be switched from now on
 *
 * What "enable" asked for at load is done by a worker: an armed path holds the
 * module, which must be live for that.
 */
void mmopt_params_live(void)
{
	mutex_lock(&enable_lock);
	live = true;
	if (wanted_at_load)
		schedule_work(&enable_at_load);
	mutex_unlock(&enable_lock);
}

/**
 * mmopt_params_exit() - no switching by parameter any more
 */
void mmopt_params_exit(void)
{
	mutex_lock(&enable_lock);
	live = false;
	mutex_unlock(&enable_lock);
	cancel_work_sync(&enable_at_load);
}
