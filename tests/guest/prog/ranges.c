// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges and kinds of memory, one line for each and each advice: the result,
 * what became of every page, how much still counts as referenced, and whether
 * the contents are right.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "semantics.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE	0x08
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL	102
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif

#define PAGES	8UL

/* A case: memory of PAGES pages, filled, and what to advise about it. */
struct range {
	char *p;
	char *at;
	size_t len;
	bool skip;	/* this kernel has no such thing */
	int fd;
	pid_t child;
};

static void protect(struct range *r, size_t from, size_t pages, int prot)
{
	if (mprotect(r->p + from * PAGE, pages * PAGE, prot))
		die("mprotect");
}

static void gap(struct range *r, size_t from, size_t pages)
{
	if (munmap(r->p + from * PAGE, pages * PAGE))
		die("munmap");
}

static void lock(struct range *r, size_t from, size_t pages)
{
	if (mlock(r->p + from * PAGE, pages * PAGE))
		die("mlock");
}

/* Maps something else, untouched, in the place of some of the pages. */
static void replace(struct range *r, size_t from, size_t pages, int flags)
{
	if (mmap(r->p + from * PAGE, pages * PAGE, PROT_READ | PROT_WRITE,
		 MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0) == MAP_FAILED)
		r->skip = true;
}

static void replace_and_fill(struct range *r, size_t from, size_t pages, int flags)
{
	replace(r, from, pages, flags);
	if (!r->skip)
		fill(r->p, PAGES);
}

static void plain(struct range *r)
{
}

static void no_length(struct range *r)
{
	r->len = 0;
}

static void unaligned(struct range *r)
{
	r->at++;
}

static void unaligned_no_length(struct range *r)
{
	r->at++;
	r->len = 0;
}

static void one_byte(struct range *r)
{
	r->len = 1;
}

static void length_rounds_up(struct range *r)
{
	r->at += PAGE;
	r->len = 3 * PAGE + 1;
}

static void length_rounds_to_none(struct range *r)
{
	r->len = -1UL;
}

static void wraps(struct range *r)
{
	r->len = -PAGE;
}

static void ends_at_zero(struct range *r)
{
	r->len = -(unsigned long)r->at;
}

static void gap_first(struct range *r)
{
	gap(r, 0, 2);
}

static void gap_in_the_middle(struct range *r)
{
	gap(r, 3, 2);
}

static void gap_last(struct range *r)
{
	gap(r, 6, 2);
}

static void two_gaps(struct range *r)
{
	gap(r, 1, 1);
	gap(r, 5, 1);
}

static void gap_only(struct range *r)
{
	gap(r, 2, 4);
	r->at += 2 * PAGE;
	r->len = 4 * PAGE;
}

static void two_vmas(struct range *r)
{
	protect(r, 4, 4, PROT_READ);
}

static void eight_vmas(struct range *r)
{
	for (size_t i = 0; i < PAGES; i += 2)
		protect(r, i, 1, PROT_READ);
}

static void part_of_vmas(struct range *r)
{
	protect(r, 3, 2, PROT_READ);
	r->at += PAGE;
	r->len -= 2 * PAGE;
}

static void no_access(struct range *r)
{
	protect(r, 0, PAGES, PROT_NONE);
}

static void executable(struct range *r)
{
	protect(r, 2, 4, PROT_READ | PROT_EXEC);
}

static void locked(struct range *r)
{
	lock(r, 0, PAGES);
}

static void locked_first(struct range *r)
{
	lock(r, 0, 2);
}

static void locked_last(struct range *r)
{
	lock(r, 6, 2);
}

static void locked_then_gap(struct range *r)
{
	lock(r, 2, 2);
	gap(r, 6, 1);
}

static void gap_then_locked(struct range *r)
{
	gap(r, 1, 1);
	lock(r, 4, 2);
}

static void shared(struct range *r)
{
	replace_and_fill(r, 0, PAGES, MAP_SHARED);
}

static void shared_in_the_middle(struct range *r)
{
	replace_and_fill(r, 2, 3, MAP_SHARED);
}

static void droppable(struct range *r)
{
	replace_and_fill(r, 0, PAGES, MAP_DROPPABLE);
}

static void grows_down(struct range *r)
{
	replace_and_fill(r, 2, 4, MAP_PRIVATE | MAP_GROWSDOWN);
}

