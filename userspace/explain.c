// SPDX-License-Identifier: GPL-2.0
/* What a path does to the running kernel, as the module tells it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

static const char *mechanism_meaning(const char *name)
{
	static const char *const known[][2] = {
#define X(id, meaning) { #id, meaning },
		MMOPT_MECHANISMS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name, known[i][0]))
			return known[i][1];
	return "";
}

/* "function+0xoffset callee -> replacement" */
static bool parse_site(struct json_object *path, char *text)
{
	struct json_object *site;
	char *plus = strchr(text, '+'), *save, *offset, *calls, *instead;

	if (!plus)
		return false;
	*plus++ = '\0';
	offset = strtok_r(plus, " ", &save);
	calls = strtok_r(NULL, " ", &save);
	instead = strtok_r(NULL, "", &save);
	if (!offset || !calls || !instead || strncmp(instead, "-> ", 3))
		return false;
	site = json_object_new_object();
	json_set(site, "in", "%s", text);
	json_set(site, "offset", "%s", offset);
	json_set(site, "calls", "%s", calls);
	json_set(site, "instead", "%s", instead + 3);
	json_object_array_add(json_object_object_get(path, "sites"), site);
	return true;
}

static bool parse_tunable(struct json_object *path, char *text)
{
	static const char *const keys[] = { "value", "min", "max" };
	struct json_object *tunable = json_object_new_object();
	char *save, *word = strtok_r(text, " ", &save);
	__u64 value;

	json_object_array_add(json_object_object_get(path, "tunables"), tunable);
	json_set(tunable, "name", "%s", word ? word : "");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		word = strtok_r(NULL, " ", &save);
		if (!word || !parse_u64(word, &value))
			return false;
		json_set_u64(tunable, keys[i], value);
	}
	return true;
}

/* What a newer module adds is passed over. */
static bool parse_line(struct json_object *path, char *line)
{
	char *text = strchr(line, ' ');

	if (!text)
		return false;
	*text++ = '\0';
	if (!strcmp(line, MMOPT_KEY_MECHANISM))
		json_set(path, "mechanism", "%s", text);
	else if (!strcmp(line, MMOPT_KEY_SITE))
		return parse_site(path, text);
	else if (!strcmp(line, MMOPT_KEY_BYPASSES))
		json_object_array_add(json_object_object_get(path, "bypasses"),
				      json_new_str(text));
	else if (!strcmp(line, MMOPT_KEY_TUNABLE))
		return parse_tunable(path, text);
	return true;
}

static int explain(struct json_object *obj, const char *name)
{
	char *text = file_slurp("%s/%s/" MMOPT_FILE_EXPLAIN, control_dir(), name), *save, *line;
	bool no_right = !text && (errno == EACCES || errno == EPERM);
	unsigned int number = 0;
	int rc = RC_OK;

	if (!text) {
		rc = fail(no_right ? RC_DENIED : RC_FAILED, errno, name,
			  "cannot read " MMOPT_FILE_EXPLAIN);
		fail_info(no_right ? "run mmopt as root" : VERSIONS_DIFFER);
		return rc;
	}
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		number++;
		if (parse_line(obj, line) || rc)
			continue;
		rc = fail(RC_FAILED, 0, name,
			  MMOPT_FILE_EXPLAIN " line %u is not understood", number);
		fail_info(VERSIONS_DIFFER);
	}
	free(text);
	return rc;
}

int cmd_explain(struct json_object *doc, int argc, char **argv)
{
	struct json_object *paths;
	struct path_list list;
	int rc;

	rc = paths_named(&list, argc, argv);
	if (rc)
		goto out;
	json_set(doc, "release", "%s", host_release());
	paths = json_array(doc, "paths");
	for (size_t i = 0; i < list.n; i++) {
		const struct path *path = &list.v[i];
		struct json_object *obj = json_object_new_object();

		json_set(obj, "path", "%s", path->name);
		json_set(obj, "summary", "%s", path_summary(path->name));
		json_set(obj, "state", "%s", path->state);
		json_set(obj, "reason", "%s", path->reason);
		json_set_bool(obj, "untested", path->untested);
		json_set(obj, "mechanism", "%s", "");
		json_array(obj, "sites");
		json_array(obj, "bypasses");
		json_array(obj, "tunables");
		json_object_array_add(paths, obj);
		rc = rc_first(rc, explain(obj, path->name));
	}
out:
	paths_free(&list);
	return rc;
}

static size_t count_functions(struct json_object *sites)
{
	size_t n = 0;

	for (size_t i = 0; i < json_object_array_length(sites); i++) {
		const char *in = json_str(json_object_array_get_idx(sites, i), "in");
		size_t j = 0;

		while (strcmp(json_str(json_object_array_get_idx(sites, j), "in"), in))
			j++;
		n += i == j;
	}
	return n;
}

static void print_sites(struct json_object *path)
{
	struct json_object *sites = json_object_object_get(path, "sites");
	size_t n = json_object_array_length(sites), functions = count_functions(sites);

	if (!n)
		return;
	if (strcmp(json_str(path, "mechanism"), "entry"))
		printf("  %-11s %zu call%s in %zu function%s\n", "sites", n, n > 1 ? "s" : "",
		       functions, functions > 1 ? "s" : "");
	for (size_t i = 0; i < n; i++) {
		struct json_object *site = json_object_array_get_idx(sites, i);

		printf("  %-11s %s+%s: %s -> %s\n", "", json_str(site, "in"),
		       json_str(site, "offset"), json_str(site, "calls"),
		       json_str(site, "instead"));
	}
}

#define WIDTH	80

static void print_bypasses(struct json_object *list)
{
	size_t n = json_object_array_length(list);
	int column = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));

		if (i && column + (int)strlen(name) + 2 >= WIDTH)
			column = printf("\n") - 1;
		if (!column)
			column = printf("  %-11s", i ? "" : "goes around");
		column += printf(" %s%s", name, i + 1 < n ? "," : "");
	}
	if (n)
		printf("\n");
}

void print_explain(struct json_object *doc)
{
	struct json_object *paths = json_object_object_get(doc, "paths");

	for (size_t i = 0; i < json_object_array_length(paths); i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);
		struct json_object *tunables = json_object_object_get(path, "tunables");
		const char *summary = json_str(path, "summary"), *reason = json_str(path, "reason");
		const char *mechanism = json_str(path, "mechanism");

		printf("%s%s%s%s\n", i ? "\n" : "", json_str(path, "path"),
		       *summary ? ": " : "", summary);
		printf("  %-11s %s%s%s%s\n", "state", json_str(path, "state"),
		       json_flag(path, "untested") ? ", untested on this kernel" : "",
		       *reason ? ": " : "", reason);
		printf("  %-11s %s: %s\n", "mechanism", mechanism, mechanism_meaning(mechanism));
		print_sites(path);
		print_bypasses(json_object_object_get(path, "bypasses"));
		for (size_t j = 0; j < json_object_array_length(tunables); j++) {
			struct json_object *t = json_object_array_get_idx(tunables, j);

			printf("  %-11s %s %llu (%llu to %llu)\n", j ? "" : "tunables",
			       json_str(t, "name"), json_u64(t, "value"),
			       json_u64(t, "min"), json_u64(t, "max"));
		}
	}
}
