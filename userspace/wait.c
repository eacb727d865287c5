// SPDX-License-Identifier: GPL-2.0
/*
 * Waits that end. The module waits as long as calls are under way, but lets a
 * signal interrupt that: our own timer, or one that somebody sends.
 */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "mmopt.h"

atomic_int interrupted;

static void on_signal(int sig)
{
	if (sig != SIGALRM)
		interrupted = 1;
}

/* For verbs that have something to say or to put back. */
void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGALRM };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
}

/* It goes off again and again, lest it be missed just before a call that waits. */
void timer_start(unsigned int seconds)
{
	struct itimerval timer = { .it_interval.tv_usec = 100000 };

	if (seconds)
		timer.it_value.tv_sec = seconds;
	else
		timer.it_value.tv_usec = 1;
	setitimer(ITIMER_REAL, &timer, NULL);
}

void timer_stop(void)
{
	static const struct itimerval none;

	setitimer(ITIMER_REAL, &none, NULL);
}

__u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000 + (__u64)now.tv_nsec / 1000000;
}

void nap_ms(unsigned int ms)
{
	struct timespec nap = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&nap, NULL);
}
