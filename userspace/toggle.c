// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "mmopt.h"

void toggle_result(struct json_object *results, const struct path *path,
		   const char *result, const char *via)
{
	struct json_object *entry = json_object_new_object();

	json_set(entry, "path", "%s", path->name);
	json_set(entry, "result", "%s", result);
	json_set(entry, "state", "%s", path->state);
	json_set(entry, "reason", "%s", path->reason);
	if (via)
		json_set(entry, "via", "%s", via);
	json_object_array_add(results, entry);
}

/* A signal ends what is not begun yet, and nobody shall take the rest for done. */
int not_reached(const struct path *path)
{
	int rc = fail(RC_FAILED, EINTR, path->name, "was not reached");

	fail_info("the same command again does the rest");
	return rc;
}

static bool named(const char *name, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return false;
}

/* What is closed for one path is closed for all. */
static bool denied(int rc)
{
	return rc == RC_DENIED || rc == RC_LOCKDOWN;
}

static int switch_all(struct json_object *results, struct path_list *list, bool on,
		      bool all, int argc, char **argv)
{
	unsigned int done = 0;
	int rc = RC_OK;

	for (size_t i = 0; i < list->n && !denied(rc); i++) {
		struct path *path = &list->v[i];
		const char *via = NULL;
		int one;

		if (!all && !named(path->name, argc, argv))
			continue;
		if (path_is(path, "unavailable") && (all || !on)) {
			toggle_result(results, path, "skipped", NULL);
			continue;
		}
		if (interrupted) {
			rc = rc_first(rc, not_reached(path));
			break;
		}
		one = path_switch(list, path, on, &via);
		toggle_result(results, path, one ? "failed" : on ? "on" : "off", via);
		rc = denied(one) ? one : rc_first(rc, one);
		done++;
	}
	if (all && on && !done && !rc) {
		rc = fail(RC_UNAVAILABLE, 0, "enable", "no path is available on this kernel");
		fail_info("'mmopt status' tells why");
	}
	return rc;
}

static int toggle(struct json_object *doc, bool on, int argc, char **argv)
{
	bool all = named("all", argc, argv), ours;
	struct path_list list;
	int rc;

	if (!argc) {
		rc = fail(RC_USAGE, 0, on ? "enable" : "disable", "no path given");
		fail_info("name one or more paths, or 'all'");
		return rc;
	}
	rc = control_open();
	if (rc)
		return rc;
	ours = control_lock(LOCK_SH);
	if (on && !ours)
		return control_busy("'mmopt ab'");
	catch_signals();
	rc = paths_read(&list);
	if (!rc && !all)
		rc = paths_check_names(&list, argc, argv);
	if (!rc)
		rc = switch_all(json_array(doc, "paths"), &list, on, all, argc, argv);
	paths_free(&list);
	/* Nobody who wants stock code has to wait for it, but it may not stay. */
	if (!rc && !ours) {
		rc = fail(RC_FAILED, EBUSY, "ab",
			  "'mmopt ab' is at work, and may switch a path on again");
		fail_info("end it, and disable again");
	}
	return rc;
}

int cmd_enable(struct json_object *doc, int argc, char **argv)
{
	return toggle(doc, true, argc, argv);
}

int cmd_disable(struct json_object *doc, int argc, char **argv)
{
	return toggle(doc, false, argc, argv);
}

void print_toggle(struct json_object *doc)
{
	struct json_object *paths = json_object_object_get(doc, "paths");
	size_t i, n = json_object_array_length(paths);

	for (i = 0; i < n; i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);
		const char *result = json_str(path, "result"), *reason = json_str(path, "reason");

		if (!strcmp(result, "failed"))
			continue;	/* the error says more */
		printf("%s: %s", json_str(path, "path"), result);
		if (!strcmp(result, "skipped") || !strcmp(result, "unchanged"))
			printf(", %s%s%s", json_str(path, "state"), *reason ? ": " : "", reason);
		if (!strcmp(json_str(path, "via"), "parameter"))
			printf(" (through the module parameter, as lockdown closes debugfs)");
		putchar('\n');
	}
}
