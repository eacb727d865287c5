// SPDX-License-Identifier: GPL-2.0
/*
 * A path that is on or observed holds the module: both are ended first. If that
 * cannot be done, what was switched off is put back.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "mmopt.h"

static int refuse_if_held(void)
{
	struct dirent **list;
	int i, n = dir_list(&list, "/sys/module/" MODULE "/holders");
	int rc = RC_OK;

	for (i = 0; i < n; i++) {
		rc = fail(RC_FAILED, EBUSY, "unload", "the module %s uses mmopt, nothing was done",
			  list[i]->d_name);
		fail_info("run 'modprobe -r %s' first", list[i]->d_name);
	}
	dir_free(list, n);
	return rc;
}

/* Without debugfs the parameter does; a module without one, being inert, has nothing on. */
static int parameter_off(void)
{
	int rc, ret = file_write("none", PARAM_ENABLE);

	if (!ret || ret == -ENOENT)
		return RC_OK;
	rc = fail(ret == -EACCES || ret == -EPERM ? RC_DENIED : RC_FAILED, -ret, "unload",
		  "cannot switch the paths off");
	fail_info("run mmopt as root, and see the kernel log (dmesg)");
	return rc;
}

static int path_off(const struct path_list *list, struct path *path)
{
	const char *via;
	int rc = RC_OK;

	if (path_is(path, "unavailable"))
		return RC_OK;
	path->was_on = path_is(path, "on");
	path->was_observed = path_observed(path);
	if (path->was_observed)
		rc = path_observe(path, false);
	if (!rc && !path_is(path, "off"))
		rc = path_switch(list, path, false, &via);
	return rc;
}

static int paths_off(struct path_list *list)
{
	int rc;

	if (control_find() != CONTROL_OK)
		return parameter_off();
	rc = control_lock(LOCK_SH) ? paths_read(list) : control_busy("'mmopt ab'");
	for (size_t i = 0; i < list->n && !rc; i++)
		rc = path_off(list, &list->v[i]);
	return rc;
}

static void paths_restore(struct path_list *list)
{
	const char *via;

	for (size_t i = 0; i < list->n; i++) {
		struct path *path = &list->v[i];

		if (path->was_on && !path_is(path, "on"))
			path_switch(list, path, true, &via);
		if (path->was_observed && !path_observed(path))
			path_observe(path, true);
	}
}

static int remove_core(void)
{
	int rc, ret = module_remove(MODULE);

	if (!ret || ret == -ENOENT)
		return RC_OK;
	rc = fail(ret == -EPERM ? RC_DENIED : RC_FAILED, -ret, "unload",
		  "the paths are off, but the module cannot be removed");
	if (ret == -EPERM)
		fail_info("run mmopt as root, on the host");
	else if (ret == -EAGAIN || ret == -EBUSY)
		fail_info("something has a file of its debugfs folder open: close that, and try again");
	else
		fail_info("see the kernel log (dmesg)");
	return rc;
}

int cmd_unload(struct json_object *doc, int argc, char **argv)
{
	bool loaded = module_loaded(MODULE);
	struct path_list list = { 0 };
	int rc = RC_OK;

	(void)argc;
	(void)argv;
	if (loaded) {
		catch_signals();
		rc = refuse_if_held();
		if (rc)
			return rc;
		rc = paths_off(&list);
		if (rc)
			paths_restore(&list);
		else
			rc = remove_core();
		paths_free(&list);
	}
	if (!rc)
		json_set_bool(doc, "already", !loaded);
	return rc;
}

void print_unload(struct json_object *doc)
{
	if (json_object_object_get_ex(doc, "already", NULL))
		puts(json_flag(doc, "already") ? "mmopt was not loaded" : "mmopt is unloaded");
}
