// SPDX-License-Identifier: GPL-2.0
/*
 * Access to the host's files. MMOPT_ROOT puts a prefix before every one of
 * them, so that the tests run on a tree of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mmopt.h"

/* Nothing that is read here is larger; what is, is not what it seems. */
#define SLURP_MAX	(8u << 20)

static char root[PATH_MAX];

int file_init(void)
{
	const char *dir = secure_getenv("MMOPT_ROOT");

	if (!dir || !*dir)
		return RC_OK;
	if (!realpath(dir, root))
		return fail(RC_USAGE, errno, "MMOPT_ROOT", "cannot use %s", dir);
	if (!strcmp(root, "/"))
		root[0] = '\0';
	return RC_OK;
}

/* A name that does not fit becomes empty, which no call accepts. */
static char *vpath(char *buf, const char *fmt, va_list args)
{
	size_t len = strlen(root);
	int n;

	memcpy(buf, root, len);
	n = vsnprintf(buf + len, PATH_MAX - len, fmt, args);
	if (n < 0 || (size_t)n >= PATH_MAX - len)
		buf[0] = '\0';
	return buf;
}

char *file_path(char *buf, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vpath(buf, fmt, args);
	va_end(args);
	return buf;
}

bool file_exists(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	return !access(path, F_OK);
}

/* Reads until the end: files of debugfs and proc have no size to go by. */
static char *slurp(const char *path)
{
	size_t len = 0, size = 8192;
	char *text, *bigger;
	int fd, err;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = malloc(size);
	if (!text)
		goto fail;
	do {
		if (size - len < 2) {
			size *= 2;
			bigger = size <= SLURP_MAX ? realloc(text, size) : NULL;
			if (!bigger) {
				errno = EFBIG;
				goto fail;
			}
			text = bigger;
		}
		n = read(fd, text + len, size - len - 1);
		if (n < 0 && errno != EINTR)
			goto fail;
		if (n > 0)
			len += (size_t)n;
	} while (n);
	close(fd);

	/* A NUL would hide what follows it. */
	for (size_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = '?';
	text[len] = '\0';
	return text;

fail:
	err = errno;
	free(text);
	close(fd);
	errno = err;
	return NULL;
}

char *file_slurp(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	return slurp(path);
}

/* A file that the user has named, and not one of the host's. */
char *file_slurp_named(const char *name)
{
	return slurp(name);
}

/* The first line, cut to @size. Returns 0 or a negative errno. */
int file_line(char *buf, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX], *text;
	va_list args;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	buf[0] = '\0';
	text = slurp(path);
	if (!text)
		return -errno;
	text[strcspn(text, "\n")] = '\0';
	snprintf(buf, size, "%s", text);
	free(text);
	return 0;
}

/* One write, as files of sysfs and debugfs want it. Returns 0 or a negative errno. */
int file_write(const char *text, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t n;
	int fd;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	close(fd);
	return (size_t)n == strlen(text) ? 0 : -EIO;
}

/* A file that goes on; reading it never waits. Returns a descriptor or a negative errno. */
int file_open(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	int fd;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int dir_make(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	return mkdir(path, 0700) ? -errno : 0;
}

int dir_remove(const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	return rmdir(path) ? -errno : 0;
}

static int write_whole(int fd, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;

	for (; len; len -= (size_t)n, text += n) {
		n = write(fd, text, len);
		if (n < 0)
			return -errno;
	}
	return fchmod(fd, 0644) || fsync(fd) ? -errno : 0;
}

/*
 * Puts @text in the place of a file of the user's own. Whoever reads it, even
 * after a power failure, finds the old or the new one. Returns 0 or a negative
 * errno.
 */
int file_replace(const char *name, const char *text)
{
	char temp[PATH_MAX], folder[PATH_MAX];
	int fd, dir, ret;

	if (snprintf(temp, sizeof(temp), "%s.XXXXXX", name) >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write_whole(fd, text);
	close(fd);
	if (!ret && rename(temp, name))
		ret = -errno;
	if (ret) {
		unlink(temp);
		return ret;
	}
	snprintf(folder, sizeof(folder), "%s", name);
	dir = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	ret = fsync(dir) ? -errno : 0;
	close(dir);
	return ret;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Returns the number of entries, sorted by name, or a negative errno. */
int dir_list(struct dirent ***list, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	vpath(path, fmt, args);
	va_end(args);
	*list = NULL;
	n = scandir(path, list, not_hidden, alphasort);
	return n < 0 ? -errno : n;
}

void dir_free(struct dirent **list, int n)
{
	while (n-- > 0)
		free(list[n]);
	free(list);
}
