// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define STATES_MAX	256

void die(const char *format, ...)
{
	int err = errno;
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (errno: %s)\n", strerrorname_np(err) ?: "none");
	exit(2);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

void pin(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot stay on one CPU");
}

long status_kb(pid_t pid, const char *field)
{
	size_t len = strlen(field);
	char line[256], path[64];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (!f)
		die("cannot read status");
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && line[len] == ':')
			kb = atol(line + len + 1);
	fclose(f);
	return kb;
}

static int fail_file(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("no /proc/self/fail-nth");
	return fd;
}

void fail_nth(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(fail_file(), text, len, 0) != len)
		die("cannot write fail-nth");
}

bool has_failed(void)
{
	char text[16] = "";

	if (pread(fail_file(), text, sizeof(text) - 1, 0) <= 0)
		die("cannot read fail-nth");
	return !atoi(text);
}

char *map_fenced(size_t pages)
{
	char *p = mmap(NULL, (pages + 2) * PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, pages * PAGE, PROT_READ | PROT_WRITE))
		die("cannot map %zu pages", pages);
	return p + PAGE;
}

void unmap_fenced(char *p, size_t pages)
{
	if (munmap(p - PAGE, (pages + 2) * PAGE))
		die("cannot unmap %zu pages", pages);
}

static uint64_t word(size_t page)
{
	return (page + 1) * 0x9e3779b97f4a7c15ULL;
}

void fill(char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		memset(p + i * PAGE, (int)(i & 0x7f) + 1, PAGE);
		*(uint64_t *)(p + i * PAGE) = word(i);
	}
}

bool intact(const char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		const uint64_t *w = (const uint64_t *)(p + i * PAGE);
		uint64_t rest = 0x0101010101010101ULL * ((i & 0x7f) + 1);

		if (w[0] != word(i))
			return false;
		for (size_t j = 1; j < PAGE / sizeof(*w); j++)
			if (w[j] != rest)
				return false;
	}
	return true;
}

const char *page_states(const void *p, size_t pages)
{
	return page_states_of(getpid(), p, pages);
}

const char *page_states_of(pid_t pid, const void *p, size_t pages)
{
	static char states[STATES_MAX + 1];
	uint64_t entry[STATES_MAX];
	ssize_t want = pages * sizeof(entry[0]);
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY);
	if (pages > STATES_MAX || fd < 0 ||
	    pread(fd, entry, want, (uintptr_t)p / PAGE * sizeof(entry[0])) != want)
		die("cannot read the page map");
	close(fd);
	for (size_t i = 0; i < pages; i++)
		states[i] = entry[i] >> 63 & 1 ? 'p' : entry[i] >> 62 & 1 ? 's' : '.';
	states[pages] = '\0';
	return states;
}

const char *cached(void *p, size_t pages)
{
	static char states[STATES_MAX + 1];
	unsigned char resident[STATES_MAX];

	if (pages > STATES_MAX || mincore(p, pages * PAGE, resident))
		die("mincore");
	for (size_t i = 0; i < pages; i++)
		states[i] = resident[i] & 1 ? 'r' : '-';
	states[pages] = '\0';
	return states;
}

long smaps_kb(const char *field, const void *p, size_t len)
{
	unsigned long from = (unsigned long)p, to = from + len, start, end;
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512], key[64];
	bool inside = false;
	long kb, sum = 0;

	if (!f)
		die("cannot read smaps");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start < to && end > from;
		else if (inside && sscanf(line, "%63[^:]: %ld", key, &kb) == 2 &&
			 !strcmp(key, field))
			sum += kb;
	}
	fclose(f);
	return sum;
}

const char *outcome(long ret)
{
	static char number[24];

	if (ret < 0)
		return strerrorname_np(errno) ?: "?";
	if (!ret)
		return "ok";
	snprintf(number, sizeof(number), "%ld", ret);
	return number;
}
