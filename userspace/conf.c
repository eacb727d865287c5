// SPDX-License-Identifier: GPL-2.0
/*
 * Reads mmopt.conf(5). Strict, as what a file means must not depend on what was
 * mistyped in it: every line is understood, or the whole file is refused.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conf.h"

#define BLANKS		" \t"
#define NAME_CHARS	"abcdefghijklmnopqrstuvwxyz0123456789_"

const char *const conf_paths[CONF_PATHS] = {
#define X(id, summary) #id,
	MMOPT_PATHS(X)
#undef X
};

const struct conf_tunable conf_tunables[] = {
#define X(id, min, max, what) { "copy", #id, min, max },
	MMOPT_COPY_TUNABLES(X)
#undef X
#define X(id, min, max, what) { "mremap", #id, min, max },
	MMOPT_MREMAP_TUNABLES(X)
#undef X
#define X(id, min, max, what) { "pagemap", #id, min, max },
	MMOPT_PAGEMAP_TUNABLES(X)
#undef X
};

const size_t conf_tunables_count = ARRAY_SIZE(conf_tunables);
static_assert(ARRAY_SIZE(conf_tunables) <= CONF_TUNABLES_MAX, "raise CONF_TUNABLES_MAX");

struct parser {
	struct conf *conf;
	conf_error_fn error;
	void *arg;
	unsigned int line;
	unsigned int errors;
};

__printf(3, 4)
static void refuse(struct parser *p, const char *hint, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	p->errors++;
	p->error(p->arg, p->line, what, hint);
}

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len && strchr(BLANKS, text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

/* Each key once; remembers where it was. */
static bool again(struct parser *p, const char *key, unsigned int *line)
{
	if (*line) {
		refuse(p, "remove one of the two", "'%s' was set before, on line %u", key, *line);
		return true;
	}
	*line = p->line;
	return false;
}

static int find_path(const char *name)
{
	for (int i = 0; i < CONF_PATHS; i++)
		if (!strcmp(conf_paths[i], name))
			return i;
	return -1;
}

static void one_path(struct parser *p, const char *name)
{
	static char known[512];
	int i = find_path(name);

	if (i >= 0 && !p->conf->on[i]) {
		p->conf->on[i] = true;
		return;
	}
	if (i >= 0) {
		refuse(p, "remove one of the two", "the path '%s' is listed twice", name);
		return;
	}
	if (!known[0])
		for (i = 0; i < CONF_PATHS; i++)
			snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
				 i ? ", " : "write all, none or: ", conf_paths[i]);
	refuse(p, known, "no such path: '%s'", name);
}

/* "all", "none", or paths with commas between them. */
static void set_enable(struct parser *p, char *value)
{
	char *name;

	if (again(p, "enable", &p->conf->enable_line))
		return;
	p->conf->all = !strcmp(value, "all");
	if (p->conf->all || !strcmp(value, "none"))
		return;
	while ((name = strsep(&value, ",")))
		one_path(p, trim(name));
}

static void set_untested(struct parser *p, const char *value)
{
	if (again(p, "allow_untested", &p->conf->untested_line))
		return;
	p->conf->allow_untested = !strcmp(value, "yes");
	if (!p->conf->allow_untested && strcmp(value, "no"))
		refuse(p, "write yes or no", "'%s' is neither yes nor no", value);
}

/* Decimal digits and nothing else. */
static bool parse_number(const char *text, unsigned long long *value)
{
	*value = 0;
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9' ||
		    __builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (unsigned int)(*c - '0'), value))
			return false;
	}
	return *text;
}

static void set_tunable(struct parser *p, size_t i, const char *key, const char *value)
{
	const struct conf_tunable *tunable = &conf_tunables[i];
	unsigned long long number;
	char hint[128];

	if (again(p, key, &p->conf->tunable_line[i]))
		return;
	if (parse_number(value, &number) && number >= tunable->min && number <= tunable->max) {
		p->conf->tunable[i] = number;
		return;
	}
	snprintf(hint, sizeof(hint), "write a whole number from %llu to %llu",
		 tunable->min, tunable->max);
	refuse(p, hint, "'%s' is no value of '%s'", value, key);
}

/* "path.tunable" */
static void set_other(struct parser *p, const char *key, const char *value)
{
	for (size_t i = 0; i < conf_tunables_count; i++) {
		size_t len = strlen(conf_tunables[i].path);

		if (!strncmp(key, conf_tunables[i].path, len) && key[len] == '.' &&
		    !strcmp(key + len + 1, conf_tunables[i].name)) {
			set_tunable(p, i, key, value);
			return;
		}
	}
	refuse(p, "mmopt.conf(5) lists the keys", "unknown key '%s'", key);
}

static void parse_setting(struct parser *p, char *text)
{
	char *value = strchr(text, '='), *key;

	if (!value) {
		refuse(p, "write KEY = VALUE, or begin a comment with #", "not a setting: '%s'",
		       text);
		return;
	}
	*value++ = '\0';
	key = trim(text);
	value = trim(value);
	if (!*key || key[strspn(key, NAME_CHARS ".")])
		refuse(p, "mmopt.conf(5) lists the keys", "'%s' is no key", key);
	else if (!strcmp(key, "enable"))
		set_enable(p, value);
	else if (!strcmp(key, "allow_untested"))
		set_untested(p, value);
	else
		set_other(p, key, value);
}

/* Comments may be in any language; what is read is ASCII. */
static bool is_text(struct parser *p, const char *line, size_t len)
{
	bool comment = line[strspn(line, BLANKS)] == '#';

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)line[i];

		if (c == '\t' || (c >= ' ' && c < 0x7f) || (c >= 0x80 && comment))
			continue;
		refuse(p, c == '\r' ? "end lines as Unix does, without a carriage return" :
		       "write plain text", "character 0x%02x is not allowed here", c);
		return false;
	}
	return true;
}

static void parse_line(struct parser *p, const char *from, size_t len)
{
	char line[CONF_LINE_MAX + 1], *text;

	if (len > CONF_LINE_MAX) {
		refuse(p, "break it up, or shorten it", "the line is longer than %u characters",
		       CONF_LINE_MAX);
		return;
	}
	memcpy(line, from, len);
	line[len] = '\0';
	if (!is_text(p, line, len))
		return;
	text = trim(line);
	if (*text && *text != '#')
		parse_setting(p, text);
}

/**
 * conf_parse() - read a whole file
 * @conf: what it says; only of use if there is no error
 * @text: @len bytes, which may be any
 *
 * Returns the number of errors, each of which @error has been told.
 */
unsigned int conf_parse(struct conf *conf, const char *text, size_t len,
			conf_error_fn error, void *arg)
{
	struct parser p = { .conf = conf, .error = error, .arg = arg };
	const char *end = text + len;

	memset(conf, 0, sizeof(*conf));
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		p.line++;
		parse_line(&p, text, (size_t)(stop - text));
		text = newline ? newline + 1 : end;
	}
	p.line = 0;
	if (!conf->enable_line)
		refuse(&p, "write 'enable = none' if no path shall be on",
		       "there is no line 'enable = ...'");
	return p.errors;
}
