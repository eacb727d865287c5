// SPDX-License-Identifier: GPL-2.0
/* The other ways into madvise: io_uring, and the system calls of 32-bit code. */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "semantics.h"

#define PAGES		8UL
#define NR_MADVISE_32	219
#define NR_PROCESS_MADVISE_32	440

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void *map_ring(int fd, size_t len, off_t what)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

	if (p == MAP_FAILED)
		die("cannot map the ring");
	return p;
}

static void open_ring(struct ring *r)
{
	struct io_uring_params params = { 0 };
	char *sq, *cq;

	r->fd = syscall(SYS_io_uring_setup, 4, &params);
	if (r->fd < 0)
		die("io_uring_setup");
	sq = map_ring(r->fd, params.sq_off.array + params.sq_entries * sizeof(*r->sq_array),
		      IORING_OFF_SQ_RING);
	cq = map_ring(r->fd, params.cq_off.cqes + params.cq_entries * sizeof(*r->cqes),
		      IORING_OFF_CQ_RING);
	r->sqes = map_ring(r->fd, params.sq_entries * sizeof(*r->sqes), IORING_OFF_SQES);
	r->sq_tail = (void *)(sq + params.sq_off.tail);
	r->sq_mask = (void *)(sq + params.sq_off.ring_mask);
	r->sq_array = (void *)(sq + params.sq_off.array);
	r->cq_head = (void *)(cq + params.cq_off.head);
	r->cq_tail = (void *)(cq + params.cq_off.tail);
	r->cq_mask = (void *)(cq + params.cq_off.ring_mask);
	r->cqes = (void *)(cq + params.cq_off.cqes);
}

/* Workers of the kernel's stay where we are, see pin(). */
static void pin_workers(const struct ring *r)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) ||
	    syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_IOWQ_AFF, &set, sizeof(set)))
		die("cannot keep io_uring on one CPU");
}

/* One request, waited for. */
static int ring_madvise(struct ring *r, void *p, unsigned int len, int advice)
{
	unsigned int tail = *r->sq_tail, head = *r->cq_head;
	struct io_uring_sqe *sqe = &r->sqes[tail & *r->sq_mask];
	int res;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_MADVISE;
	sqe->addr = (unsigned long)p;
	sqe->len = len;
	sqe->fadvise_advice = advice;
	r->sq_array[tail & *r->sq_mask] = tail & *r->sq_mask;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1 ||
	    __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == head)
		die("io_uring_enter");
	res = r->cqes[head & *r->cq_mask].res;
	__atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
	return res;
}

static void show(const char *what, const struct advice *a, long ret, const char *p)
{
	printf("%s %s: %s%s", what, a->name, ret < 0 ? "-" : "",
	       ret < 0 ? strerrorname_np(-ret) : outcome(ret));
	printf(" pages %s", page_states(p, PAGES));
	printf(" %s\n", intact(p, PAGES) ? "intact" : "DAMAGED");
}

void uring(void)
{
	struct ring r;

	open_ring(&r);
	pin_workers(&r);
	for_each_advice(a) {
		char *p = map_fenced(PAGES);

		fill(p, PAGES);
		show("uring", a, ring_madvise(&r, p, PAGES * PAGE, a->value), p);
		show("uring in part", a, ring_madvise(&r, p + PAGE, 3 * PAGE, a->value), p);
		show("uring unaligned", a, ring_madvise(&r, p + 1, PAGE, a->value), p);
		mlock(p + 2 * PAGE, PAGE);
		show("uring locked", a, ring_madvise(&r, p, PAGES * PAGE, a->value), p);
		munmap(p + PAGES * PAGE, PAGE);
		show("uring over a gap", a,
		     ring_madvise(&r, p + 6 * PAGE, 3 * PAGE, a->value), p);
		munmap(p - PAGE, (PAGES + 1) * PAGE);
	}
	close(r.fd);
}

/* A system call as 32-bit code makes it. */
static int syscall_32(int nr, unsigned long a, unsigned long b, unsigned long c,
		      unsigned long d, unsigned long e)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (nr), "b" (a), "c" (b), "d" (c), "S" (d), "D" (e)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

struct iovec_32 {
	unsigned int base, len;
};

static void compat_vector(const struct advice *a, char *p, struct iovec_32 *iov)
{
	int pidfd = syscall(SYS_pidfd_open, getpid(), 0);
	unsigned int at = (unsigned long)p;

	iov[0] = (struct iovec_32){ at, PAGE };
	iov[1] = (struct iovec_32){ at + 2 * PAGE, 0 };
	iov[2] = (struct iovec_32){ at + 4 * PAGE, 2 * PAGE };
	show("compat process_madvise", a,
	     syscall_32(NR_PROCESS_MADVISE_32, pidfd, (unsigned long)iov, 3, a->value, 0), p);
	close(pidfd);
}

void compat(void)
{
	char *low = mmap(NULL, (PAGES + 3) * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	char *p = low + 2 * PAGE;
	unsigned long at = (unsigned long)p;

	if (low == MAP_FAILED || munmap(low + PAGE, PAGE) || munmap(p + PAGES * PAGE, PAGE))
		die("no memory below 4 GiB");
	for_each_advice(a) {
		fill(p, PAGES);
		show("compat", a, syscall_32(NR_MADVISE_32, at, PAGES * PAGE, a->value, 0, 0), p);
		show("compat in part", a,
		     syscall_32(NR_MADVISE_32, at + PAGE, 2 * PAGE + 5, a->value, 0, 0), p);
		show("compat unaligned", a,
		     syscall_32(NR_MADVISE_32, at + 1, PAGE, a->value, 0, 0), p);
		show("compat over a gap", a,
		     syscall_32(NR_MADVISE_32, at + 6 * PAGE, 3 * PAGE, a->value, 0, 0), p);
		compat_vector(a, p, (struct iovec_32 *)low);
	}
}
