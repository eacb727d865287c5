// SPDX-License-Identifier: GPL-2.0
/*
 * mremap_fail KIND LAYOUT: the same move over and over, while the kernel lets the
 * first, second, ... allocation of the call fail, until there are no more. Wherever
 * the call gives up, the memory must be in one place and whole.
 *
 * LAYOUT: aligned, congruent or unaligned, as page tables see it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mremap.h"

#define TABLES		12UL
#define LEN		(TABLES * HUGE)
#define PAGES		(LEN / PAGE)
#define STEP		101	/* a few pages of each table */

static bool whole(const char *p)
{
	for (size_t i = 0; i < PAGES; i += STEP)
		if (!tagged_one(p + i * PAGE, i))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	size_t from_shift = 0, to_shift = 0;
	int refused = 0, survived = 0;
	enum kind kind;

	if (argc != 3) {
		fprintf(stderr, "usage: mremap_fail KIND LAYOUT\n");
		return 2;
	}
	kind = kind_of(argv[1]);
	if (!strcmp(argv[2], "congruent"))
		from_shift = to_shift = 3 * PAGE;
	else if (!strcmp(argv[2], "unaligned"))
		to_shift = 5 * PAGE;
	else if (strcmp(argv[2], "aligned"))
		die("no such layout");

	for (unsigned int n = 1;; n++) {
		char *from = window(0) + HUGE + from_shift;
		char *to = window(1) + 2 * HUGE + to_shift, *p;
		bool last;
		int err;

		map_at(from, LEN, kind);
		for (size_t i = 0; i < PAGES; i += STEP)
			tag_one(from + i * PAGE, i);
		fail_nth(n);
		p = mremap(from, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		err = errno;
		last = !has_failed();
		fail_nth(0);
		if (p == MAP_FAILED && err != ENOMEM)
			die("allocation %u: mremap", n);
		if (!whole(p == MAP_FAILED ? from : to)) {
			printf("DAMAGED: allocation %u\n", n);
			return 1;
		}
		/* a move that cannot unmap its source leaves it there, empty */
		unmap(from, LEN);
		unmap(to, LEN);
		if (last)
			break;
		if (p == MAP_FAILED)
			refused++;
		else
			survived++;
	}
	printf("%s %s: refused %d survived %d\nintact\n", argv[1], argv[2], refused,
	       survived);
	return 0;
}
