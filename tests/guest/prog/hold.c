// SPDX-License-Identifier: GPL-2.0
/*
 * hold MIB: a process and its child hold memory of which each has written half,
 * so that they share the rest, and print a checksum of all of it on SIGUSR1, or
 * write each 16th page on SIGUSR2. SIGTERM ends one of them. For whoever saves and restores processes: nothing is
 * open but what the caller gives as standard input, output and error.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

static uint64_t checksum(const uint64_t *words, size_t n)
{
	uint64_t sum = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ words[i]) * 0x100000001b3ULL;
	return sum;
}

/* A page that the other one had too becomes one's own. */
static void write_half(char *half, size_t pages, uint64_t tag)
{
	for (size_t i = 0; i < pages; i++)
		*(uint64_t *)(half + i * PAGE) ^= tag;
}

int main(int argc, char **argv)
{
	size_t pages = argc == 2 ? strtoul(argv[1], NULL, 10) * (HUGE / 2 / PAGE) : 0;
	const char *who;
	sigset_t set;
	char *p;
	int sig;

	if (!pages) {
		fprintf(stderr, "usage: hold MIB\n");
		return 2;
	}
	if (close_range(3, ~0U, 0))
		die("close_range");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p = map_fenced(pages);
	if (madvise(p, pages * PAGE, MADV_NOHUGEPAGE))
		die("MADV_NOHUGEPAGE");
	fill(p, pages);
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		who = "child";
		write_half(p, pages / 2, 1);
		break;
	default:
		who = "parent";
		write_half(p + pages / 2 * PAGE, pages - pages / 2, 2);
	}
	printf("%s %d\n", who, getpid());
	fflush(stdout);
	while (!sigwait(&set, &sig) && sig != SIGTERM) {
		if (sig == SIGUSR2) {
			for (size_t i = 0; i < pages; i += 16)
				write_half(p + i * PAGE, 1, 4);
			printf("%s wrote %zu\n", who, (pages + 15) / 16);
		} else {
			printf("%s holds %016" PRIx64 "\n", who,
			       checksum((uint64_t *)p, pages * PAGE / sizeof(uint64_t)));
		}
		fflush(stdout);
	}
	return 0;
}
