// SPDX-License-Identifier: GPL-2.0
/*
 * vmalock SECONDS LIMIT: a VMA lock that is not released keeps the next writer
 * of that VMA waiting for ever, in a state that no signal ends, and everyone
 * behind it. Advisers and writers of VMAs work on the same memory; who makes
 * no progress for LIMIT seconds is named, and the program fails.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define PAGES		4096UL
#define ADVISERS	3
#define THREADS		6

static char *arena;
static volatile bool ending;

static struct member {
	pthread_t thread;
	unsigned int random;
	volatile unsigned long rounds;
} members[THREADS];

static unsigned int any(struct member *m, unsigned int below)
{
	m->random = m->random * 1664525 + 1013904223;
	return (m->random >> 8) % below;
}

/* A part of the arena, of at most @most pages. */
static char *part(struct member *m, unsigned int most, size_t *len)
{
	size_t from = any(m, PAGES), pages = 1 + any(m, most);

	if (from + pages > PAGES)
		pages = PAGES - from;
	*len = pages * PAGE;
	return arena + from * PAGE;
}

static void *advise(void *arg)
{
	struct member *m = arg;
	size_t len;
	char *p;

	while (!ending) {
		p = part(m, 256, &len);
		/* a gap, where a writer is at work, is not an error here */
		madvise(p, len, any(m, 2) ? MADV_COLD : MADV_PAGEOUT);
		m->rounds++;
	}
	return NULL;
}

static void change(struct member *m)
{
	size_t len;
	char *p = part(m, 64, &len);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	bool good = true;

	switch (any(m, 7)) {
	case 0:
		mprotect(p, len, PROT_READ);
		mprotect(p, len, PROT_READ | PROT_WRITE);
		break;
	case 1:
		munmap(p, len);
		good = mmap(p, len, PROT_READ | PROT_WRITE, flags, -1, 0) == p;
		break;
	case 2:
		good = mmap(p, len, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, -1, 0) == p;
		break;
	case 3:
		madvise(p, len, MADV_DONTNEED);
		break;
	case 4:
		mlock(p, PAGE);
		munlock(p, PAGE);
		break;
	case 5:
		madvise(p, len, MADV_DONTFORK);
		madvise(p, len, MADV_DOFORK);
		break;
	default:
		/* away and back, through another address */
		if (mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			   arena + PAGES * PAGE) != MAP_FAILED)
			mremap(arena + PAGES * PAGE, PAGE, PAGE,
			       MREMAP_MAYMOVE | MREMAP_FIXED, p);
	}
	if (!good)
		die("a mapping was refused");
}

static void *write_vmas(void *arg)
{
	struct member *m = arg;

	while (!ending) {
		change(m);
		m->rounds++;
	}
	return NULL;
}

static void watch(time_t end, int limit)
{
	unsigned long seen[THREADS] = { 0 };
	int still[THREADS] = { 0 };

	while (time(NULL) < end) {
		sleep(1);
		for (int i = 0; i < THREADS; i++) {
			still[i] = seen[i] == members[i].rounds ? still[i] + 1 : 0;
			seen[i] = members[i].rounds;
			if (still[i] < limit)
				continue;
			printf("STALL: %s %d made no progress for %d s\n",
			       i < ADVISERS ? "adviser" : "writer", i, still[i]);
			fflush(stdout);
			_exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0, limit = argc > 2 ? atoi(argv[2]) : 0;
	unsigned long advised = 0, written = 0;

	if (seconds < 1 || limit < 1) {
		fprintf(stderr, "usage: vmalock SECONDS LIMIT\n");
		return 2;
	}
	/* one page more, as a place to move pages to */
	arena = map_fenced(PAGES + 1);
	memset(arena, 1, PAGES * PAGE);
	if (madvise(arena, PAGES * PAGE, MADV_MERGEABLE))
		die("MADV_MERGEABLE");
	for (int i = 0; i < THREADS; i++) {
		members[i].random = i + 1;
		if (pthread_create(&members[i].thread, NULL,
				   i < ADVISERS ? advise : write_vmas, &members[i]))
			die("cannot make threads");
	}
	watch(time(NULL) + seconds, limit);
	ending = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(members[i].thread, NULL);
		*(i < ADVISERS ? &advised : &written) += members[i].rounds;
	}
	printf("advised %lu written %lu\n", advised, written);
	return 0;
}
