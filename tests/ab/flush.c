// SPDX-License-Identifier: GPL-2.0
/* How often the kernel does something for a thread, by its own trace events. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ab.h"

#define INSTANCE	"/sys/kernel/tracing/instances/mmopt-ab"
/* TLB_LOCAL_MM_SHOOTDOWN: once for each flush, on the CPU that asks for it. */
#define FILTER		"reason == 3"

static bool write_file(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static double count(void)
{
	unsigned long long n, sum = 0;
	char name[128], line[128];
	FILE *f;

	for (int cpu = 0; ; cpu++) {
		snprintf(name, sizeof(name), INSTANCE "/per_cpu/cpu%d/stats", cpu);
		f = fopen(name, "re");
		if (!f)
			break;
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "entries: %llu", &n) == 1 ||
			    sscanf(line, "overrun: %llu", &n) == 1)
				sum += n;
		fclose(f);
	}
	return sum;
}

/* Events of thread @tid while fn() runs; NAN where they cannot be counted. */
int ab_count_events(const char *event, const char *filter, pid_t tid,
		    int (*fn)(void *arg), void *arg, double *n)
{
	char text[16], file[2][192];
	bool ok;
	int err;

	*n = NAN;
	rmdir(INSTANCE);
	snprintf(text, sizeof(text), "%d", tid);
	snprintf(file[0], sizeof(file[0]), INSTANCE "/events/%s/filter", event);
	snprintf(file[1], sizeof(file[1]), INSTANCE "/events/%s/enable", event);
	ok = !mkdir(INSTANCE, 0700) && write_file(INSTANCE "/set_event_pid", text) &&
	     write_file(file[0], filter) && write_file(file[1], "1");
	err = fn(arg);
	ok = ok && write_file(file[1], "0");
	if (ok && !err)
		*n = count();
	rmdir(INSTANCE);
	return err;
}

/* Flushes that this thread asks for while fn() runs. */
int ab_count_flushes(int (*fn)(void *arg), void *arg, double *flushes)
{
	return ab_count_events("tlb/tlb_flush", FILTER, gettid(), fn, arg, flushes);
}
