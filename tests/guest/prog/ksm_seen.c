// SPDX-License-Identifier: GPL-2.0
/*
 * ksm_seen SECONDS: one thread writes to mergeable pages, another reads them on
 * another CPU, and children that share them write to theirs. What the reader sees is
 * what was published last, or what is being written: nothing older, and nothing
 * of a page that has been merged away.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ksm.h"

#define PAGES	192
#define WORDS	(PAGE / sizeof(uint64_t))
#define ALIEN	0xdeadULL

static volatile uint64_t *memory;
static atomic_uint published[PAGES];	/* how often each page has been written */
static atomic_bool enough;
static unsigned long seen, bad;

/* A few values, so that pages are alike; one that is out of date differs from the next. */
static uint64_t value(unsigned int times)
{
	return times % 4 + 1;
}

static void write_page(unsigned int page, uint64_t v)
{
	for (size_t i = 0; i < WORDS; i++)
		memory[page * WORDS + i] = v;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("no CPU %d", cpu);
}

static void *reader(void *arg)
{
	on_cpu(1);
	for (unsigned int page = 0; !atomic_load(&enough); page = (page + 1) % PAGES) {
		unsigned int times = atomic_load(&published[page]);
		uint64_t v = memory[page * WORDS + page % WORDS];

		if (times != atomic_load(&published[page]))
			continue;
		seen++;
		if (v == value(times) || v == value(times + 1))
			continue;
		if (!bad++)
			printf("page %u: %#lx after %u writes\n", page, (unsigned long)v, times);
	}
	return NULL;
}

static void *writer(void *arg)
{
	unsigned int seed = 1;

	on_cpu(0);
	while (!atomic_load(&enough)) {
		unsigned int page = rand_r(&seed) % PAGES;
		unsigned int times = atomic_load(&published[page]) + 1;

		write_page(page, value(times));
		atomic_store(&published[page], times);
		usleep(300);
	}
	return NULL;
}

static void share_with_child(unsigned int *seed)
{
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork");
	if (!pid) {
		usleep(rand_r(seed) % 4000);
		for (unsigned int page = 0; page < PAGES; page++)
			write_page(page, ALIEN);
		_exit(0);
	}
	rand_r(seed);
	if (waitpid(pid, NULL, 0) != pid)
		die("the child is gone");
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (argc > 1 ? atoi(argv[1]) : 5) * 1000000000ULL;
	pthread_t read, write;
	unsigned int seed = 2;

	memory = (volatile uint64_t *)map_fenced(PAGES);
	for (unsigned int page = 0; page < PAGES; page++)
		write_page(page, value(0));
	if (madvise((void *)memory, PAGES * PAGE, MADV_MERGEABLE))
		die("KSM is not there");
	if (pthread_create(&read, NULL, reader, NULL) || pthread_create(&write, NULL, writer, NULL))
		die("no thread");
	while (now_ns() < end)
		share_with_child(&seed);
	atomic_store(&enough, true);
	pthread_join(read, NULL);
	pthread_join(write, NULL);
	printf("%lu of %lu wrong\n", bad, seen);
	return bad ? 1 : 0;
}
