// SPDX-License-Identifier: GPL-2.0
/*
 * What a verb says is collected in one document and written at the end: as
 * text on stdout and stderr, or as one JSON object on stdout.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

static struct json_object *doc, *errors, *warnings;
static bool streams;

struct json_object *out_doc(void)
{
	if (!doc)
		doc = json_object_new_object();
	return doc;
}

/*
 * File contents and task names are not ours: keep them from steering a
 * terminal and from making invalid JSON.
 */
struct json_object *json_new_str(const char *text)
{
	struct json_object *obj;
	char *copy = strdup(text), *c;

	if (!copy)
		abort();
	for (c = copy; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?';
	obj = json_object_new_string(copy);
	free(copy);
	return obj;
}

static void json_vset(struct json_object *obj, const char *key, const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		abort();
	json_object_object_add(obj, key, json_new_str(text));
	free(text);
}

void json_set(struct json_object *obj, const char *key, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	json_vset(obj, key, fmt, args);
	va_end(args);
}

void json_set_bool(struct json_object *obj, const char *key, bool value)
{
	json_object_object_add(obj, key, json_object_new_boolean(value));
}

void json_set_u64(struct json_object *obj, const char *key, __u64 value)
{
	json_object_object_add(obj, key, json_object_new_uint64(value));
}

/* As many digits as mean something. JSON has no word for what is no number. */
void json_set_double(struct json_object *obj, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	json_object_object_add(obj, key, isfinite(value) ?
			       json_object_new_double_s(value, text) : NULL);
}

/* The empty string if there is no such member. */
const char *json_str(struct json_object *obj, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(obj, key, &value))
		return "";
	return json_object_get_string(value);
}

double json_double(struct json_object *obj, const char *key)
{
	return json_object_get_double(json_object_object_get(obj, key));
}

__u64 json_u64(struct json_object *obj, const char *key)
{
	return json_object_get_uint64(json_object_object_get(obj, key));
}

bool json_flag(struct json_object *obj, const char *key)
{
	return json_object_get_boolean(json_object_object_get(obj, key));
}

struct json_object *json_array(struct json_object *obj, const char *key)
{
	struct json_object *array = json_object_new_array();

	json_object_object_add(obj, key, array);
	return array;
}

static struct json_object *add_message(struct json_object **list, const char *where,
				       const char *fmt, va_list args)
{
	struct json_object *message = json_object_new_object();

	if (!*list)
		*list = json_object_new_array();
	json_set(message, "where", "%s", *where ? where : "''");
	json_vset(message, "what", fmt, args);
	json_object_array_add(*list, message);
	return message;
}

/* Records an error and returns @rc. @err is an errno, or 0 where none tells more. */
int fail(int rc, int err, const char *where, const char *fmt, ...)
{
	struct json_object *message;
	va_list args;

	va_start(args, fmt);
	message = add_message(&errors, where, fmt, args);
	va_end(args);
	if (err) {
		const char *name = strerrorname_np(err);

		json_set(message, "errno", "%s", name ? name : "?");
		json_set(message, "meaning", "%s", strerror(err));
	}
	json_object_object_add(message, "rc", json_object_new_int(rc));
	return rc;
}

/* Says what to do about the error that was recorded last. */
void fail_info(const char *fmt, ...)
{
	size_t n = errors ? json_object_array_length(errors) : 0;
	va_list args;

	if (!n)
		return;
	va_start(args, fmt);
	json_vset(json_object_array_get_idx(errors, n - 1), "hint", fmt, args);
	va_end(args);
}

/* For who finds that what failed has another reason. */
void fail_forget(void)
{
	json_object_put(errors);
	errors = NULL;
}

/* Once, however often it is found anew. */
void out_warn(const char *where, const char *fmt, ...)
{
	struct json_object *message;
	size_t n = warnings ? json_object_array_length(warnings) : 0;
	va_list args;

	va_start(args, fmt);
	message = add_message(&warnings, where, fmt, args);
	va_end(args);
	for (size_t i = 0; i < n; i++) {
		if (!json_object_equal(json_object_array_get_idx(warnings, i), message))
			continue;
		json_object_array_del_idx(warnings, n, 1);
		break;
	}
}

static int json_flags(void)
{
	return JSON_C_TO_STRING_NOSLASHESCAPE |
		(opts.pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : 0);
}

/*
 * For verbs that go on: writes what there is to say now, one object a line with
 * --json. Takes @obj over. The document at the end then has only messages.
 */
int out_now(struct json_object *obj, void (*print)(struct json_object *obj))
{
	streams = true;
	if (opts.json)
		puts(json_object_to_json_string_ext(obj, json_flags()));
	else
		print(obj);
	json_object_put(obj);
	return fflush(stdout) || ferror(stdout) ? RC_FAILED : RC_OK;
}

/* For somebody who waits at a terminal; not part of the result. */
void progress(const char *fmt, ...)
{
	va_list args;

	if (opts.json)
		return;
	fputs("mmopt: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

int rc_first(int a, int b)
{
	return a ? a : b;
}

static void print_messages(struct json_object *list, const char *kind)
{
	size_t i, n = list ? json_object_array_length(list) : 0;

	for (i = 0; i < n; i++) {
		struct json_object *m = json_object_array_get_idx(list, i);
		const char *meaning = json_str(m, "meaning"), *todo = json_str(m, "hint");

		fprintf(stderr, "mmopt: %s%s: %s%s%s%s%s\n", kind, json_str(m, "where"),
			json_str(m, "what"), *meaning ? ": " : "", meaning,
			*todo ? "; " : "", todo);
	}
}

int out_finish(const struct command *cmd, int rc)
{
	if (opts.json) {
		if (warnings)
			json_object_object_add(out_doc(), "warnings", json_object_get(warnings));
		if (errors)
			json_object_object_add(out_doc(), "errors", json_object_get(errors));
		if (!streams || warnings || errors)
			puts(json_object_to_json_string_ext(out_doc(), json_flags()));
	} else if (cmd && doc && json_object_object_length(doc)) {
		cmd->print(doc);
	}

	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "mmopt: stdout: cannot write: %s\n", strerror(errno));
		rc = rc_first(rc, RC_FAILED);
	}
	if (!opts.json) {
		print_messages(warnings, "warning: ");
		print_messages(errors, "");
	}
	json_object_put(doc);
	json_object_put(errors);
	json_object_put(warnings);
	return rc;
}
