// SPDX-License-Identifier: GPL-2.0
/*
 * poke FILE [DATA...]: hands each DATA to FILE in a single write of its own, and
 * prints what came of it. In DATA, \n is a newline and \0 a zero byte. Without
 * any, all of standard input is the data, be it empty or large.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char data[2 << 20];

static size_t decode(const char *arg)
{
	size_t len = 0;

	for (; *arg && len < sizeof(data); arg++) {
		if (arg[0] == '\\' && (arg[1] == 'n' || arg[1] == '0'))
			data[len++] = *++arg == 'n' ? '\n' : '\0';
		else
			data[len++] = *arg;
	}
	return len;
}

static int poke(const char *file, size_t len)
{
	int fd = open(file, O_WRONLY);
	ssize_t n;

	if (fd < 0) {
		printf("open: %s\n", strerrorname_np(errno));
		return 1;
	}
	n = write(fd, data, len);
	if (n < 0)
		puts(strerrorname_np(errno));
	else
		puts((size_t)n == len ? "ok" : "short");
	close(fd);
	return n < 0 || (size_t)n != len;
}

int main(int argc, char **argv)
{
	size_t len = 0;
	ssize_t n;
	int rc = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: poke FILE [DATA...]\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		rc |= poke(argv[1], decode(argv[i]));
	if (argc > 2)
		return rc;
	while ((n = read(STDIN_FILENO, data + len, sizeof(data) - len)) > 0)
		len += n;
	return poke(argv[1], len);
}
