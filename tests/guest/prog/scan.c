// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

#include "scan.h"

#define SCAN_IOCTL	_IOWR('f', 16, struct scan)

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED	(1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC		(1 << 15)
#endif

struct scan scan_of(const void *p, size_t pages, struct range *vec, size_t len)
{
	return (struct scan){
		.size = sizeof(struct scan),
		.start = (uintptr_t)p,
		.end = (uintptr_t)p + pages * PAGE,
		.vec = (uintptr_t)vec,
		.vec_len = len,
	};
}

long scan_do(int pagemap, struct scan *scan)
{
	long n = ioctl(pagemap, SCAN_IOCTL, scan);

	return n < 0 ? -errno : n;
}

int open_pagemap(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		die("cannot open %s", path);
	return fd;
}

int open_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		die("cannot use userfaultfd");
	return fd;
}

int register_wp(int uffd, const void *p, size_t pages)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)p, pages * PAGE },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(uffd, UFFDIO_REGISTER, &reg);
}

int unregister_wp(int uffd, const void *p, size_t pages)
{
	struct uffdio_range range = { (uintptr_t)p, pages * PAGE };

	return ioctl(uffd, UFFDIO_UNREGISTER, &range);
}
