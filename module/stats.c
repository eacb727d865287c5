// SPDX-License-Identifier: GPL-2.0
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "stats.h"

static const char *const counter_name[] = {
#define X(id, what) #id,
	MMOPT_COUNTERS(X)
#undef X
};

int mmopt_stats_init(struct mmopt_stats *stats)
{
	stats->cpu = alloc_percpu(struct mmopt_stats_cpu);
	return stats->cpu ? 0 : -ENOMEM;
}

void mmopt_stats_exit(struct mmopt_stats *stats)
{
	free_percpu(stats->cpu);
	stats->cpu = NULL;
}

/**
 * mmopt_stats_reset() - set all numbers to zero
 * @stats: of the path
 *
 * Calls that end meanwhile may be lost or survive: the numbers are for
 * people, and a lock would be paid by every call.
 */
void mmopt_stats_reset(struct mmopt_stats *stats)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(stats->cpu, cpu), 0, sizeof(*stats->cpu));
	if (stats->nmissed)
		WRITE_ONCE(*stats->nmissed, 0);
}

#define SUM(field) ({						\
	u64 sum_ = 0;						\
	int cpu_;						\
	for_each_possible_cpu(cpu_)				\
		sum_ += READ_ONCE(per_cpu_ptr(stats->cpu, cpu_)->field); \
	sum_; })

static void show_hist(struct mmopt_stats *stats, struct seq_file *m,
		      const char *prefix, enum mmopt_hist hist)
{
	unsigned int b;
	u64 n;

	for (b = 0; b < MMOPT_NR_BUCKETS; b++) {
		n = SUM(bucket[hist][b]);
		if (n)
			seq_printf(m, "%s%llu %llu\n", prefix, 1ULL << b, n);
	}
}

/**
 * mmopt_stats_show() - print the file "stats"
 * @stats: of the path
 * @m:     where to
 */
void mmopt_stats_show(struct mmopt_stats *stats, struct seq_file *m)
{
	unsigned int i;

	seq_printf(m, MMOPT_KEY_VERSION ": %d\n", MMOPT_STATS_VERSION);
	for (i = 0; i < MMOPT_NR_COUNTERS; i++)
		seq_printf(m, "%s %llu\n", counter_name[i], SUM(counter[i]));
	seq_printf(m, MMOPT_KEY_NMISSED " %lu\n",
		   stats->nmissed ? READ_ONCE(*stats->nmissed) : 0);
	for (i = 0; i < stats->nr_extras; i++)
		seq_printf(m, "%s %llu\n", stats->extra[i], SUM(extra[i]));
	for (i = 0; i < stats->nr_fallbacks; i++)
		seq_printf(m, MMOPT_PREFIX_FALLBACK "%s %llu\n",
			   stats->fallback[i], SUM(fallback[i]));
	seq_printf(m, MMOPT_KEY_TAKEN_SUM " %llu\n", SUM(sum_ns[MMOPT_HIST_TAKEN]));
	seq_printf(m, MMOPT_KEY_STOCK_SUM " %llu\n", SUM(sum_ns[MMOPT_HIST_STOCK]));
	show_hist(stats, m, MMOPT_PREFIX_TAKEN_NS, MMOPT_HIST_TAKEN);
	show_hist(stats, m, MMOPT_PREFIX_STOCK_NS, MMOPT_HIST_STOCK);
}
