// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mremap.h"

#define WINDOWS		0x100000000000UL

const char *const kind_names[KINDS] = {
	[ANON] = "anon", [THP] = "thp", [SHARED] = "shared", [PRIVATE] = "private",
};

char *window(unsigned int n)
{
	return (char *)WINDOWS + n * 8 * GIB;
}

enum kind kind_of(const char *name)
{
	enum kind kind = 0;

	while (kind < KINDS && strcmp(kind_names[kind], name))
		kind++;
	if (kind == KINDS)
		die("no such kind of memory: %s", name);
	return kind;
}

char *map_at(char *at, size_t len, enum kind kind)
{
	int flags = MAP_FIXED_NOREPLACE | (kind == SHARED ? MAP_SHARED : MAP_PRIVATE), fd = -1;
	char *p;

	if (kind == ANON || kind == THP) {
		flags |= MAP_ANONYMOUS | MAP_NORESERVE;
	} else {
		fd = memfd_create("mremap", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, len))
			die("memfd");
	}
	p = mmap(at, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (p != at)
		die("cannot map %zu bytes at %p", len, at);
	if (fd >= 0)
		close(fd);
	if (madvise(p, len, kind == THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
		die("cannot advise about huge pages");
	return p;
}

void unmap(char *p, size_t len)
{
	if (munmap(p, len))
		die("munmap");
}

static uint64_t tag_of(uint64_t page)
{
	return (page + 1) * 0x9e3779b97f4a7c15ULL;
}

void tag_one(char *p, uint64_t page)
{
	*(volatile uint64_t *)p = tag_of(page);
}

bool tagged_one(const char *p, uint64_t page)
{
	return *(const volatile uint64_t *)p == tag_of(page);
}

void tag(char *p, size_t pages, uint64_t first)
{
	for (size_t i = 0; i < pages; i++)
		tag_one(p + i * PAGE, first + i);
}

bool tagged(const char *p, size_t pages, uint64_t first)
{
	for (size_t i = 0; i < pages; i++)
		if (!tagged_one(p + i * PAGE, first + i))
			return false;
	return true;
}

char *move(char *from, size_t old_len, size_t new_len, int flags, char *to)
{
	char *p = mremap(from, old_len, new_len,
			 flags | MREMAP_MAYMOVE | (to ? MREMAP_FIXED : 0), to);

	if (p == MAP_FAILED || (to && p != to))
		die("mremap of %zu bytes at %p to %p", old_len, from, to);
	return p;
}

uint64_t *pagemap(const void *p, size_t pages)
{
	ssize_t want = pages * sizeof(uint64_t);
	uint64_t *entries = malloc(want);
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (!entries || fd < 0 || pread(fd, entries, want, (uintptr_t)p / PAGE * 8) != want)
		die("cannot read the page map");
	close(fd);
	return entries;
}

void write_to(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("cannot write \"%s\" to %s", text, file);
	close(fd);
}
