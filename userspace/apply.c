// SPDX-License-Identifier: GPL-2.0
/* Makes the host as mmopt.conf(5) says, and leaves alone what is so already. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "conf.h"
#include "mmopt.h"

/* Is anything not as it was? For whoever runs this again and again. */
static bool changed;

static void on_error(void *arg, unsigned int line, const char *what, const char *hint)
{
	const char *file = arg;
	char where[PATH_MAX + 16];

	if (line)
		snprintf(where, sizeof(where), "%s:%u", file, line);
	else
		snprintf(where, sizeof(where), "%s", file);
	fail(RC_USAGE, 0, where, "%s", what);
	fail_info("%s; nothing was done", hint);
}

static int read_conf(struct conf *conf, const char *file)
{
	char *text = file ? file_slurp_named(file) : file_slurp(CONF_FILE);
	unsigned int errors;
	int rc;

	if (!file)
		file = CONF_FILE;
	if (!text) {
		rc = fail(errno == EACCES ? RC_DENIED : RC_FAILED, errno, file, "cannot be read");
		fail_info("mmopt.conf(5) tells what to write there");
		return rc;
	}
	errors = conf_parse(conf, text, strlen(text), on_error, (char *)file);
	free(text);
	return errors ? RC_USAGE : RC_OK;
}

static bool wants(const struct conf *conf, const char *path)
{
	for (int i = 0; i < CONF_PATHS; i++)
		if (!strcmp(conf_paths[i], path))
			return conf->all || conf->on[i];
	return false;
}

static bool wants_any(const struct conf *conf)
{
	for (int i = 0; i < CONF_PATHS; i++)
		if (wants(conf, conf_paths[i]))
			return true;
	return false;
}

/* What modprobe.d may say of "enable" is not to be done behind our back. */
static int ensure_loaded(const struct conf *conf)
{
	char none[] = "enable=none", *params[] = { none };

	if (module_loaded(MODULE))
		return RC_OK;
	opts.allow_untested = conf->allow_untested;
	changed = true;
	return load_module(1, params);
}

static int set_untested(const struct conf *conf)
{
	char now[8];
	int rc, ret;

	if (!conf->untested_line)
		return RC_OK;
	ret = file_line(now, sizeof(now), PARAM_UNTESTED);
	if (!ret && (now[0] == 'Y') == conf->allow_untested)
		return RC_OK;
	changed = true;
	if (!ret)
		ret = file_write(conf->allow_untested ? "Y" : "N", PARAM_UNTESTED);
	if (!ret)
		return RC_OK;
	rc = fail(ret == -EACCES || ret == -EPERM ? RC_DENIED : RC_FAILED, -ret,
		  "allow_untested", "cannot be set");
	fail_info("run mmopt as root, and see the kernel log (dmesg)");
	return rc;
}

static int set_tunable(struct json_object *results, const struct conf_tunable *tunable,
		       unsigned long long value)
{
	struct json_object *entry = json_object_new_object();
	char name[128], now[32], text[32];
	int rc = RC_OK, ret;

	snprintf(name, sizeof(name), "%s.%s", tunable->path, tunable->name);
	snprintf(text, sizeof(text), "%llu", value);
	json_set(entry, "tunable", "%s", name);
	json_set_u64(entry, "value", value);
	json_object_array_add(results, entry);

	ret = file_line(now, sizeof(now), "%s/%s/%s", control_dir(), tunable->path, tunable->name);
	if (!ret && !strcmp(now, text)) {
		json_set(entry, "result", "unchanged");
		return RC_OK;
	}
	changed = true;
	if (!ret)
		ret = file_write(text, "%s/%s/%s", control_dir(), tunable->path, tunable->name);
	json_set(entry, "result", "%s", ret ? "failed" : "set");
	if (!ret)
		return RC_OK;

	rc = fail(ret == -EACCES ? RC_DENIED : ret == -EPERM ? RC_LOCKDOWN : RC_FAILED, -ret, name,
		  "cannot be set to %llu", value);
	if (ret == -EPERM)
		fail_info("lockdown closes debugfs: leave it out of the file to use the path as it is");
	else if (ret == -ENOENT)
		fail_info(VERSIONS_DIFFER);
	else
		fail_info("run mmopt as root, and see the kernel log (dmesg)");
	return rc;
}

static int set_tunables(struct json_object *results, const struct conf *conf,
			const struct path *path)
{
	int rc = RC_OK;

	for (size_t i = 0; i < conf_tunables_count; i++)
		if (conf->tunable_line[i] && !strcmp(conf_tunables[i].path, path->name))
			rc = rc_first(rc, set_tunable(results, &conf_tunables[i],
						      conf->tunable[i]));
	return rc;
}

