/* SPDX-License-Identifier: GPL-2.0 */
/* A/B measurement: the same loads with mmopt absent, off and on. */
#ifndef AB_H
#define AB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * stock: module not loaded.  off: loaded, path off.  on: path on.
 * limit: module not loaded and the interfering threads in another process,
 * so that they use the same CPUs but not the same mmap_lock.  A case without
 * interfering threads is measured under stock conditions once more: the ratio
 * limit/stock then shows how much of a difference is noise.
 */
#define AB_MODES(X) X(stock) X(off) X(on) X(limit)

enum ab_mode {
#define X(id) AB_##id,
	AB_MODES(X)
#undef X
	AB_MODE_COUNT
};

extern const char *const ab_mode_names[AB_MODE_COUNT];

/* What interfering threads got done meanwhile. */
struct ab_churned {
	double p99_us;		/* of their own mmap and munmap together */
	double per_s;		/* mappings, all threads together */
};

/* What one measurement gives; NAN where a case has no such figure. */
struct ab_sample {
	double value;		/* in the unit of the case */
	double call_p99_us;	/* of the measured calls */
	double worst_ms;	/* the longest of them */
	struct ab_churned churn;
	double flushes;		/* of the TLB, for one call */
	double locks;		/* of mmap_lock by ksmd, for each page scanned */
	unsigned long calls;	/* of the path's operation, warm-up included */
};

#define AB_SKIP	1		/* this machine lacks what the case takes */

struct ab_case {
	const char *path;
	const char *name;
	const char *unit;
	unsigned int churners;
	bool spinner;		/* another thread runs meanwhile */
	bool swap;		/* needs a swap device */
	bool full;		/* only if --cases asks for it */
	void *load;		/* of the functions below */
	int (*setup)(const struct ab_case *c);	/* 0, -1 or AB_SKIP */
	int (*run)(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s);
	void (*teardown)(const struct ab_case *c);
};

extern const struct ab_case ab_copy_cases[];
extern const struct ab_case ab_madvise_cases[];
extern const struct ab_case ab_mremap_cases[];
extern const struct ab_case ab_realloc_cases[];
extern const struct ab_case ab_ksm_cases[];
extern const struct ab_case ab_pagemap_cases[];

/* Each ends with an entry without a name. */
extern const struct ab_case *const ab_suites[];

/* clock.c: time and statistics */

#define AB_HIST_SUB	16	/* buckets per power of two: 6 % */

struct ab_hist {
	uint32_t n[64 * AB_HIST_SUB];
};

uint64_t ab_now(void);
void ab_sleep_ms(unsigned int ms);
void ab_hist_add(struct ab_hist *h, uint64_t ns);
void ab_hist_merge(struct ab_hist *to, const struct ab_hist *from);
uint64_t ab_hist_count(const struct ab_hist *h);
double ab_hist_quantile(const struct ab_hist *h, double q);
double ab_quantile(const double *v, size_t n, double q);

struct ab_loop {
	int (*batch)(void *arg);	/* timed */
	void (*prepare)(void *arg);	/* before each batch, not timed; may be NULL */
	void *arg;
	unsigned int calls;		/* of one batch */
	unsigned int ms;
	unsigned int min;		/* batches at least; 0: as many as usual */
	double quantile;		/* of the batches, see ab_quiet() */
	bool anywhere;			/* on any CPU, not on one */
};

int ab_quiet(const struct ab_loop *l, double *per_call);
double ab_yardstick_ns(void);

/* spawn.c: other processes */

#define AB_AS_CHURN	"--as-churn"
#define AB_AS_FORK	"--as-fork"
#define AB_AS_SPIN	"--as-spin"
#define AB_AS_KSM	"--as-ksm"

int ab_exec(char *const argv[]);
pid_t ab_spawn_self(const char *role, const char *arg, int *to, int *from);
int ab_wait(pid_t pid, const char *what);

/* churn.c: threads that keep mmap_lock busy */

struct ab_churn;

struct ab_churn *ab_churn_start(unsigned int threads, bool elsewhere);
int ab_churn_stop(struct ab_churn *c, struct ab_churned *got);
int ab_churn_main(const char *threads);

/* spin.c: a thread that only runs */

struct ab_spin;

int ab_spin_setup(const struct ab_case *c);
struct ab_spin *ab_spin_start(bool elsewhere);
int ab_spin_stop(struct ab_spin *s);
int ab_spin_main(void);

/* flush.c */

int ab_count_events(const char *event, const char *filter, pid_t tid,
		    int (*fn)(void *arg), void *arg, double *n);
int ab_count_flushes(int (*fn)(void *arg), void *arg, double *flushes);

/* case_ksm.c: one of its processes */

int ab_ksm_main(void);

/* bystander.c: calls that are none of a path's business */

int ab_dontneed_setup(const struct ab_case *c);
int ab_dontneed_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s);
int ab_fork_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s);
int ab_fork_main(const char *ms);

/* control.c: mmopt itself, by the commands of its users */

#define AB_PATHS_MAX	8
#define AB_REASON_LEN	256
#define AB_COUNTERS_MAX	64

struct ab_counters {
	size_t n;
	struct {
		char key[48];
		unsigned long long value;
	} c[AB_COUNTERS_MAX];
};

bool ab_loaded(void);
int ab_load(void);
int ab_unload(void);
int ab_set_mode(const char *path, enum ab_mode mode);
int ab_available(const char *path, char *why);
int ab_still_on(const char *path);
int ab_counters_read(const char *path, struct ab_counters *c);
unsigned long long ab_counter(const struct ab_counters *c, const char *key);
void ab_counters_add_delta(struct ab_counters *sum, const struct ab_counters *before,
			   const struct ab_counters *after);

/* swap.c */

int ab_swap_on(void);
void ab_swap_off(void);
unsigned long long ab_swapped_out(void);

/* report.c */

struct ab_result {
	const struct ab_case *c;
	const char *unit;
	unsigned int runs;	/* complete ones */
	bool skip;
	struct ab_sample *s[AB_MODE_COUNT];
	struct ab_counters counters;
};

struct ab_host {
	const char *kernel;
	const char *accel;
	const char *commit;
	struct {
		const char *path;
		char why[AB_REASON_LEN];
	} missing[AB_PATHS_MAX];
	unsigned int nmissing;
};

void ab_print(const struct ab_host *host, const struct ab_result *r, size_t n);
int ab_write_json(const char *file, const struct ab_host *host,
		  const struct ab_result *r, size_t n);

/* Set by SIGINT and SIGTERM: finish the measurement, restore and go. */
extern volatile int ab_stop;

void ab_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* AB_H */
