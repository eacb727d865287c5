/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_CONF_H
#define MMOPT_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include <mmopt/abi.h>

#include "compiler.h"

#define CONF_FILE		"/etc/mmopt.conf"
#define CONF_LINE_MAX		1000

enum conf_path {
#define X(id, summary) CONF_##id,
	MMOPT_PATHS(X)
#undef X
	CONF_PATHS
};

struct conf_tunable {
	const char *path;
	const char *name;
	unsigned long long min;
	unsigned long long max;
};

extern const char *const conf_paths[CONF_PATHS];
extern const struct conf_tunable conf_tunables[];
extern const size_t conf_tunables_count;

#define CONF_TUNABLES_MAX	32

/* What a file says; a line number is 0 where it does not say it. */
struct conf {
	unsigned int enable_line;
	bool all;
	bool on[CONF_PATHS];
	unsigned int untested_line;
	bool allow_untested;
	unsigned int tunable_line[CONF_TUNABLES_MAX];
	unsigned long long tunable[CONF_TUNABLES_MAX];
};

/* Told of each error: @line is 0 if it is none of a line's. */
typedef void (*conf_error_fn)(void *arg, unsigned int line, const char *what, const char *hint);

unsigned int conf_parse(struct conf *conf, const char *text, size_t len,
			conf_error_fn error, void *arg);

#endif /* MMOPT_CONF_H */
