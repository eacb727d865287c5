/* SPDX-License-Identifier: GPL-2.0 */
/* KSM as the tests use it: its files, and scans one by one. */
#ifndef KSM_H
#define KSM_H

#include "common.h"

long ksm_get(const char *file);
void ksm_set(const char *file, long value);
/* A figure of /proc/self/ksm_stat, -1 if the kernel has none of that name. */
long ksm_stat(const char *key);

/* Nothing merged, nothing scanned any more. */
void ksm_reset(void);
/* So many full scans, and ksmd sleeps again. The caller has mergeable memory. */
void ksm_scan(unsigned int n);

enum kind {
	IDENTICAL,	/* all pages are the same */
	PAIRS,		/* each has one other that is the same */
	UNIQUE,
	ZERO,
};

/* @tag makes the contents differ from those of every other area. */
void ksm_fill(char *p, size_t pages, enum kind kind, unsigned int tag);
bool ksm_intact(const char *p, size_t pages, enum kind kind, unsigned int tag);
/* The same of one page of the area. */
bool ksm_holds(const char *p, size_t page, enum kind kind, unsigned int tag);
/* How many pages of the VMAs there are pages of KSM, zero pages not counted. */
size_t ksm_pages(const void *p, size_t pages);

#endif
