// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ksm.h"

#define SYSFS		"/sys/kernel/mm/ksm/"
#define LONG_SLEEP	3600000	/* ms */
#define PATIENCE_NS	60000000000ULL
#define WORDS		(PAGE / sizeof(uint64_t))

long ksm_get(const char *file)
{
	char path[128];
	long value;
	FILE *f;

	snprintf(path, sizeof(path), SYSFS "%s", file);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%ld", &value) != 1)
		die("cannot read %s", path);
	fclose(f);
	return value;
}

void ksm_set(const char *file, long value)
{
	char path[128], text[24];
	int n = snprintf(text, sizeof(text), "%ld", value), fd;

	snprintf(path, sizeof(path), SYSFS "%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, n) != n)
		die("cannot write %s to %s", text, path);
	close(fd);
}

long ksm_stat(const char *key)
{
	FILE *f = fopen("/proc/self/ksm_stat", "re");
	char name[64], text[32];
	long value = -1;

	if (!f)
		die("no /proc/self/ksm_stat");
	while (value < 0 && fscanf(f, "%63s %31s", name, text) == 2)
		if (!strcmp(name, key))
			value = strtol(text, NULL, 10);
	fclose(f);
	return value;
}

static pid_t ksmd(void)
{
	static pid_t pid;
	DIR *proc;
	struct dirent *entry;
	char path[300], name[16] = "";
	FILE *f;

	if (pid)
		return pid;
	proc = opendir("/proc");
	if (!proc)
		die("no /proc");
	while (!pid && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = strspn(entry->d_name, "0123456789") ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%15s", name) == 1 && !strcmp(name, "ksmd"))
			pid = atoi(entry->d_name);
		fclose(f);
	}
	closedir(proc);
	if (!pid)
		die("no ksmd");
	return pid;
}

static bool ksmd_sleeps(void)
{
	char path[64], state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", ksmd());
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*d (ksmd) %c", &state) != 1)
		die("cannot read %s", path);
	fclose(f);
	return state == 'S' || state == 'I';
}

/*
 * Asleep between scans: whoever writes "run" gets the mutex that ksmd holds in a
 * scan, and behind that it sleeps interruptibly only where it waits for the next.
 */
static void wait_for_ksmd(void)
{
	uint64_t end = now_ns() + PATIENCE_NS;

	ksm_set("run", ksm_get("run"));
	while (!ksmd_sleeps()) {
		if (now_ns() > end)
			die("ksmd does not come to rest");
		usleep(200);
	}
}

/* Ends the sleep between scans, if it sleeps there. */
static void wake_ksmd(void)
{
	ksm_set("sleep_millisecs", LONG_SLEEP + (ksm_get("sleep_millisecs") == LONG_SLEEP));
}

/* It then waits for another "run", not for the time of the next scan. */
void ksm_reset(void)
{
	ksm_set("pages_to_scan", 10000000);
	ksm_set("run", 0);
	ksm_set("run", 2);
	wait_for_ksmd();
	wake_ksmd();
	wait_for_ksmd();
	if (ksm_get("pages_shared"))
		die("%ld pages are still shared", ksm_get("pages_shared"));
}

/* One batch is a full scan. */
void ksm_scan(unsigned int n)
{
	uint64_t end = now_ns() + PATIENCE_NS;
	long before;

	while (n--) {
		before = ksm_get("full_scans");
		if (ksm_get("run") == 1)
			wake_ksmd();
		else
			ksm_set("run", 1);
		while (ksm_get("full_scans") == before) {
			if (now_ns() > end)
				die("no full scan in time");
			usleep(200);
		}
		wait_for_ksmd();
	}
}

static uint64_t word_of(size_t page, enum kind kind, unsigned int tag)
{
	uint64_t n = kind == IDENTICAL ? 0 : kind == PAIRS ? page / 2 : page;

	return kind == ZERO ? 0 : ((uint64_t)tag << 32 | n) * 0x9e3779b97f4a7c15ULL + 1;
}

void ksm_fill(char *p, size_t pages, enum kind kind, unsigned int tag)
{
	for (size_t i = 0; i < pages; i++) {
		volatile uint64_t *word = (uint64_t *)(p + i * PAGE);

		for (size_t j = 0; j < WORDS; j++)
			word[j] = word_of(i, kind, tag);
	}
}

bool ksm_holds(const char *p, size_t page, enum kind kind, unsigned int tag)
{
	const volatile uint64_t *word = (const uint64_t *)(p + page * PAGE);

	for (size_t j = 0; j < WORDS; j++)
		if (word[j] != word_of(page, kind, tag))
			return false;
	return true;
}

bool ksm_intact(const char *p, size_t pages, enum kind kind, unsigned int tag)
{
	for (size_t i = 0; i < pages; i++)
		if (!ksm_holds(p, i, kind, tag))
			return false;
	return true;
}

/* KPF_KSM of kpageflags would be it, but 6.12 sets that for all anonymous pages. */
size_t ksm_pages(const void *p, size_t pages)
{
	return smaps_kb("KSM", p, pages * PAGE) * 1024 / PAGE;
}
