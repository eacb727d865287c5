// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ab.h"

extern char **environ;

int ab_wait(pid_t pid, const char *what)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR) {
			ab_error("%s: %s", what, strerror(errno));
			return -1;
		}
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFEXITED(status))
		ab_error("%s: exit code %d", what, WEXITSTATUS(status));
	else
		ab_error("%s: killed by signal %d", what, WTERMSIG(status));
	return -1;
}

/* Run a command of the system; what it prints would spoil our table. */
int ab_exec(char *const argv[])
{
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int err;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (err) {
		ab_error("%s: %s", argv[0], strerror(err));
		return -1;
	}
	return ab_wait(pid, argv[0]);
}

/*
 * Start this program once more in a role of its own. A fresh process, not a
 * fork: a child that shares the measured pages would change what the calls do.
 */
pid_t ab_spawn_self(const char *role, const char *arg, int *to, int *from)
{
	char *const argv[] = { "ab-run", (char *)role, (char *)arg, NULL };
	posix_spawn_file_actions_t fa;
	int in[2], out[2], err;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC)) {
		ab_error("pipe: %s", strerror(errno));
		return -1;
	}
	if (pipe2(out, O_CLOEXEC)) {
		ab_error("pipe: %s", strerror(errno));
		close(in[0]);
		close(in[1]);
		return -1;
	}
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&fa, out[1], STDOUT_FILENO);
	err = posix_spawn(&pid, "/proc/self/exe", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(in[0]);
	close(out[1]);
	if (err) {
		ab_error("%s: %s", role, strerror(err));
		close(in[1]);
		close(out[0]);
		return -1;
	}
	*to = in[1];
	*from = out[0];
	return pid;
}
