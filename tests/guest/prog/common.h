/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs that run in the guest share. */
#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_SIZE(x)	(sizeof(x) / sizeof((x)[0]))
#define PAGE		4096UL
#define HUGE		(2UL << 20)

#ifndef MADV_COLD
#define MADV_COLD	20
#define MADV_PAGEOUT	21
#endif

__attribute__((noreturn, format(printf, 1, 2)))
void die(const char *format, ...);

uint64_t now_ns(void);

/* Stays on one CPU: whose page batches madvise drains is then known. */
void pin(void);

/* Private memory that can merge with no neighbour; mapped, not touched. */
char *map_fenced(size_t pages);
void unmap_fenced(char *p, size_t pages);

/* A pattern that differs from page to page. */
void fill(char *p, size_t pages);
bool intact(const char *p, size_t pages);

/* "p" for a page that is present, "s" for swapped out, "." for neither. */
const char *page_states(const void *p, size_t pages);
const char *page_states_of(pid_t pid, const void *p, size_t pages);
/* "r" for a page of the mapping that the page cache has, "-" for none. */
const char *cached(void *p, size_t pages);
/* A field of /proc/PID/status, in kB; -1 if there is none. */
long status_kb(pid_t pid, const char *field);
/* Sum of a field, in kB, over the VMAs that overlap the range. */
long smaps_kb(const char *field, const void *p, size_t len);

/*
 * Lets the nth allocation of this thread from here on fail, on a kernel with fault
 * injection; 0 none. Then: has it come to that?
 */
void fail_nth(unsigned int n);
bool has_failed(void);

/* "ok", a number, or the name of errno. */
const char *outcome(long ret);

#endif
