// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

bool parse_u64(const char *text, __u64 *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool is_key(const char *key)
{
	return *key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

/* Returns false if the key is of a histogram, but not of a bucket. */
static bool parse_bucket(struct stats *stats, const char *key, __u64 value, bool *is_bucket)
{
	static const char *const prefix[HIST_COUNT] = {
		[HIST_TAKEN] = MMOPT_PREFIX_TAKEN_NS,
		[HIST_STOCK] = MMOPT_PREFIX_STOCK_NS,
	};
	__u64 ns;

	*is_bucket = false;
	for (size_t i = 0; i < HIST_COUNT; i++) {
		size_t len = strlen(prefix[i]);

		if (strncmp(key, prefix[i], len))
			continue;
		*is_bucket = true;
		if (!parse_u64(key + len, &ns) || !ns || ns & (ns - 1))
			return false;
		stats->hist[i][__builtin_ctzll(ns)] = value;
	}
	return true;
}

static bool parse_sum(struct stats *stats, const char *key, __u64 value)
{
	bool taken = !strcmp(key, MMOPT_KEY_TAKEN_SUM);

	if (!taken && strcmp(key, MMOPT_KEY_STOCK_SUM))
		return false;
	stats->sum_ns[taken ? HIST_TAKEN : HIST_STOCK] = value;
	return true;
}

static void add_counter(struct stats *stats, const char *key, __u64 value)
{
	struct stats_counter *v = reallocarray(stats->counters, stats->n + 1, sizeof(*v));

	if (!v)
		abort();
	stats->counters = v;
	v[stats->n].key = key;
	v[stats->n++].value = value;
}

static bool parse_line(struct stats *stats, char *line)
{
	char *text = strchr(line, ' ');
	bool is_bucket;
	__u64 value;
	size_t len;

	if (!text)
		return false;
	*text++ = '\0';
	len = strlen(line);
	if (len && line[len - 1] == ':')
		line[len - 1] = '\0';
	if (!is_key(line) || !parse_u64(text, &value))
		return false;
	if (!strcmp(line, MMOPT_KEY_VERSION)) {
		stats->has_version = true;
		stats->version = value;
		return true;
	}
	if (!parse_bucket(stats, line, value, &is_bucket))
		return false;
	if (!is_bucket && !parse_sum(stats, line, value))
		add_counter(stats, line, value);
	return true;
}

/*
 * Takes over @text. A line that is not understood is an error, yet the others
 * are kept; keys that a newer module has added are kept as counters.
 */
int stats_parse(struct stats *stats, char *text, const char *where)
{
	unsigned int number = 0;
	char *save, *line;
	int rc = RC_OK;

	memset(stats, 0, sizeof(*stats));
	stats->text = text;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		number++;
		if (parse_line(stats, line) || rc)
			continue;
		rc = fail(RC_FAILED, 0, where,
			  MMOPT_FILE_STATS " line %u is not a key and a number", number);
		fail_info(VERSIONS_DIFFER);
	}
	if (!stats->has_version && !rc) {
		rc = fail(RC_FAILED, 0, where, MMOPT_FILE_STATS " has no version line");
		fail_info(VERSIONS_DIFFER);
	} else if (stats->version > MMOPT_STATS_VERSION) {
		out_warn(where, MMOPT_FILE_STATS " has format %llu, this tool knows %u: update it",
			 stats->version, MMOPT_STATS_VERSION);
	}
	return rc;
}

/* Of a path, whatever can be had; says what is wrong. */
int stats_read(struct stats *stats, const char *path)
{
	char *text = file_slurp("%s/%s/" MMOPT_FILE_STATS, control_dir(), path);
	bool no_right = !text && (errno == EACCES || errno == EPERM);
	int rc;

	if (text)
		return stats_parse(stats, text, path);
	memset(stats, 0, sizeof(*stats));
	rc = fail(no_right ? RC_DENIED : RC_FAILED, errno, path, "cannot read " MMOPT_FILE_STATS);
	fail_info(no_right ? "run mmopt as root" : "see the kernel log (dmesg)");
	return rc;
}

void stats_free(struct stats *stats)
{
	free(stats->counters);
	free(stats->text);
	memset(stats, 0, sizeof(*stats));
}

static __u64 add_capped(__u64 a, __u64 b)
{
	__u64 sum;

	return __builtin_add_overflow(a, b, &sum) ? ULLONG_MAX : sum;
}

__u64 hist_total(const __u64 *hist)
{
	__u64 total = 0;

	for (size_t i = 0; i < HIST_BUCKETS; i++)
		total = add_capped(total, hist[i]);
	return total;
}

/*
 * @percent of the calls took less than this many nanoseconds: the upper bound
 * of the bucket in which that call is, as buckets tell no more. 0 for no calls.
 */
__u64 hist_below(const __u64 *hist, unsigned int percent)
{
	__u64 total = hist_total(hist), seen = 0, rank;

	if (!total)
		return 0;
	/* total * percent / 100, rounded up, without overflow */
	rank = total / 100 * percent + (total % 100 * percent + 99) / 100;
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		seen = add_capped(seen, hist[i]);
		if (seen >= rank)
			return i < HIST_BUCKETS - 1 ? 2ULL << i : ULLONG_MAX;
	}
	return ULLONG_MAX;
}
