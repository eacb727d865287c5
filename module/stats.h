/* SPDX-License-Identifier: GPL-2.0 */
/* Counters and latency histograms of a path: per CPU, summed on read. */
#ifndef MMOPT_STATS_H
#define MMOPT_STATS_H

#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/types.h>
#include <mmopt/abi.h>

struct seq_file;

enum mmopt_counter {
#define X(id, what) MMOPT_##id,
	MMOPT_COUNTERS(X)
#undef X
	MMOPT_NR_COUNTERS
};

/* What a path's own lists in the ABI become there: identifiers and names. */
#define MMOPT_AS_EXTRA(id, what) EXTRA_##id,
#define MMOPT_AS_FALLBACK(id, what) FALLBACK_##id,
#define MMOPT_AS_NAME(id, what) #id,

#define MMOPT_MAX_EXTRAS	8
#define MMOPT_MAX_FALLBACKS	16
/* From 1 ns to above half an hour. */
#define MMOPT_NR_BUCKETS	42

enum mmopt_hist { MMOPT_HIST_TAKEN, MMOPT_HIST_STOCK, MMOPT_NR_HISTS };

struct mmopt_stats_cpu {
	u64 counter[MMOPT_NR_COUNTERS];
	u64 extra[MMOPT_MAX_EXTRAS];
	u64 fallback[MMOPT_MAX_FALLBACKS];
	u64 bucket[MMOPT_NR_HISTS][MMOPT_NR_BUCKETS];
	u64 sum_ns[MMOPT_NR_HISTS];
};

/**
 * struct mmopt_stats - statistics of one path
 * @extra:        names of the path's own counters, in its own order
 * @nr_extras:    how many
 * @fallback:     names of the fallback reasons, in the path's own order
 * @nr_fallbacks: how many
 * @nmissed:      where the path's probe counts its misses, or NULL
 * @cpu:          the numbers
 */
struct mmopt_stats {
	const char *const *extra;
	unsigned int nr_extras;
	const char *const *fallback;
	unsigned int nr_fallbacks;
	unsigned long *nmissed;
	struct mmopt_stats_cpu __percpu *cpu;
};

int mmopt_stats_init(struct mmopt_stats *stats);
void mmopt_stats_exit(struct mmopt_stats *stats);
void mmopt_stats_reset(struct mmopt_stats *stats);
void mmopt_stats_show(struct mmopt_stats *stats, struct seq_file *m);

static inline void mmopt_count(struct mmopt_stats *stats, enum mmopt_counter c,
			       u64 n)
{
	this_cpu_add(stats->cpu->counter[c], n);
}

/* @ns: how long the call took, from its entry into mmopt to its end. */
static inline void mmopt_count_latency(struct mmopt_stats *stats,
				       enum mmopt_hist hist, u64 ns)
{
	unsigned int b = ns ? min_t(unsigned int, ilog2(ns), MMOPT_NR_BUCKETS - 1) : 0;

	this_cpu_inc(stats->cpu->bucket[hist][b]);
	this_cpu_add(stats->cpu->sum_ns[hist], ns);
}

#endif /* MMOPT_STATS_H */
