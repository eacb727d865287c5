// SPDX-License-Identifier: GPL-2.0
/* The reader of mmopt.conf: what it makes of a file, and where its edges are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conf.h"

static struct conf conf;
static char said[4096];

static void on_error(void *arg, unsigned int line, const char *what, const char *hint)
{
	size_t len = strlen(said);

	assert_ptr_equal(arg, said);
	assert_string_not_equal(hint, "");
	snprintf(said + len, sizeof(said) - len, "%u: %s\n", line, what);
}

/* From memory that ends where the text does. */
static unsigned int parse(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	unsigned int errors;

	assert_non_null(copy);
	memcpy(copy, text, len);
	said[0] = '\0';
	errors = conf_parse(&conf, copy, len, on_error, said);
	free(copy);
	return errors;
}

#define assert_says(text, errors, what) do { \
	assert_int_equal(parse(text, strlen(text)), errors); \
	assert_string_equal(said, what); \
} while (0)

static void test_everything(void **state)
{
	size_t batch = 0;

	(void)state;
	while (strcmp(conf_tunables[batch].name, "batch_bytes"))
		batch++;
	assert_says("# c\n\n \t\nenable=mremap , madvise\nallow_untested = yes\n"
		    "  mremap.batch_bytes\t= 4194304\t\n", 0, "");
	assert_int_equal(conf.enable_line, 4);
	assert_true(conf.on[CONF_mremap] && conf.on[CONF_madvise]);
	assert_false(conf.all);
	assert_int_equal(conf.untested_line, 5);
	assert_true(conf.allow_untested);
	assert_int_equal(conf.tunable_line[batch], 6);
	assert_int_equal(conf.tunable[batch], 4194304);
}

static void test_what_is_left_out(void **state)
{
	(void)state;
	assert_says("enable = none", 0, "");
	assert_int_equal(conf.untested_line, 0);
	for (size_t i = 0; i < conf_tunables_count; i++)
		assert_int_equal(conf.tunable_line[i], 0);
	for (int i = 0; i < CONF_PATHS; i++)
		assert_false(conf.on[i]);
	assert_says("enable = all\n", 0, "");
	assert_true(conf.all);
	assert_says("", 1, "0: there is no line 'enable = ...'\n");
	assert_says("\n\n", 1, "0: there is no line 'enable = ...'\n");
}

static void test_each_path_and_tunable(void **state)
{
	char text[256];

	(void)state;
	for (int i = 0; i < CONF_PATHS; i++) {
		snprintf(text, sizeof(text), "enable = %s", conf_paths[i]);
		assert_says(text, 0, "");
		for (int j = 0; j < CONF_PATHS; j++)
			assert_int_equal(conf.on[j], i == j);
	}
	for (size_t i = 0; i < conf_tunables_count; i++) {
		const struct conf_tunable *t = &conf_tunables[i];

		for (int max = 0; max < 2; max++) {
			snprintf(text, sizeof(text), "enable=none\n%s.%s=%llu", t->path, t->name,
				 max ? t->max : t->min);
			assert_says(text, 0, "");
			assert_int_equal(conf.tunable[i], max ? t->max : t->min);
			snprintf(text, sizeof(text), "enable=none\n%s.%s=%llu", t->path, t->name,
				 max ? t->max + 1 : t->min - 1);
			assert_int_equal(parse(text, strlen(text)), 1);
		}
	}
}

static void test_length_of_a_line(void **state)
{
	char text[CONF_LINE_MAX + 32] = "enable = none\n#";

	(void)state;
	memset(text + 15, 'x', CONF_LINE_MAX - 1);
	assert_says(text, 0, "");
	text[14 + CONF_LINE_MAX] = 'x';
	assert_says(text, 1, "2: the line is longer than 1000 characters\n");
}

static void test_bytes(void **state)
{
	static const char nul[] = "enable = none\n# \0\n";
	char text[32], want[64];

	(void)state;
	assert_int_equal(parse(nul, sizeof(nul) - 1), 1);
	assert_string_equal(said, "2: character 0x00 is not allowed here\n");
	for (unsigned int c = 1; c < 256; c++) {
		if (c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f))
			continue;
		snprintf(text, sizeof(text), "enable=none\n#%c", c);
		snprintf(want, sizeof(want), "2: character 0x%02x is not allowed here\n", c);
		assert_says(text, c < 0x80, c < 0x80 ? want : "");
		snprintf(text, sizeof(text), "enable=none\n%c#", c);
		assert_says(text, 1, want);
	}
}

static void test_a_long_word_is_cut_in_its_message(void **state)
{
	char text[CONF_LINE_MAX + 1];

	(void)state;
	memset(text, 'x', CONF_LINE_MAX);
	text[CONF_LINE_MAX] = '\0';
	assert_int_equal(parse(text, CONF_LINE_MAX), 2);
	assert_in_range(strlen(said), 255, 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_what_is_left_out),
		cmocka_unit_test(test_each_path_and_tunable),
		cmocka_unit_test(test_length_of_a_line),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_a_long_word_is_cut_in_its_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
