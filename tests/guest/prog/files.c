// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped files. PAGEOUT drops page cache only for those who own the file or may
 * write it; private copies of pages are the caller's own in any case. Pages
 * 4 to 11 of 16 are advised.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "semantics.h"

#define PAGES	16UL
#define FROM	4UL
#define COUNT	8UL
#define ROOT	0
#define NOBODY	65534

#define DISK	"/var/tmp/mmopt-semantics"
#define TMPFS	"/dev/shm/mmopt-semantics"

static const struct file_case {
	const char *name;
	const char *path;
	uid_t owner;
	uid_t user;
	mode_t mode;
	int flags;
	bool write;	/* pages 6 to 9, through the mapping */
	bool at_once;	/* made by one write, so perhaps in large folios */
} cases[] = {
	{ "shared, of root, by root", DISK, ROOT, ROOT, 0644, MAP_SHARED, false, false },
	{ "private, of root, by root", DISK, ROOT, ROOT, 0644, MAP_PRIVATE, false, false },
	{ "private and written, of root, by root", DISK, ROOT, ROOT, 0644, MAP_PRIVATE, true, false },
	{ "shared, of nobody, by root", DISK, NOBODY, ROOT, 0400, MAP_SHARED, false, false },
	{ "shared, of nobody, by nobody", DISK, NOBODY, NOBODY, 0400, MAP_SHARED, false, false },
	{ "private, of nobody, by nobody", DISK, NOBODY, NOBODY, 0400, MAP_PRIVATE, false, false },
	{ "shared, of root, by nobody", DISK, ROOT, NOBODY, 0644, MAP_SHARED, false, false },
	{ "private, of root, by nobody", DISK, ROOT, NOBODY, 0644, MAP_PRIVATE, false, false },
	{ "private and written, of root, by nobody", DISK, ROOT, NOBODY, 0644, MAP_PRIVATE, true, false },
	{ "shared, writable, of root, by nobody", DISK, ROOT, NOBODY, 0666, MAP_SHARED, false, false },
	{ "made at once, shared, of root, by root", DISK, ROOT, ROOT, 0644, MAP_SHARED, false, true },
	{ "made at once, private and written, of root, by nobody", DISK, ROOT, NOBODY, 0644, MAP_PRIVATE, true, true },
	{ "tmpfs, shared, of root, by root", TMPFS, ROOT, ROOT, 0644, MAP_SHARED, false, false },
	{ "tmpfs, private and written, of root, by root", TMPFS, ROOT, ROOT, 0644, MAP_PRIVATE, true, false },
	{ "tmpfs, shared, of root, by nobody", TMPFS, ROOT, NOBODY, 0644, MAP_SHARED, false, false },
	{ "tmpfs, shared, of nobody, by nobody", TMPFS, NOBODY, NOBODY, 0400, MAP_SHARED, false, false },
};

static int make(const struct file_case *c)
{
	size_t step = c->at_once ? PAGES * PAGE : PAGE;
	char data[PAGES * PAGE];
	bool good = true;
	int fd;

	unlink(c->path);
	fd = open(c->path, O_CREAT | O_EXCL | O_RDWR, 0600);
	fill(data, PAGES);
	for (size_t at = 0; at < sizeof(data); at += step)
		good &= write(fd, data + at, step) == (ssize_t)step;
	if (!good || fsync(fd) || fchown(fd, c->owner, c->owner) || fchmod(fd, c->mode))
		die("cannot make %s", c->path);
	return fd;
}

/* In a child, which may have given root up. */
static void advise(const struct file_case *c, const struct advice *a)
{
	int prot = PROT_READ | (c->write ? PROT_WRITE : 0);
	int fd = open(c->path, O_RDONLY);
	const char *result;
	volatile char *v;
	char *p;

	if (c->user && (setresgid(c->user, c->user, c->user) ||
			setresuid(c->user, c->user, c->user)))
		die("cannot become %d", c->user);
	p = mmap(NULL, PAGES * PAGE, prot, c->flags, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		die("cannot map %s", c->path);
	v = p;
	for (size_t i = 0; i < PAGES; i++)
		(void)v[i * PAGE];
	for (size_t i = 6; c->write && i < 10; i++)
		memset(p + i * PAGE, 'w', PAGE);
	result = outcome(madvise(p + FROM * PAGE, COUNT * PAGE, a->value));
	printf("%s %s: %s", c->name, a->name, result);
	if (c->user == ROOT)
		printf(" pages %s", page_states(p, PAGES));
	printf(" referenced %ld kB swapped %ld kB", smaps_kb("Referenced", p, PAGES * PAGE),
	       smaps_kb("Swap", p, PAGES * PAGE));
	for (size_t i = 6; c->write && i < 10; i++)
		if (p[i * PAGE] != 'w' || p[i * PAGE + PAGE - 1] != 'w')
			printf(" DAMAGED");
	fflush(stdout);
	_exit(0);
}

static void one(const struct file_case *c, const struct advice *a)
{
	int fd = make(c), status;
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	pid_t pid = fork();

	if (!pid)
		advise(c, a);
	if (p == MAP_FAILED || pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("%s: the child failed", c->name);
	printf(" cached %s", cached(p, PAGES));
	printf(" %s\n", intact(p, PAGES) ? "intact" : "DAMAGED");
	munmap(p, PAGES * PAGE);
	close(fd);
	unlink(c->path);
}

void files(void)
{
	for_each_advice(a)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			one(&cases[i], a);
}
