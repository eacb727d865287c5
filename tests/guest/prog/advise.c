// SPDX-License-Identifier: GPL-2.0
/*
 * advise: threads that give advice about memory of their own, while others of
 * the same process map and unmap memory. The calls are counted here, for a
 * comparison with what mmopt has counted. Commands come in by standard input:
 *
 *	run N		each adviser makes N calls
 *	go		the advisers call until told otherwise
 *	pause		they stop; no call is under way when the answer comes
 *	churned		tells how often the churners have mapped and unmapped
 *	end		(or end of input) everything stops, the memory is checked
 *
 * Each answer is a line. The churners and onlookers run all the time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

#define CHURN_BYTES	(256UL << 10)
#define STACK_BYTES	(256UL << 10)
#define BUCKETS		(64 * 8)

/* Latencies, eight buckets for each power of two. */
struct hist {
	unsigned long bucket[BUCKETS];
};

struct worker {
	pthread_t thread;
	struct hist hist;
	char *arena;		/* of an adviser */
	unsigned long todo, calls;
};

static struct {
	unsigned int advisers, churners, onlookers, vmas;
	size_t pages;
	bool write;
	const char *advice;
} opt = { .advisers = 1, .vmas = 1, .pages = 64, .advice = "both" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static unsigned int busy;
static volatile bool stopping, ending;

static void note(struct hist *h, uint64_t ns)
{
	unsigned int order = ns < 8 ? 3 : 63 - __builtin_clzll(ns);

	h->bucket[order * 8 + (ns < 8 ? 0 : ns >> (order - 3) & 7)]++;
}

static void add(struct hist *sum, const struct hist *h)
{
	for (size_t i = 0; i < BUCKETS; i++)
		sum->bucket[i] += h->bucket[i];
}

static double quantile_us(const struct hist *h, double q)
{
	unsigned long total = 0, seen = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		total += h->bucket[i];
	for (size_t i = 0; i < BUCKETS; i++) {
		seen += h->bucket[i];
		if (total && seen >= total * q)
			return (double)(8 + i % 8) * (1ULL << i / 8) / 8 / 1000;
	}
	return 0;
}

static int advice_of(unsigned long call)
{
	if (!strcmp(opt.advice, "cold"))
		return MADV_COLD;
	if (!strcmp(opt.advice, "pageout"))
		return MADV_PAGEOUT;
	if (!strcmp(opt.advice, "other"))
		return MADV_WILLNEED;
	return call & 1 ? MADV_PAGEOUT : MADV_COLD;
}

static void call(struct worker *w)
{
	uint64_t start;

	if (opt.write)
		fill(w->arena, opt.pages);
	start = now_ns();
	if (madvise(w->arena, opt.pages * PAGE, advice_of(w->calls)))
		die("madvise");
	note(&w->hist, now_ns() - start);
	w->calls++;
}

static void *advise(void *arg)
{
	struct worker *w = arg;

	pthread_setname_np(pthread_self(), "adviser");
	pthread_mutex_lock(&lock);
	while (!ending) {
		if (!w->todo) {
			pthread_cond_wait(&wake, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		while (w->todo && !stopping) {
			call(w);
			w->todo--;
		}
		pthread_mutex_lock(&lock);
		w->todo = 0;
		if (!--busy)
			pthread_cond_signal(&idle);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* What a process does to its address space all day. */
static void *churn(void *arg)
{
	struct worker *w = arg;
	uint64_t start;
	char *p;

	pthread_setname_np(pthread_self(), "churner");
	while (!ending) {
		start = now_ns();
		p = mmap(NULL, CHURN_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			die("mmap");
		*(volatile char *)p = 1;
		if (munmap(p, CHURN_BYTES))
			die("munmap");
		note(&w->hist, now_ns() - start);
		w->calls++;
	}
	return NULL;
}

/* Asks what of an adviser's memory is resident, in between small mappings. */
static void *look_on(void *arg)
{
	unsigned char resident[16];
	struct worker *w = arg;
	uint64_t start;
	void *p;

	pthread_setname_np(pthread_self(), "onlooker");
	while (!ending) {
		start = now_ns();
		p = mmap(NULL, 16 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || mincore(p, 16 * PAGE, resident) ||
		    munmap(p, 16 * PAGE))
			die("mmap, mincore or munmap");
		note(&w->hist, now_ns() - start);
	}
	return NULL;
}

/* Memory of opt.vmas VMAs: every other one is read-only. */
static char *arena(void)
{
	char *p = map_fenced(opt.pages);
	size_t each = opt.pages / opt.vmas;

	fill(p, opt.pages);
	for (size_t i = 1; i < opt.vmas; i += 2)
		if (mprotect(p + i * each * PAGE, each * PAGE, PROT_READ))
			die("mprotect");
	return p;
}

static struct worker *start(unsigned int n, void *(*fn)(void *))
{
	struct worker *w = calloc(n + 1, sizeof(*w));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (unsigned int i = 0; i < n; i++) {
		if (fn == advise)
			w[i].arena = arena();
		if (pthread_create(&w[i].thread, &attr, fn, &w[i]))
			die("cannot make threads");
	}
	pthread_attr_destroy(&attr);
	return w;
}

static void go(struct worker *w, unsigned long calls)
{
	pthread_mutex_lock(&lock);
	stopping = false;
	busy = opt.advisers;
	for (unsigned int i = 0; i < opt.advisers; i++) {
		w[i].calls = 0;
		w[i].todo = calls;
	}
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
}

static unsigned long total(const struct worker *w, unsigned int n)
{
	unsigned long sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += ((volatile const struct worker *)w)[i].calls;
	return sum;
}

static unsigned long wait_idle(struct worker *w)
{
	unsigned long calls;

	pthread_mutex_lock(&lock);
	while (busy)
		pthread_cond_wait(&idle, &lock);
	calls = total(w, opt.advisers);
	pthread_mutex_unlock(&lock);
	return calls;
}

static void report(const char *who, struct worker *w, unsigned int n)
{
	struct hist sum = { 0 };

	for (unsigned int i = 0; i < n; i++)
		add(&sum, &w[i].hist);
	if (n)
		printf("%s p50 %.0f us p99 %.0f us\n", who, quantile_us(&sum, 0.5),
		       quantile_us(&sum, 0.99));
}

static void obey(struct worker *advisers, const struct worker *churners)
{
	char line[64];
	unsigned long n;

	printf("ready %d\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %lu", &n) == 1) {
			go(advisers, n);
			printf("calls %lu\n", wait_idle(advisers));
		} else if (!strcmp(line, "go\n")) {
			go(advisers, -1UL);
			printf("going\n");
		} else if (!strcmp(line, "pause\n")) {
			stopping = true;
			printf("calls %lu\n", wait_idle(advisers));
		} else if (!strcmp(line, "churned\n")) {
			printf("churned %lu\n", total(churners, opt.churners));
		} else {
			break;
		}
	}
}

static void usage(void)
{
	fprintf(stderr,
		"usage: advise [-a cold|pageout|both|other] [-t ADVISERS] [-c CHURNERS] [-l ONLOOKERS]\n"
		"              [-k KIB] [-v VMAS] [-w]\n"
		"  -w  write the memory before each call\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "a:t:c:l:k:v:w")) != -1) {
		switch (c) {
		case 'a':
			opt.advice = optarg;
			break;
		case 't':
			opt.advisers = atoi(optarg);
			break;
		case 'c':
			opt.churners = atoi(optarg);
			break;
		case 'l':
			opt.onlookers = atoi(optarg);
			break;
		case 'k':
			opt.pages = strtoul(optarg, NULL, 10) / 4;
			break;
		case 'v':
			opt.vmas = atoi(optarg);
			break;
		case 'w':
			opt.write = true;
			break;
		default:
			usage();
		}
	}
	if (optind != argc || !opt.advisers || !opt.vmas || opt.pages < opt.vmas ||
	    (opt.write && opt.vmas > 1))
		usage();
}

static void join(struct worker *w, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
}

int main(int argc, char **argv)
{
	struct worker *advisers, *churners, *onlookers;
	bool same = true;

	parse(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	advisers = start(opt.advisers, advise);
	churners = start(opt.churners, churn);
	onlookers = start(opt.onlookers, look_on);
	obey(advisers, churners);

	pthread_mutex_lock(&lock);
	stopping = true;
	ending = true;
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
	join(advisers, opt.advisers);
	join(churners, opt.churners);
	join(onlookers, opt.onlookers);
	for (unsigned int i = 0; i < opt.advisers; i++)
		same &= intact(advisers[i].arena, opt.pages);
	report("advisers", advisers, opt.advisers);
	report("churners", churners, opt.churners);
	report("onlookers", onlookers, opt.onlookers);
	puts(same ? "intact" : "DAMAGED");
	return !same;
}
