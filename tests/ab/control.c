// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mmopt/abi.h>

#include "ab.h"

#define DEBUGFS		"/sys/kernel/debug/" MMOPT_DIR
#define SYSFS_MODULE	"/sys/module/mmopt"
#define SWITCH_MS	30000	/* a livepatch waits for every task */

/* MMOPT names another command to use instead of the installed one. */
static int mmopt(const char *verb, const char *arg)
{
	const char *command = getenv("MMOPT");
	char *const argv[] = { (char *)(command ? command : "mmopt"),
			       (char *)verb, (char *)arg, NULL };

	if (!ab_exec(argv))
		return 0;
	ab_error("\"mmopt %s%s%s\" failed", verb, arg ? " " : "", arg ? arg : "");
	return -1;
}

static FILE *open_file(const char *path, const char *name)
{
	char file[256];
	FILE *f;

	snprintf(file, sizeof(file), DEBUGFS "/%s/%s", path, name);
	f = fopen(file, "re");
	if (!f)
		ab_error("%s: %s", file, strerror(errno));
	return f;
}

static int read_state(const char *path, char *line, int size)
{
	FILE *f = open_file(path, MMOPT_FILE_STATE);
	char *ok;

	if (!f)
		return -1;
	ok = fgets(line, size, f);
	fclose(f);
	if (!ok) {
		ab_error("%s: no state", path);
		return -1;
	}
	line[strcspn(line, "\n")] = 0;
	return 0;
}

/* The first word of a state, which a reason or a remark may follow. */
static bool state_is(const char *line, const char *state)
{
	size_t len = strlen(state);

	return !strncmp(line, state, len) && (!line[len] || strchr(": ", line[len]));
}

bool ab_loaded(void)
{
	return !access(SYSFS_MODULE, F_OK);
}

int ab_load(void)
{
	return ab_loaded() ? 0 : mmopt("load", NULL);
}

int ab_unload(void)
{
	if (!ab_loaded())
		return 0;
	if (mmopt("unload", NULL))
		return -1;
	if (!ab_loaded())
		return 0;
	ab_error("\"mmopt unload\" succeeded, but the module is still loaded");
	return -1;
}

static int wait_state(const char *path, const char *state)
{
	uint64_t end = ab_now() + SWITCH_MS * 1000000ULL;
	char line[AB_REASON_LEN];

	for (;;) {
		if (read_state(path, line, sizeof(line)))
			return -1;
		if (state_is(line, state))
			return 0;
		if (ab_now() > end)
			break;
		ab_sleep_ms(20);
	}
	ab_error("%s is \"%s\", not \"%s\"", path, line, state);
	return -1;
}

int ab_set_mode(const char *path, enum ab_mode mode)
{
	bool on = mode == AB_on;

	if (mode == AB_stock || mode == AB_limit)
		return ab_unload();
	if (ab_load() || mmopt(on ? "enable" : "disable", path))
		return -1;
	return wait_state(path, on ? "on" : "off");
}

/* 1 if the path can be switched on here, 0 and the reason if not. */
int ab_available(const char *path, char *why)
{
	char line[AB_REASON_LEN];
	const char *reason;

	if (read_state(path, line, sizeof(line)))
		return -1;
	if (!state_is(line, "unavailable"))
		return 1;
	reason = strchr(line, ':');
	reason = reason ? reason + 1 + strspn(reason + 1, " ") : "no reason given";
	snprintf(why, AB_REASON_LEN, "%s", reason);
	return 0;
}

/* A path that has tripped during the measurement ran stock code. */
int ab_still_on(const char *path)
{
	char line[AB_REASON_LEN];

	if (read_state(path, line, sizeof(line)))
		return -1;
	if (state_is(line, "on"))
		return 0;
	ab_error("%s did not stay on: %s", path, line);
	return -1;
}

static bool is_counter(const char *key)
{
	return strcmp(key, MMOPT_KEY_VERSION) &&
	       strncmp(key, MMOPT_PREFIX_TAKEN_NS, strlen(MMOPT_PREFIX_TAKEN_NS)) &&
	       strncmp(key, MMOPT_PREFIX_STOCK_NS, strlen(MMOPT_PREFIX_STOCK_NS));
}

int ab_counters_read(const char *path, struct ab_counters *c)
{
	FILE *f = open_file(path, MMOPT_FILE_STATS);
	unsigned long long value;
	char line[128], key[48];

	c->n = 0;
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f) && c->n < AB_COUNTERS_MAX) {
		if (sscanf(line, "%47[^: ]%*[: ]%llu", key, &value) != 2 || !is_counter(key))
			continue;
		memcpy(c->c[c->n].key, key, sizeof(key));
		c->c[c->n++].value = value;
	}
	fclose(f);
	if (c->n)
		return 0;
	ab_error("%s: no counters in \"%s\"", path, MMOPT_FILE_STATS);
	return -1;
}

unsigned long long ab_counter(const struct ab_counters *c, const char *key)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->c[i].key, key))
			return c->c[i].value;
	return 0;
}

void ab_counters_add_delta(struct ab_counters *sum, const struct ab_counters *before,
			   const struct ab_counters *after)
{
	for (size_t i = 0; i < after->n; i++) {
		const char *key = after->c[i].key;
		size_t at = 0;

		while (at < sum->n && strcmp(sum->c[at].key, key))
			at++;
		if (at == sum->n) {
			memcpy(sum->c[at].key, key, sizeof(sum->c[at].key));
			sum->c[sum->n++].value = 0;
		}
		sum->c[at].value += after->c[i].value - ab_counter(before, key);
	}
}
