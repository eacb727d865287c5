// SPDX-License-Identifier: GPL-2.0
/*
 * fallback REASON: calls, one for each advice, that mmopt must leave to stock
 * code for that reason. Prints how many.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define PAGES	8UL

static char *p;

static int both(void)
{
	int n = 0;

	for (int advice = MADV_COLD; advice <= MADV_PAGEOUT; advice++, n++)
		madvise(p, PAGES * PAGE, advice);
	return n;
}

static int remote_mm(void)
{
	struct iovec iov = { p, PAGES * PAGE };
	pid_t child = fork();
	int n = 0, fd;

	if (!child) {
		pause();
		_exit(0);
	}
	fd = syscall(SYS_pidfd_open, child, 0);
	for (int advice = MADV_COLD; advice <= MADV_PAGEOUT; advice++, n++)
		if (syscall(SYS_process_madvise, fd, &iov, 1, advice, 0) != (long)iov.iov_len)
			die("process_madvise");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return n;
}

/* There is no VMA to lock in the middle. */
static int vma_lock(void)
{
	munmap(p + 3 * PAGE, PAGE);
	return both();
}

static int userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (unsigned long)p, PAGES * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	return both();
}

static const struct {
	const char *reason;
	int (*provoke)(void);
} reasons[] = {
	{ "remote_mm", remote_mm },
	{ "vma_lock", vma_lock },
	{ "userfaultfd", userfaultfd },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < ARRAY_SIZE(reasons); i++) {
		if (strcmp(argv[1], reasons[i].reason))
			continue;
		p = map_fenced(PAGES);
		fill(p, PAGES);
		printf("%d\n", reasons[i].provoke());
		return 0;
	}
	fprintf(stderr, "usage: fallback remote_mm|vma_lock|userfaultfd\n");
	return 2;
}
