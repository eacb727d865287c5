// SPDX-License-Identifier: GPL-2.0
/*
 * Does this host fit, and if not, what is there to do? Asked before anything
 * is loaded, so nothing here needs the module.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

static const char *const verdicts[] = {
	[CHECK_OK] = "ok",
	[CHECK_NOTE] = "note",
	[CHECK_PROBLEM] = "problem",
};

static struct json_object *items;
static unsigned int problems;

static struct json_object *last_item(void)
{
	return json_object_array_get_idx(items, json_object_array_length(items) - 1);
}

static void vset(struct json_object *obj, const char *key, const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		abort();
	json_set(obj, key, "%s", text);
	free(text);
}

void check_item(enum verdict verdict, const char *name, const char *fmt, ...)
{
	struct json_object *item = json_object_new_object();
	va_list args;

	json_set(item, "check", "%s", name);
	json_set(item, "result", "%s", verdicts[verdict]);
	va_start(args, fmt);
	vset(item, "found", fmt, args);
	va_end(args);
	json_object_array_add(items, item);
	problems += verdict == CHECK_PROBLEM;
}

/* Says what to do about the item that was added last. */
void check_info(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vset(last_item(), "advice", fmt, args);
	va_end(args);
}

int cmd_check(struct json_object *doc, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	json_set(doc, "release", "%s", host_release());
	items = json_array(doc, "checks");
	check_kernel();
	check_policy();
	check_rivals();
	json_set_u64(doc, "problems", problems);
	json_set_bool(doc, "fits", !problems);
	return problems ? RC_FAILED : RC_OK;
}

void print_check(struct json_object *doc)
{
	size_t i, n = json_object_array_length(items);

	for (i = 0; i < n; i++) {
		struct json_object *item = json_object_array_get_idx(items, i);
		const char *advice = json_str(item, "advice");

		printf("%-8s %-32s %s\n", json_str(item, "result"), json_str(item, "check"),
		       json_str(item, "found"));
		if (*advice)
			printf("%-8s   -> %s\n", "", advice);
	}
	if (problems)
		printf("Linux %s on this host: %u problem%s\n", json_str(doc, "release"),
		       problems, problems > 1 ? "s" : "");
	else
		printf("Linux %s on this host fits\n", json_str(doc, "release"));
}
