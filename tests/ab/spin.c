// SPDX-License-Identifier: GPL-2.0
/* A thread that only runs, so that a TLB flush has another CPU to interrupt. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ab.h"

struct ab_spin {
	pthread_t thread;
	volatile bool running, stop;
	pid_t pid;			/* in another process */
	int to, from;
};

/* The first CPU of those allowed: measurements take the last one. */
static void pin(void)
{
	cpu_set_t may, one;

	sched_getaffinity(0, sizeof(may), &may);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &may))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void *spin(void *arg)
{
	struct ab_spin *s = arg;

	pin();
	s->running = true;
	while (!s->stop)
		;
	return NULL;
}

static int start_here(struct ab_spin *s)
{
	int err = pthread_create(&s->thread, NULL, spin, s);

	while (!err && !s->running)
		ab_sleep_ms(1);
	return err;
}

static int start_elsewhere(struct ab_spin *s)
{
	char ready;

	s->pid = ab_spawn_self(AB_AS_SPIN, "1", &s->to, &s->from);
	if (s->pid < 0)
		return EAGAIN;
	if (read(s->from, &ready, 1) == 1)
		return 0;
	close(s->to);
	close(s->from);
	ab_wait(s->pid, "spinner");
	return ECHILD;
}

/* Whether there is a CPU for it. */
int ab_spin_setup(const struct ab_case *c)
{
	cpu_set_t may;

	if (!c->spinner || sched_getaffinity(0, sizeof(may), &may) || CPU_COUNT(&may) > 1)
		return 0;
	ab_error("%s: left out: takes two CPUs", c->name);
	return AB_SKIP;
}

struct ab_spin *ab_spin_start(bool elsewhere)
{
	struct ab_spin *s = calloc(1, sizeof(*s));
	int err = ENOMEM;

	if (s)
		err = elsewhere ? start_elsewhere(s) : start_here(s);
	if (!err)
		return s;
	ab_error("cannot start a spinning thread: %s", strerror(err));
	free(s);
	return NULL;
}

int ab_spin_stop(struct ab_spin *s)
{
	int err = 0;

	if (s->pid) {
		close(s->to);
		close(s->from);
		err = ab_wait(s->pid, "spinner");
	} else {
		s->stop = true;
		pthread_join(s->thread, NULL);
	}
	free(s);
	return err;
}

/* In another process: spin until standard input ends. */
int ab_spin_main(void)
{
	struct ab_spin *s = ab_spin_start(false);
	char end;

	if (!s || write(STDOUT_FILENO, "r", 1) != 1)
		return 1;
	while (read(STDIN_FILENO, &end, 1) < 0 && errno == EINTR)
		;
	return ab_spin_stop(s) ? 1 : 0;
}
