// SPDX-License-Identifier: GPL-2.0
/*
 * Scans while the process goes on: pagemap_race NAME ROUNDS
 *
 *   writes      no write is lost, and none invented, with mappings coming and going
 *   unregister  memory taken out of userfaultfd keeps nothing protected
 *   notify      mmu notifiers that come and go: see mod-notify
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scan.h"

enum { SLOTS = 48, EACH = 32, PAGES = SLOTS * EACH };

static int pagemap, uffd;
static char *area;
static volatile bool stop;
static volatile unsigned long scans;

/* Three kinds of slots, in turn. */
enum kind {
	MINE,	/* written between scans only */
	THEIRS,	/* written by another thread all the time */
	LOOSE,	/* mapped, protected, moved, dropped by another thread */
};

static enum kind kind_of(size_t page)
{
	return page / EACH % 3;
}

static size_t any(unsigned int *seed, size_t n)
{
	return (size_t)rand_r(seed) % n;
}

static volatile uint64_t *word(size_t page)
{
	return (volatile uint64_t *)(area + page * PAGE);
}

static void *write_theirs(void *arg)
{
	unsigned int seed = 1;

	while (!stop) {
		size_t page = any(&seed, PAGES);

		if (kind_of(page) == THEIRS)
			++*word(page);
	}
	return arg;
}

