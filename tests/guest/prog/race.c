// SPDX-License-Identifier: GPL-2.0
/*
 * race SECONDS: fork, exec and exit while threads of both parent and child give
 * advice. Children check the memory that they share with the parent.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define PAGES		32UL
#define ADVISERS	2

enum { EXIT_BUSY, EXIT_QUIET, EXEC, KILLED, WAYS };

static char *arena;
static volatile bool ending;

static void *advise(void *arg)
{
	unsigned long i;

	for (i = 0; !ending; i++)
		if (madvise(arena, PAGES * PAGE, i & 1 ? MADV_PAGEOUT : MADV_COLD))
			die("madvise");
	return NULL;
}

static void start(pthread_t *threads)
{
	for (int i = 0; i < ADVISERS; i++)
		if (pthread_create(&threads[i], NULL, advise, NULL))
			die("cannot make threads");
}

__attribute__((noreturn))
static void child(int way)
{
	pthread_t threads[ADVISERS];
	bool same;

	/* all but one way out leave advisers behind in the kernel */
	if (way != EXIT_QUIET)
		start(threads);
	same = intact(arena, PAGES);
	memset(arena, 0xee, PAGE);
	if (way == KILLED)
		kill(getpid(), SIGKILL);
	if (way == EXEC && same)
		execl("/bin/true", "true", NULL);
	_exit(same ? 0 : 1);
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0, status, done[WAYS] = { 0 };
	time_t end = time(NULL) + seconds;
	pthread_t threads[ADVISERS];
	bool good = true;

	if (seconds < 1) {
		fprintf(stderr, "usage: race SECONDS\n");
		return 2;
	}
	arena = map_fenced(PAGES);
	fill(arena, PAGES);
	start(threads);
	for (int n = 0; time(NULL) < end && good; n++) {
		int way = n % WAYS;
		pid_t pid = fork();

		if (!pid)
			child(way);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			die("fork");
		if (way == KILLED)
			good = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		else
			good = !status;
		done[way]++;
	}
	ending = true;
	for (int i = 0; i < ADVISERS; i++)
		pthread_join(threads[i], NULL);
	printf("exits %d quiet exits %d execs %d kills %d\n", done[EXIT_BUSY],
	       done[EXIT_QUIET], done[EXEC], done[KILLED]);
	good &= intact(arena, PAGES);
	puts(good ? "intact" : "DAMAGED");
	return !good;
}
