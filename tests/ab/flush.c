// SPDX-License-Identifier: GPL-2.0
/* How often the kernel flushes the TLB for a thread, by its own trace event. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ab.h"

#define INSTANCE	"/sys/kernel/tracing/instances/mmopt-ab"
#define EVENT		INSTANCE "/events/tlb/tlb_flush"
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

/* Flushes while fn() runs in this thread; NAN where they cannot be counted. */
int ab_count_flushes(int (*fn)(void *arg), void *arg, double *flushes)
{
	char tid[16];
	bool ok;
	int err;

	*flushes = NAN;
	rmdir(INSTANCE);
	snprintf(tid, sizeof(tid), "%d", gettid());
	ok = !mkdir(INSTANCE, 0700) && write_file(INSTANCE "/set_event_pid", tid) &&
	     write_file(EVENT "/filter", FILTER) && write_file(EVENT "/enable", "1");
	err = fn(arg);
	ok = ok && write_file(EVENT "/enable", "0");
	if (ok && !err)
		*flushes = count();
	rmdir(INSTANCE);
	return err;
}