static char *map_slot(char *p)
{
	char *q = mmap(p, EACH * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (q != p || madvise(p, EACH * PAGE, MADV_NOHUGEPAGE))
		die("cannot map");
	return p;
}

static void *change_loose(void *arg)
{
	char *aside = map_fenced(EACH);
	unsigned int seed = 2;

	while (!stop) {
		char *p = area + (any(&seed, SLOTS / 3) * 3 + LOOSE) * EACH * PAGE;

		map_slot(p);
		if (any(&seed, 2) && register_wp(uffd, p, EACH))
			die("cannot register");
		for (size_t i = 0; i < EACH; i += any(&seed, 3) + 1)
			p[i * PAGE] = 1;
		switch (any(&seed, 5)) {
		case 0:
			mprotect(p + PAGE, any(&seed, EACH - 1) * PAGE, PROT_READ);
			break;
		case 1:
			if (mremap(p, EACH * PAGE, EACH * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
				   aside) != aside ||
			    mremap(aside, EACH * PAGE, EACH * PAGE,
				   MREMAP_MAYMOVE | MREMAP_FIXED, p) != p)
				die("cannot move");
			map_slot(aside);
			break;
		case 2:
			madvise(p, EACH * PAGE, MADV_DONTNEED);
			break;
		case 3:
			munmap(p + PAGE, (EACH - 2) * PAGE);
			break;
		}
	}
	return arg;
}

/* Marks the pages that a scan says were written; the length of @vec varies. */
static void scan_area(bool *reported, size_t len)
{
	static struct range vec[PAGES];
	struct scan scan = scan_of(area, PAGES, vec, len);

	scan.flags = WP_MATCHING;
	scan.mask = WRITTEN;
	scan.ret = WRITTEN;
	while (scan.start < scan.end) {
		long n = scan_do(pagemap, &scan);

		if (n < 0)
			die("scan: %ld", n);
		for (long i = 0; i < n; i++)
			for (uint64_t at = vec[i].start; at < vec[i].end; at += PAGE)
				reported[(at - (uintptr_t)area) / PAGE] = true;
		/* Stock says too little of where it ended, if it did. */
		if (n < (long)len)
			break;
		scan.start = scan.walk_end;
	}
	scans++;
}

static void race_writes(unsigned long rounds)
{
	static bool mine[PAGES], reported[PAGES];
	static uint64_t before[PAGES], after[PAGES];
	unsigned long lost = 0, invented = 0, found = 0, concurrent = 0;
	unsigned int seed = 3;
	pthread_t thread[2];

	area = map_fenced(PAGES);
	madvise(area, PAGES * PAGE, MADV_NOHUGEPAGE);
	memset(area, 0, PAGES * PAGE);
	for (size_t slot = 0; slot < SLOTS; slot++)
		if (register_wp(uffd, area + slot * EACH * PAGE, EACH))
			die("cannot register");
	scan_area(reported, PAGES);
	for (size_t i = 0; i < PAGES; i++)
		after[i] = *word(i);
	if (pthread_create(&thread[0], NULL, write_theirs, NULL) ||
	    pthread_create(&thread[1], NULL, change_loose, NULL))
		die("no threads");

	for (unsigned long round = 0; round < rounds; round++) {
		static const size_t lens[] = { 7, 64, 511, PAGES };

		for (size_t i = 0; i < PAGES; i++) {
			reported[i] = false;
			mine[i] = kind_of(i) == MINE && !any(&seed, 4);
			if (mine[i])
				++*word(i);
			if (kind_of(i) == THEIRS)
				before[i] = *word(i);
		}
		scan_area(reported, lens[round % ARRAY_SIZE(lens)]);
		for (size_t i = 0; i < PAGES; i++) {
			if (kind_of(i) == MINE) {
				lost += mine[i] && !reported[i];
				invented += !mine[i] && reported[i];
				found += mine[i] && reported[i];
			} else if (kind_of(i) == THEIRS) {
				lost += before[i] != after[i] && !reported[i];
				concurrent += before[i] != after[i];
				after[i] = *word(i);
			}
		}
	}
	stop = true;
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	printf("rounds %lu, found %lu, concurrent %lu, lost %lu, invented %lu\n",
	       rounds, found, concurrent, lost, invented);
	if (!concurrent)
		die("nobody wrote meanwhile");
}

static void *scan_on(void *arg)
{
	static bool reported[PAGES];

	while (!stop)
		scan_area(reported, PAGES);
	return arg;
}

/* Entries that say they are protected for userfaultfd. */
static size_t protected_pages(void)
{
	static uint64_t entry[PAGES];
	size_t n = 0;

	if (pread(pagemap, entry, sizeof(entry), (uintptr_t)area / PAGE * sizeof(*entry)) !=
	    sizeof(entry))
		die("cannot read pagemap");
	for (size_t i = 0; i < PAGES; i++)
		n += entry[i] >> 57 & 1;
	return n;
}

static void race_unregister(unsigned long rounds)
{
	unsigned long bad = 0, most = 0, was = 0;
	pthread_t thread;

	area = map_fenced(PAGES);
	madvise(area, PAGES * PAGE, MADV_NOHUGEPAGE);
	memset(area, 0, PAGES * PAGE);
	if (pthread_create(&thread, NULL, scan_on, NULL))
		die("no thread");
	for (unsigned long round = 0; round < rounds; round++) {
		unsigned long begin = scans;
		size_t left;

		if (register_wp(uffd, area, PAGES))
			die("cannot register");
		while (scans < begin + 1)
			;
		was += protected_pages() != 0;
		if (unregister_wp(uffd, area, PAGES))
			die("cannot unregister");
		left = protected_pages();
		bad += left != 0;
		most = left > most ? left : most;
	}
	stop = true;
	pthread_join(thread, NULL);
	printf("rounds %lu, protected before %lu, left protected %lu, most pages %lu\n",
	       rounds, was, bad, most);
	if (!was)
		die("nothing was protected");
}

static void race_notify(unsigned long rounds)
{
	int fd = open("/sys/module/mmopt_test_notify/parameters/turns", O_WRONLY);
	pthread_t thread;
	char text[24];
	int len = snprintf(text, sizeof(text), "%lu", rounds);

	area = map_fenced(PAGES);
	madvise(area, PAGES * PAGE, MADV_NOHUGEPAGE);
	memset(area, 0, PAGES * PAGE);
	if (fd < 0 || register_wp(uffd, area, PAGES) ||
	    pthread_create(&thread, NULL, scan_on, NULL) || write(fd, text, len) != len)
		die("cannot watch");
	stop = true;
	pthread_join(thread, NULL);
	printf("scans %lu\n", scans);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 3 ? strtoul(argv[2], NULL, 0) : 0;

	pagemap = open_pagemap(getpid());
	uffd = open_uffd();
	if (rounds && !strcmp(argv[1], "writes"))
		race_writes(rounds);
	else if (rounds && !strcmp(argv[1], "unregister"))
		race_unregister(rounds);
	else if (rounds && !strcmp(argv[1], "notify"))
		race_notify(rounds);
	else
		die("pagemap_race writes|unregister|notify ROUNDS");
	return 0;
}
