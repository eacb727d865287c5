/* SPDX-License-Identifier: GPL-2.0 */
/* PAGEMAP_SCAN, and what it can write-protect. */
#ifndef SCAN_H
#define SCAN_H

#include "common.h"

/* As the kernel has them; a suite's headers may be older than its kernel. */
enum {
	WPALLOWED = 1, WRITTEN = 2, FILE_PAGE = 4, PRESENT = 8, SWAPPED = 16,
	PFNZERO = 32, HUGE_PAGE = 64, SOFT_DIRTY = 128,
};

enum { WP_MATCHING = 1, CHECK_WPASYNC = 2 };

struct range {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, anyof, ret;
};

/* For @pages at @p; without @vec nothing is returned. */
struct scan scan_of(const void *p, size_t pages, struct range *vec, size_t len);
/* By the open pagemap of a process: ranges found, or negative errno. */
long scan_do(int pagemap, struct scan *scan);
int open_pagemap(pid_t pid);

/* A userfaultfd that lets writes pass and only notes them. */
int open_uffd(void);
int register_wp(int uffd, const void *p, size_t pages);
int unregister_wp(int uffd, const void *p, size_t pages);

#endif
