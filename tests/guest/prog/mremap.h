/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs about mremap share. */
#ifndef MREMAP_H
#define MREMAP_H

#include "common.h"

#define MIB		(1UL << 20)
#define GIB		(1UL << 30)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/*
 * Address space that mmap leaves alone, on a boundary of GIB; empty unless the
 * program has put something there.
 */
char *window(unsigned int n);

enum kind { ANON, THP, SHARED, PRIVATE, KINDS };

extern const char *const kind_names[KINDS];
enum kind kind_of(const char *name);

/* Memory at an address, not touched yet. */
char *map_at(char *at, size_t len, enum kind kind);
void unmap(char *p, size_t len);

/* A word for each page, that tells which one it is. */
void tag(char *p, size_t pages, uint64_t first);
void tag_one(char *p, uint64_t page);
bool tagged_one(const char *p, uint64_t page);
bool tagged(const char *p, size_t pages, uint64_t first);

/* mremap that must succeed; to a place of ours, or where the kernel likes. */
char *move(char *from, size_t old_len, size_t new_len, int flags, char *to);

/* The entries of /proc/self/pagemap; freed by the caller. */
uint64_t *pagemap(const void *p, size_t pages);
#define PM_SOFT_DIRTY	(1ULL << 55)
#define PM_UFFD_WP	(1ULL << 57)
#define PM_PRESENT	(1ULL << 63)
#define PM_SWAPPED	(1ULL << 62)

void write_to(const char *file, const char *text);

#endif
