// SPDX-License-Identifier: GPL-2.0
/*
 * swapback MIB ROUNDS: a database that evicts what it has spilled and reads it
 * again later. Each round prints how much of the memory was swapped out, in
 * percent, and whether it came back as it was.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

static long vmswap_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	if (!f)
		die("cannot read status");
	while (kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmSwap: %ld", &kb);
	fclose(f);
	return kb;
}

int main(int argc, char **argv)
{
	size_t pages = argc > 1 ? strtoul(argv[1], NULL, 10) << 8 : 0;
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	bool good = true;
	char *p;

	if (!pages || rounds < 1) {
		fprintf(stderr, "usage: swapback MIB ROUNDS\n");
		return 2;
	}
	p = map_fenced(pages);
	fill(p, pages);
	for (int round = 1; round <= rounds; round++) {
		long kb;
		bool same;

		if (madvise(p, pages * PAGE, MADV_PAGEOUT))
			die("MADV_PAGEOUT");
		kb = vmswap_kb();
		same = intact(p, pages);
		printf("round %d swapped %ld %s\n", round, kb * 100 / (long)(pages * 4),
		       same ? "intact" : "DAMAGED");
		fflush(stdout);
		good &= same;
	}
	return !good;
}
