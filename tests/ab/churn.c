// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ab.h"

#define CHURN_BYTES	(1024 * 1024UL)
#define CHURN_STACK	(64 * 1024UL)

struct churner {
	struct ab_churn *all;
	pthread_t thread;
	bool failed;
	struct ab_hist hist;
};

struct ab_churn {
	unsigned int n;
	uint64_t start;
	volatile bool stop;
	struct churner *churner;	/* here, or */
	pid_t pid;			/* in another process */
	int to, from;
};

static void *churn(void *arg)
{
	struct churner *me = arg;
	uint64_t t0, t1, t2, t3;
	char *p;

	while (!me->all->stop) {
		t0 = ab_now();
		p = mmap(NULL, CHURN_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		t1 = ab_now();
		if (p == MAP_FAILED) {
			me->failed = true;
			break;
		}
		*(volatile char *)p = 1;
		t2 = ab_now();
		munmap(p, CHURN_BYTES);
		t3 = ab_now();
		ab_hist_add(&me->hist, t1 - t0 + t3 - t2);
	}
	return NULL;
}

static int start_here(struct ab_churn *c)
{
	pthread_attr_t attr;
	unsigned int i;
	int err = 0;

	c->churner = calloc(c->n, sizeof(*c->churner));
	if (!c->churner)
		return -ENOMEM;
	c->start = ab_now();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CHURN_STACK);
	for (i = 0; i < c->n && !err; i++) {
		c->churner[i].all = c;
		err = pthread_create(&c->churner[i].thread, &attr, churn, &c->churner[i]);
	}
	pthread_attr_destroy(&attr);
	if (!err)
		return 0;
	c->stop = true;
	for (c->n = i - 1; c->n; c->n--)
		pthread_join(c->churner[c->n - 1].thread, NULL);
	free(c->churner);
	return -err;
}

static int stop_here(struct ab_churn *c, struct ab_churned *got)
{
	struct ab_hist *sum = calloc(1, sizeof(*sum));
	bool failed = !sum;
	double seconds;

	c->stop = true;
	seconds = (ab_now() - c->start) / 1e9;
	for (unsigned int i = 0; i < c->n; i++) {
		pthread_join(c->churner[i].thread, NULL);
		failed |= c->churner[i].failed;
		if (sum)
			ab_hist_merge(sum, &c->churner[i].hist);
	}
	if (sum) {
		got->p99_us = ab_hist_quantile(sum, 0.99) / 1e3;
		got->per_s = ab_hist_count(sum) / seconds;
	}
	free(sum);
	free(c->churner);
	return failed ? -ENOMEM : 0;
}

static int start_elsewhere(struct ab_churn *c)
{
	char threads[16], ready;

	snprintf(threads, sizeof(threads), "%u", c->n);
	c->pid = ab_spawn_self(AB_AS_CHURN, threads, &c->to, &c->from);
	if (c->pid < 0)
		return -EAGAIN;
	if (read(c->from, &ready, 1) == 1)
		return 0;
	close(c->to);
	close(c->from);
	ab_wait(c->pid, "churners");
	return -ECHILD;
}

static int stop_elsewhere(struct ab_churn *c, struct ab_churned *got)
{
	char answer[64];
	ssize_t n;

	close(c->to);
	n = read(c->from, answer, sizeof(answer) - 1);
	close(c->from);
	if (ab_wait(c->pid, "churners") || n <= 0)
		return -ECHILD;
	answer[n] = 0;
	return sscanf(answer, "%lf %lf", &got->p99_us, &got->per_s) == 2 ? 0 : -ECHILD;
}

struct ab_churn *ab_churn_start(unsigned int threads, bool elsewhere)
{
	struct ab_churn *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (c) {
		c->n = threads;
		err = elsewhere ? start_elsewhere(c) : start_here(c);
	}
	if (!err)
		return c;
	ab_error("cannot start %u churners: %s", threads, strerror(-err));
	free(c);
	return NULL;
}

int ab_churn_stop(struct ab_churn *c, struct ab_churned *got)
{
	int err = c->pid ? stop_elsewhere(c, got) : stop_here(c, got);

	free(c);
	if (err)
		ab_error("churners: %s", strerror(-err));
	return err ? -1 : 0;
}

/* In another process: churn until standard input ends, then tell the figures. */
int ab_churn_main(const char *threads)
{
	struct ab_churn *c = ab_churn_start(strtoul(threads, NULL, 10), false);
	struct ab_churned got;
	char end;

	if (!c || write(STDOUT_FILENO, "r", 1) != 1)
		return 1;
	while (read(STDIN_FILENO, &end, 1) < 0 && errno == EINTR)
		;
	if (ab_churn_stop(c, &got))
		return 1;
	printf("%.1f %.1f\n", got.p99_us, got.per_s);
	return 0;
}