/*
 * A path that is off for a reason of its own is not written to if it shall be
 * off: that would acknowledge what nobody has read.
 */
static bool is_so(const struct path *path, bool on)
{
	return path_is(path, on ? "on" : "off") ||
	       (!on && (path_is(path, "unavailable") || path_is(path, "tripped")));
}

static int apply_path(struct json_object *doc, const struct conf *conf,
		      const struct path_list *list, struct path *path)
{
	struct json_object *results = json_object_object_get(doc, "paths");
	bool on = wants(conf, path->name);
	const char *via = NULL;
	int rc;

	if (conf->all && path_is(path, "unavailable")) {
		toggle_result(results, path, "skipped", NULL);
		return RC_OK;
	}
	/* Not with a number that the file does not want. */
	rc = set_tunables(json_object_object_get(doc, "tunables"), conf, path);
	if (on && rc) {
		toggle_result(results, path, "failed", NULL);
		return rc;
	}
	if (is_so(path, on)) {
		toggle_result(results, path, "unchanged", NULL);
		return rc;
	}
	changed = true;
	rc = rc_first(rc, path_switch(list, path, on, &via));
	toggle_result(results, path, rc ? "failed" : on ? "on" : "off", via);
	return rc;
}

/* A file may be right, and the module another one than it was written for. */
static int check_names(const struct conf *conf, const struct path_list *list)
{
	int rc = RC_OK;

	for (int i = 0; i < CONF_PATHS; i++) {
		if (!conf->on[i] || paths_find(list, conf_paths[i]))
			continue;
		rc = fail(RC_FAILED, 0, conf_paths[i], "the module has no such path");
		fail_info(VERSIONS_DIFFER);
	}
	return rc;
}

static int apply_paths(struct json_object *doc, const struct conf *conf, struct path_list *list)
{
	int rc;

	rc = check_names(conf, list);
	if (!rc)
		rc = set_untested(conf);
	if (rc)
		return rc;
	json_array(doc, "tunables");
	json_array(doc, "paths");
	for (size_t i = 0; i < list->n; i++) {
		if (interrupted) {
			rc = rc_first(rc, not_reached(&list->v[i]));
			break;
		}
		rc = rc_first(rc, apply_path(doc, conf, list, &list->v[i]));
	}
	return rc;
}

static int apply(struct json_object *doc, const struct conf *conf)
{
	struct path_list list;
	int rc;

	rc = ensure_loaded(conf);
	if (!rc)
		rc = control_open();
	if (!rc && !control_lock(LOCK_SH))
		rc = control_busy("'mmopt ab'");
	if (rc)
		return rc;
	catch_signals();
	rc = paths_read(&list);
	if (!rc)
		rc = apply_paths(doc, conf, &list);
	paths_free(&list);
	return rc;
}

static void add_wanted(struct json_object *doc, const struct conf *conf)
{
	struct json_object *enable = json_array(doc, "enable");

	for (int i = 0; i < CONF_PATHS; i++)
		if (wants(conf, conf_paths[i]))
			json_object_array_add(enable, json_object_new_string(conf_paths[i]));
}

int cmd_apply(struct json_object *doc, int argc, char **argv)
{
	const char *file = argc ? argv[0] : NULL;
	struct conf conf;
	int rc;

	rc = read_conf(&conf, file);
	if (rc)
		return rc;
	json_set(doc, "file", "%s", file ? file : CONF_FILE);
	json_set_bool(doc, "checked_only", opts.check);
	json_set_bool(doc, "changed", false);
	add_wanted(doc, &conf);
	/* A module that is not there has every path off. */
	json_set_bool(doc, "needless", !wants_any(&conf) && !module_loaded(MODULE));
	if (opts.check || json_flag(doc, "needless"))
		return RC_OK;
	rc = apply(doc, &conf);
	json_set_bool(doc, "changed", changed);
	return rc;
}

static void print_tunables(struct json_object *tunables)
{
	size_t i, n = json_object_array_length(tunables);

	for (i = 0; i < n; i++) {
		struct json_object *entry = json_object_array_get_idx(tunables, i);

		if (strcmp(json_str(entry, "result"), "failed"))
			printf("%s: %llu, %s\n", json_str(entry, "tunable"),
			       json_u64(entry, "value"), json_str(entry, "result"));
	}
}

void print_apply(struct json_object *doc)
{
	struct json_object *tunables;

	if (json_flag(doc, "checked_only")) {
		printf("%s is right\n", json_str(doc, "file"));
	} else if (json_object_object_get_ex(doc, "tunables", &tunables)) {
		print_tunables(tunables);
		print_toggle(doc);
	} else if (json_flag(doc, "needless")) {
		printf("%s wants no path, and mmopt is not loaded\n", json_str(doc, "file"));
	}
}