static void userfault(struct range *r, size_t from, size_t pages)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (unsigned long)r->p + from * PAGE, pages * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	r->fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (r->fd < 0 || ioctl(r->fd, UFFDIO_API, &api) || ioctl(r->fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
}

static void userfault_all(struct range *r)
{
	userfault(r, 0, PAGES);
}

static void userfault_in_the_middle(struct range *r)
{
	userfault(r, 3, 2);
}

/* In two page tables, so that PAGEOUT must leave them. */
static void shared_by_fork(struct range *r)
{
	r->child = fork();
	if (r->child < 0)
		die("fork");
	if (!r->child) {
		pause();
		_exit(0);
	}
}

static void out_already(struct range *r)
{
	if (madvise(r->p + 2 * PAGE, 3 * PAGE, MADV_PAGEOUT))
		die("MADV_PAGEOUT");
}

static void zero_pages(struct range *r)
{
	volatile char *p = r->p;

	replace(r, 0, PAGES, MAP_PRIVATE);
	for (size_t i = 0; i < PAGES; i++)
		(void)p[i * PAGE];
}

static void untouched(struct range *r)
{
	replace(r, 0, PAGES, MAP_PRIVATE);
}

static void dropped(struct range *r)
{
	if (madvise(r->p + 3 * PAGE, 2 * PAGE, MADV_DONTNEED))
		die("MADV_DONTNEED");
}

static void lazily_freed(struct range *r)
{
	if (madvise(r->p, PAGES * PAGE, MADV_FREE))
		die("MADV_FREE");
	fill(r->p, PAGES);
}

static void guarded(struct range *r)
{
	if (madvise(r->p + 2 * PAGE, 2 * PAGE, MADV_GUARD_INSTALL))
		r->skip = true;
}

static void not_for_children(struct range *r)
{
	if (madvise(r->p + 2 * PAGE, 2 * PAGE, MADV_DONTFORK) ||
	    madvise(r->p + 4 * PAGE, 2 * PAGE, MADV_WIPEONFORK))
		die("MADV_DONTFORK");
}

static void mergeable(struct range *r)
{
	if (madvise(r->p, PAGES * PAGE, MADV_MERGEABLE))
		die("MADV_MERGEABLE");
}

#define CASE(fn) { #fn, fn }

static const struct {
	const char *name;
	void (*make)(struct range *r);
} cases[] = {
	CASE(plain), CASE(no_length), CASE(unaligned), CASE(unaligned_no_length),
	CASE(one_byte), CASE(length_rounds_up), CASE(length_rounds_to_none),
	CASE(wraps), CASE(ends_at_zero), CASE(gap_first), CASE(gap_in_the_middle),
	CASE(gap_last), CASE(two_gaps), CASE(gap_only), CASE(two_vmas),
	CASE(eight_vmas), CASE(part_of_vmas), CASE(no_access), CASE(executable),
	CASE(locked), CASE(locked_first), CASE(locked_last), CASE(locked_then_gap),
	CASE(gap_then_locked), CASE(shared), CASE(shared_in_the_middle),
	CASE(droppable), CASE(grows_down), CASE(userfault_all),
	CASE(userfault_in_the_middle), CASE(shared_by_fork), CASE(out_already),
	CASE(zero_pages), CASE(untouched), CASE(dropped), CASE(lazily_freed),
	CASE(guarded), CASE(not_for_children), CASE(mergeable),
};

/* Reads each page that can be read: "y" as filled, "0" zero, "!" neither. */
static const char *contents(const char *p)
{
	static char seen[PAGES + 1];
	char page[PAGE], good[PAGES * PAGE];
	int fd = open("/proc/self/mem", O_RDONLY);

	if (fd < 0)
		die("cannot read memory");
	fill(good, PAGES);
	for (size_t i = 0; i < PAGES; i++) {
		static const char zero[PAGE];

		if (pread(fd, page, PAGE, (off_t)(p + i * PAGE)) != (ssize_t)PAGE)
			seen[i] = '.';
		else if (!memcmp(page, good + i * PAGE, PAGE))
			seen[i] = 'y';
		else
			seen[i] = memcmp(page, zero, PAGE) ? '!' : '0';
	}
	close(fd);
	return seen;
}

static void one(const char *name, void (*make)(struct range *r), const struct advice *a)
{
	struct range r = { .p = map_fenced(PAGES), .fd = -1 };
	const char *result;

	fill(r.p, PAGES);
	r.at = r.p;
	r.len = PAGES * PAGE;
	make(&r);
	if (r.skip) {
		printf("%s %s: not here\n", name, a->name);
	} else {
		result = outcome(madvise(r.at, r.len, a->value));
		printf("%s %s: %s pages %s", name, a->name, result, page_states(r.p, PAGES));
		printf(" referenced %ld kB", smaps_kb("Referenced", r.p, PAGES * PAGE));
		printf(" swapped %ld kB", smaps_kb("Swap", r.p, PAGES * PAGE));
		printf(" contents %s\n", contents(r.p));
	}
	if (r.child) {
		kill(r.child, SIGKILL);
		waitpid(r.child, NULL, 0);
	}
	if (r.fd >= 0)
		close(r.fd);
	unmap_fenced(r.p, PAGES);
}

/* Addresses where there is nothing of ours to look at. */
static void elsewhere(void)
{
	char *p = map_fenced(1);
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
	const struct {
		const char *name;
		unsigned long at;
	} places[] = {
		{ "null", 0 },
		{ "last_page_of_user_space", 0x7ffffffff000 - PAGE },
		{ "first_page_beyond", 0x7ffffffff000 },
		{ "not_canonical", 0x800000000000 },
		{ "tagged", (unsigned long)p | 1UL << 58 },
		{ "kernel", 0xffff888000000000 },
		{ "vsyscall", 0xffffffffff600000 },
		{ "vdso", vdso },
		{ "vvar", vdso - PAGE },
	};

	fill(p, 1);
	for_each_advice(a)
		for (size_t i = 0; i < ARRAY_SIZE(places); i++)
			printf("%s %s: %s\n", places[i].name, a->name,
			       outcome(madvise((void *)places[i].at, PAGE, a->value)));
	unmap_fenced(p, 1);
}

void ranges(void)
{
	for_each_advice(a)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			one(cases[i].name, cases[i].make, a);
	elsewhere();
}
