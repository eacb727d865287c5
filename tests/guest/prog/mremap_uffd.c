// SPDX-License-Identifier: GPL-2.0
/*
 * mremap and userfaultfd.
 *
 *   missing SECONDS [event]  a collector moves pages away with DONTUNMAP, two
 *                            mutators touch what is left, a handler fills it
 *   wp                       write-protection across moves, with and without
 *                            remap events; lines for a comparison
 *   move SECONDS             another thread moves huge pages by UFFDIO_MOVE between
 *                            the same two PMD tables; both must get on
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mremap.h"

#define SIZE		(8 * MIB)
#define PAGES		(SIZE / PAGE)
#define MUTATORS	2

static int uffd;
static char *from, *to;
static atomic_bool ending, wrong;
static atomic_ulong events, filled, touched;

static void open_uffd(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		die("userfaultfd");
}

static void watch(char *p, size_t len, uint64_t mode)
{
	struct uffdio_register reg = { .range = { (uintptr_t)p, len }, .mode = mode };

	if (ioctl(uffd, UFFDIO_REGISTER, &reg))
		die("UFFDIO_REGISTER");
}

/* A page that somebody waits for, at either place. */
static void fill_page(uintptr_t addr)
{
	static char page[PAGE] __attribute__((aligned(PAGE)));
	uintptr_t base = addr >= (uintptr_t)to ? (uintptr_t)to : (uintptr_t)from;
	struct uffdio_copy copy = {
		.dst = addr & ~(PAGE - 1), .src = (uintptr_t)page, .len = PAGE,
	};

	tag_one(page, (copy.dst - base) / PAGE);
	/* two waited, or the memory is on the move: whoever waits asks again */
	if (!ioctl(uffd, UFFDIO_COPY, &copy))
		atomic_fetch_add(&filled, 1);
	else if (errno == EEXIST || errno == EAGAIN || errno == ENOENT)
		ioctl(uffd, UFFDIO_WAKE, &(struct uffdio_range){ copy.dst, PAGE });
	else
		die("UFFDIO_COPY");
}

static void *handle(void *arg)
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };
	struct uffd_msg msg;

	while (!atomic_load(&ending)) {
		if (poll(&p, 1, 50) < 1 || read(uffd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		if (msg.event == UFFD_EVENT_REMAP)
			atomic_fetch_add(&events, 1);
		else if (msg.event == UFFD_EVENT_PAGEFAULT)
			fill_page(msg.arg.pagefault.address);
		else
			die("unexpected event %#x", msg.event);
	}
	return NULL;
}

static void *mutate(void *arg)
{
	unsigned int i = (uintptr_t)arg;

	while (!atomic_load(&ending)) {
		i = (i * 1103515245 + 12345) & 0x7fffffff;
		if (!tagged_one(from + (i >> 8) % PAGES * PAGE, (i >> 8) % PAGES))
			atomic_store(&wrong, true);
		atomic_fetch_add(&touched, 1);
	}
	return NULL;
}

/* What has been moved away is whole, as far as it was there. */
static void look(void)
{
	uint64_t *entries = pagemap(to, PAGES);

	for (size_t i = 0; i < PAGES; i++)
		if (entries[i] & PM_PRESENT && !tagged_one(to + i * PAGE, i))
			atomic_store(&wrong, true);
	free(entries);
}

static int missing(unsigned int seconds, bool event)
{
	uint64_t end = now_ns() + seconds * 1000000000ULL;
	pthread_t handler, mutators[MUTATORS];
	unsigned long moves = 0;
	bool good;

	from = map_at(window(0) + 2 * MIB, SIZE, ANON);
	to = window(1) + 4 * MIB;
	open_uffd(event ? UFFD_FEATURE_EVENT_REMAP : 0);
	watch(from, SIZE, UFFDIO_REGISTER_MODE_MISSING);
	if (pthread_create(&handler, NULL, handle, NULL))
		die("cannot make threads");
	for (size_t i = 0; i < MUTATORS; i++)
		if (pthread_create(&mutators[i], NULL, mutate, (void *)(i + 1)))
			die("cannot make threads");
	while (now_ns() < end && !atomic_load(&wrong)) {
		unsigned long before = atomic_load(&touched);

		while (atomic_load(&touched) < before + 200)
			usleep(500);
		move(from, SIZE, SIZE, MREMAP_DONTUNMAP, to);
		look();
		unmap(to, SIZE);
		moves++;
	}
	/* the handler last: mutators may wait for it, and it for its turn to count */
	while (atomic_load(&touched) < 1000)
		usleep(500);
	for (int i = 0; event && atomic_load(&events) < moves && i < 10000; i++)
		usleep(1000);
	good = !atomic_load(&wrong) && moves && filled && events == (event ? moves : 0);
	printf("moves %lu filled %lu touched %lu events %lu\n", moves, filled, touched, events);
	puts(good ? "intact" : "DAMAGED");
	fflush(stdout);
	_exit(!good);
}

#ifndef UFFDIO_MOVE
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};

#define UFFDIO_MOVE	_IOWR(UFFDIO, 0x05, struct uffdio_move)
#define UFFD_FEATURE_MOVE	(1 << 16)
#endif

