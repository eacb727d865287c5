// SPDX-License-Identifier: GPL-2.0
/*
 * Waits that end. The module waits as long as calls are under way, but lets a
 * signal interrupt that: our own timer, or one that somebody sends.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

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
	static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGALRM };
	struct sigaction action = { .sa_handler = on_signal }, before;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sigaction(signals[i], &action, &before);
		if (signals[i] == SIGHUP && before.sa_handler == SIG_IGN)
			sigaction(SIGHUP, &before, NULL); /* nohup */
	}
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

/*
 * Waits until that time, or until @fd, which may be -1, can be read. Returns false
 * if it is time to end: a signal has come, or, which is a failure, nobody reads
 * our output any more. Signals come in nowhere but in the system call, lest one be
 * missed just before.
 */
bool wait_for(__u64 until_ms, int fd, int *rc)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };
	sigset_t ours, open;
	int n = 0;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGQUIT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigprocmask(SIG_BLOCK, &ours, &open);
	while (!interrupted && !n) {
		__u64 now = now_ms(), left = now < until_ms ? until_ms - now : 0;
		struct timespec timeout = { (time_t)(left / 1000), (long)(left % 1000) * 1000000 };

		n = ppoll(fds, ARRAY_SIZE(fds), &timeout, &open);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (!n)
			break;
	}
	sigprocmask(SIG_SETMASK, &open, NULL);
	if (fds[1].revents) {
		*rc = fail(RC_FAILED, EPIPE, "stdout", "cannot write");
		fail_info("nobody reads it any more");
		return false;
	}
	return !interrupted;
}
