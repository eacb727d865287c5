// SPDX-License-Identifier: GPL-2.0
/*
 * Whatever the bytes, the reader of mmopt.conf refuses them with sentences, or
 * accepts them and what it says then can be acted on.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static unsigned int told, lines;

static void on_error(void *arg, unsigned int line, const char *what, const char *hint)
{
	(void)arg;
	told++;
	if (line > lines || !*what || !*hint || strpbrk(what, "\n\r") || strlen(what) > 255)
		abort();
}

static unsigned int count_lines(const char *text, size_t len)
{
	unsigned int n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* a copy of its own, so that a byte too far is seen */
	char *text = malloc(len ? len : 1);
	unsigned int errors;
	struct conf conf;

	if (!text)
		abort();
	memcpy(text, data, len);
	told = 0;
	lines = count_lines(text, len);
	errors = conf_parse(&conf, text, len, on_error, NULL);
	if (errors != told)
		abort();
	if (!errors && (!conf.enable_line || conf.enable_line > lines ||
			conf.untested_line > lines))
		abort();
	for (size_t i = 0; !errors && i < conf_tunables_count; i++)
		if (conf.tunable_line[i] && (conf.tunable[i] < conf_tunables[i].min ||
					     conf.tunable[i] > conf_tunables[i].max))
			abort();
	free(text);
	return 0;
}
