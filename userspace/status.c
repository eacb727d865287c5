// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "mmopt.h"

static void read_version(char *version, size_t size)
{
	if (file_line(version, size, "%s/" MMOPT_FILE_VERSION, control_dir()))
		file_line(version, size, "/sys/module/" MODULE "/version");
}

int cmd_status(struct json_object *doc, int argc, char **argv)
{
	struct json_object *paths;
	struct path_list list;
	char version[64];
	int rc;

	(void)argc;
	(void)argv;
	rc = control_open();
	if (rc)
		return rc;
	rc = paths_read(&list);
	if (rc)
		goto out;

	read_version(version, sizeof(version));
	json_set(doc, "version", "%s", version);
	json_set(doc, "release", "%s", host_release());
	if (strcmp(version, MMOPT_VERSION))
		out_warn(MODULE,
			 "the module is version %s, this tool is version %s: update the older one",
			 *version ? version : "unknown", MMOPT_VERSION);

	paths = json_array(doc, "paths");
	for (size_t i = 0; i < list.n; i++) {
		struct json_object *path = json_object_new_object();

		json_set(path, "path", "%s", list.v[i].name);
		json_set(path, "state", "%s", list.v[i].state);
		json_set_bool(path, "untested", list.v[i].untested);
		json_set(path, "reason", "%s", list.v[i].reason);
		json_set(path, "summary", "%s", path_summary(list.v[i].name));
		json_object_array_add(paths, path);
	}
out:
	paths_free(&list);
	return rc;
}

void print_status(struct json_object *doc)
{
	struct json_object *paths = json_object_object_get(doc, "paths");
	size_t i, n = json_object_array_length(paths);

	printf("mmopt %s on Linux %s\n", json_str(doc, "version"), json_str(doc, "release"));
	for (i = 0; i < n; i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);
		const char *reason = json_str(path, "reason");

		printf("%-10s %s%s%s%s\n", json_str(path, "path"), json_str(path, "state"),
		       json_flag(path, "untested") ? ", untested on this kernel" : "",
		       *reason ? ": " : "", reason);
	}
}
