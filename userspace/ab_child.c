// SPDX-License-Identifier: GPL-2.0
/* The programs that "mmopt ab" runs: the load, the metric, gnuplot. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ab.h"

#define METRIC_MS	10000
#define SLICE_MS	20

/*
 * In a process group of its own: what it starts can be ended with it, and ^C
 * reaches us alone. Without @in it has no input. Returns its pid or a negative
 * errno.
 */
pid_t child_start(char *const argv[], int in, int out)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, pipe;
	pid_t pid;
	int err;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
					POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&attr, &pipe);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&files);
	if (in < 0)
		posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	err = posix_spawnp(&pid, argv[0], &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return err ? -err : pid;
}

bool child_ended(pid_t pid, int *status)
{
	return waitpid(pid, status, WNOHANG) == pid;
}

static int wait_end(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/*
 * Ends it and all of its group, kindly for @grace_ms. Those whose parents end are ours
 * to wait for, see cmd_ab(). Returns the status of @pid.
 */
int child_stop(pid_t pid, unsigned int grace_ms)
{
	__u64 deadline = now_ms() + grace_ms;
	int status = 0, one;
	pid_t ended;

	kill(-pid, SIGTERM);
	for (;;) {
		bool late = now_ms() >= deadline;

		if (late)
			kill(-pid, SIGKILL);
		ended = waitpid(-pid, &one, late ? 0 : WNOHANG);
		if (ended < 0 && errno == ECHILD)
			return status;
		if (ended == pid)
			status = one;
		else if (!ended)
			nap_ms(SLICE_MS);
	}
}

/* Runs it to its end. Returns its status, or a negative errno if it does not start. */
int child_run(char *const argv[], int in, int out)
{
	pid_t pid = child_start(argv, in, out);

	return pid < 0 ? (int)pid : wait_end(pid);
}

/* Until the end of @fd. Returns the length, or a negative errno. */
static ssize_t read_all(int fd, char *buf, size_t size, __u64 deadline)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	ssize_t n;

	for (;;) {
		if (interrupted)
			return -EINTR;
		if (now_ms() >= deadline)
			return -ETIMEDOUT;
		if (poll(&ready, 1, SLICE_MS) <= 0)
			continue;
		n = read(fd, buf + len, size - len);
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (!n || len == size)
			return (ssize_t)len;
	}
}

/* Blanks around it, such as redis' carriage returns, do no harm. */
static bool parse_metric(char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end > text && !end[strspn(end, " \t\r\n")] && *value > 0 &&
	       *value <= __DBL_MAX__;
}

static int metric_failed(int err, const char *what, const char *hint)
{
	int rc = fail(RC_FAILED, err, "--metric", "%s", what);

	fail_info("%s", hint);
	return rc;
}

/* Asks the user's command for the number of a window. */
int ab_metric(double *value)
{
	static const char hint[] = "the command must print one number above 0, within 10 s";
	char *const argv[] = { "/bin/sh", "-c", (char *)ab_opts.metric, NULL };
	__u64 deadline = now_ms() + METRIC_MS;
	char text[256];
	int fd[2], status = 0;
	ssize_t len;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return metric_failed(errno, "cannot make a pipe", "close other programs");
	pid = child_start(argv, -1, fd[1]);
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		return metric_failed((int)-pid, "cannot run the shell", "is there a /bin/sh?");
	}
	len = read_all(fd[0], text, sizeof(text) - 1, deadline);
	close(fd[0]);
	/* It may have closed its output and go on. */
	while (len >= 0 && !child_ended(pid, &status)) {
		if (interrupted || now_ms() >= deadline)
			len = interrupted ? -EINTR : -ETIMEDOUT;
		else
			nap_ms(SLICE_MS);
	}
	if (len < 0) {
		child_stop(pid, 0);	/* paths are not what they were yet */
		return metric_failed((int)-len, "the command was cut short", hint);
	}
	if (status)
		return metric_failed(0, "the command has failed", hint);
	text[len] = '\0';
	if (parse_metric(text, value))
		return RC_OK;
	text[strcspn(text, "\r\n")] = '\0';
	status = fail(RC_FAILED, 0, "--metric", "'%s' is no number above 0", text);
	fail_info("%s", hint);
	return status;
}