/* Huge pages that UFFDIO_MOVE takes to and fro, beside the memory that mremap moves. */
static void *move_by_uffd(void *arg)
{
	char *p[2] = { window(0) + 64 * MIB, window(1) + 64 * MIB };
	struct uffdio_move m = { .len = SIZE };

	map_at(p[1], SIZE, THP);
	watch(p[1], SIZE, UFFDIO_REGISTER_MODE_MISSING);
	map_at(p[0], SIZE, THP);
	tag(p[0], PAGES, 0);
	watch(p[0], SIZE, UFFDIO_REGISTER_MODE_MISSING);
	for (int turn = 0; !atomic_load(&ending); turn = !turn) {
		m.src = (uintptr_t)p[turn];
		m.dst = (uintptr_t)p[!turn];
		/* the mm is being changed: what has not moved yet remains */
		for (uint64_t done = 0; done < SIZE;) {
			m.src = (uintptr_t)p[turn] + done;
			m.dst = (uintptr_t)p[!turn] + done;
			m.len = SIZE - done;
			if (ioctl(uffd, UFFDIO_MOVE, &m) && errno != EAGAIN)
				die("UFFDIO_MOVE");
			done += m.move > 0 ? m.move : 0;
		}
		if (!tagged(p[!turn], PAGES, 0))
			atomic_store(&wrong, true);
		atomic_fetch_add(&filled, 1);
	}
	return NULL;
}

static int moving(unsigned int seconds)
{
	uint64_t end = now_ns() + seconds * 1000000000ULL;
	char *p[2] = { window(0) + 2 * MIB, window(1) + 4 * MIB };
	unsigned long moves = 0;
	pthread_t other;
	bool good;

	open_uffd(UFFD_FEATURE_MOVE);
	map_at(p[0], SIZE, ANON);
	tag(p[0], PAGES, 0);
	if (pthread_create(&other, NULL, move_by_uffd, NULL))
		die("cannot make a thread");
	for (; now_ns() < end || moves & 1; moves++)
		move(p[moves & 1], SIZE, SIZE, 0, p[~moves & 1]);
	atomic_store(&ending, true);
	pthread_join(other, NULL);
	good = !atomic_load(&wrong) && moves && filled && tagged(p[0], PAGES, 0);
	printf("moves %lu by userfaultfd %lu\n", moves, filled);
	puts(good ? "intact" : "DAMAGED");
	return !good;
}

static void *read_event(void *arg)
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };
	struct uffd_msg msg;

	if (poll(&p, 1, 10000) != 1 || read(uffd, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_REMAP)
		die("no remap event");
	return NULL;
}

static size_t protected(const char *p, size_t n)
{
	uint64_t *entries = pagemap(p, n);
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += !!(entries[i] & PM_UFFD_WP);
	free(entries);
	return sum;
}

static void wp_case(enum kind kind, size_t shift, bool event, bool swapped)
{
	struct uffdio_writeprotect protect = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	size_t step = kind == THP ? 512 : 3;
	pthread_t reader;

	from = map_at(window(0) + 2 * MIB, SIZE, kind);
	to = window(1) + 4 * MIB + shift;
	tag(from, PAGES, 0);
	open_uffd(UFFD_FEATURE_PAGEFAULT_FLAG_WP | (event ? UFFD_FEATURE_EVENT_REMAP : 0));
	watch(from, SIZE, UFFDIO_REGISTER_MODE_WP);
	for (size_t i = 0; i < PAGES; i += 2 * step) {
		protect.range.start = (uintptr_t)from + i * PAGE;
		protect.range.len = (i + step < PAGES ? step : PAGES - i) * PAGE;
		if (ioctl(uffd, UFFDIO_WRITEPROTECT, &protect))
			die("UFFDIO_WRITEPROTECT");
	}
	if (swapped && madvise(from + SIZE / 2, SIZE / 2, MADV_PAGEOUT))
		die("MADV_PAGEOUT");
	printf("%s shift %zu events %d swapped %d: protected %zu", kind_names[kind],
	       shift / PAGE, event, swapped, protected(from, PAGES));
	if (event && pthread_create(&reader, NULL, read_event, NULL))
		die("cannot make threads");
	move(from, SIZE, SIZE, 0, to);
	if (event)
		pthread_join(reader, NULL);
	printf(" then %zu", protected(to, PAGES));
	printf(" contents %s\n", tagged(to, PAGES, 0) ? "intact" : "DAMAGED");
	close(uffd);
	/* with the watch gone, everything can be written */
	tag(to, PAGES, 1);
	unmap(to, SIZE);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "missing"))
		return missing(strtoul(argv[2], NULL, 10), argc > 3);
	if (argc == 3 && !strcmp(argv[1], "move"))
		return moving(strtoul(argv[2], NULL, 10));
	if (argc != 2 || strcmp(argv[1], "wp")) {
		fprintf(stderr, "usage: mremap_uffd wp | move SECONDS | missing SECONDS [event]\n");
		return 2;
	}
	pin();
	for (enum kind kind = ANON; kind <= THP; kind++)
		for (size_t shift = 0; shift <= PAGE; shift += PAGE)
			for (int event = 0; event <= 1; event++)
				for (int swapped = 0; swapped <= (kind == ANON ? 1 : 0); swapped++)
					wp_case(kind, shift, event, swapped);
	return 0;
}
