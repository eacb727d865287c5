// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into mmopt by the host tests. Writes and folders made and removed
 * below $MMOPT_ROOT/sys and the system calls that load and remove modules do not
 * reach the kernel: the script $FAKE_KERNEL answers them, with an errno as its exit
 * status. While there is a file $MMOPT_ROOT/.lockdown, debugfs is closed as lockdown
 * closes it; while there is $MMOPT_ROOT/.live, calls are made, and counted by the
 * script whenever statistics are read.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What follows the root in @path, or NULL if it is not below it. */
static const char *below(const char *path, const char *dir)
{
	const char *root = getenv("MMOPT_ROOT");
	char resolved[PATH_MAX], full[PATH_MAX + 64];
	int len;

	if (!root || !realpath(root, resolved))
		return NULL;
	len = snprintf(full, sizeof(full), "%s%s", resolved, dir);
	return strncmp(path, full, len) ? NULL : path + strlen(resolved);
}

/*
 * Returns what the system call shall: 0, or -1 with errno set. A script that
 * waits is interrupted by a signal, as the wait in a system call would be.
 */
static int ask(const char *what, const char *arg, const char *more)
{
	char *script = getenv("FAKE_KERNEL");
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		unsetenv("LD_PRELOAD");
		execl(script, script, what, arg, more, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			abort();
		if (!strcmp(what, "read"))
			continue;	/* not one that waits */
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		errno = EINTR;
		return -1;
	}
	if (!WIFEXITED(status))
		abort();
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static bool is_there(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", getenv("MMOPT_ROOT"), name);
	return !access(path, F_OK);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

static bool locked_down(const char *path, int flags)
{
	struct stat st;

	if (!below(path, "/sys/kernel/debug/"))
		return false;
	if (!is_there(".lockdown") || stat(path, &st) || S_ISDIR(st.st_mode))
		return false;
	return (st.st_mode & 0222) || (flags & O_ACCMODE) != O_RDONLY;
}

static int do_open(const char *name, const char *path, int flags, mode_t mode)
{
	int (*real)(const char *path, int flags, ...);
	const char *file;

	real = dlsym(RTLD_NEXT, name);
	if (locked_down(path, flags)) {
		errno = EPERM;
		return -1;
	}
	file = below(path, "/sys/kernel/debug/mmopt/");
	if (file && ends_with(file, "/stats") && is_there(".live") && ask("read", file, ""))
		return -1;
	return real(path, flags, mode);
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return do_open("open", path, flags & ~(below(path, "/sys/") ? O_TRUNC : 0), mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return do_open("open64", path, flags & ~(below(path, "/sys/") ? O_TRUNC : 0), mode);
}

static bool path_of(int fd, char *path)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return true;
}

ssize_t write(int fd, const void *data, size_t len)
{
	ssize_t (*real)(int fd, const void *data, size_t len) = dlsym(RTLD_NEXT, "write");
	char path[PATH_MAX], text[4096];
	const char *file;

	file = path_of(fd, path) ? below(path, "/sys/") : NULL;
	if (!file)
		return real(fd, data, len);
	snprintf(text, sizeof(text), "%.*s", (int)len, (const char *)data);
	return ask("write", file, text) ? -1 : (ssize_t)len;
}

int mkdir(const char *path, mode_t mode)
{
	int (*real)(const char *path, mode_t mode) = dlsym(RTLD_NEXT, "mkdir");
	const char *dir = below(path, "/sys/");

	return dir ? ask("mkdir", dir, "") : real(path, mode);
}

int rmdir(const char *path)
{
	int (*real)(const char *path) = dlsym(RTLD_NEXT, "rmdir");
	const char *dir = below(path, "/sys/");

	return dir ? ask("rmdir", dir, "") : real(path);
}

int delete_module(const char *name, unsigned int flags)
{
	(void)flags;
	return ask("remove", name, "");
}

int init_module(void *image, unsigned long len, const char *params)
{
	(void)image;
	(void)len;
	return ask("insert", "image", params);
}

int finit_module(int fd, const char *params, int flags)
{
	char path[PATH_MAX];
	const char *file;

	(void)flags;
	file = path_of(fd, path) ? below(path, "/") : NULL;
	return ask("insert", file ? file : "elsewhere", params);
}

/* libkmod has no wrapper for finit_module in the C library. */
long syscall(long number, ...)
{
	long (*real)(long number, ...) = dlsym(RTLD_NEXT, "syscall");
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_finit_module)
		return finit_module((int)arg[0], (const char *)arg[1], (int)arg[2]);
	return real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
