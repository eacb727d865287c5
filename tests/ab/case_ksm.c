// SPDX-License-Identifier: GPL-2.0
/*
 * How long ksmd takes to merge 32 MiB, or to scan them where nothing is the same,
 * alone or while other threads of the process map and unmap memory; to merge what
 * 200 processes have in common; and how long unmerging takes, which stays stock.
 *
 * What one run has merged is unmerged for the next by writing 2 to "run", which
 * gives each page a copy of its own again.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ab.h"

#define SYSFS		"/sys/kernel/mm/ksm/"
#define PAGE		4096UL
#define WORDS		(PAGE / sizeof(uint64_t))
#define PAGES		8192
#define PROCS		200
#define PROC_PAGES	256
#define PATIENCE_NS	120000000000ULL

enum contents { identical, pairs, unique };

struct ksm_load {
	enum contents contents;
	bool procs;
	bool unmerge;
	double locks[AB_MODE_COUNT];	/* negative: not known yet */
};

static struct {
	char *p;
	enum contents contents;
} memory = { .contents = -1 };

static struct {
	pid_t pid;
	int to, from;
} procs[PROCS];

/* In the order in which they are set; the values are the kernel's own. */
static struct {
	const char *file;
	const char *value;
	char before[24];
} settings[] = {
	{ "advisor_mode", "none", "" },
	{ "pages_to_scan", "10000000", "" },
	{ "sleep_millisecs", "0", "" },
	{ "smart_scan", "0", "" },
	{ "use_zero_pages", "0", "" },
};

static bool read_setting(const char *file, char *text, int size)
{
	char name[128], line[64], *chosen;
	FILE *f;
	bool ok;

	snprintf(name, sizeof(name), SYSFS "%s", file);
	f = fopen(name, "re");
	if (!f)
		return false;
	ok = fgets(line, sizeof(line), f);
	fclose(f);
	if (!ok)
		return false;
	chosen = strchr(line, '[');	/* "[none] scan-time" */
	chosen = chosen ? chosen + 1 : line;
	chosen[strcspn(chosen, "]\n")] = 0;
	return snprintf(text, size, "%s", chosen) < size;
}

static int write_setting(const char *file, const char *value)
{
	char name[128];
	FILE *f;

	snprintf(name, sizeof(name), SYSFS "%s", file);
	f = fopen(name, "we");
	if (f && fputs(value, f) >= 0 && !fclose(f))
		return 0;
	ab_error("%s: cannot write %s: %s", name, value, strerror(errno));
	return -1;
}

static long value_of(const char *file)
{
	char text[24];

	return read_setting(file, text, sizeof(text)) ? strtol(text, NULL, 10) : -1;
}

static void fill(char *p, size_t pages, enum contents contents)
{
	for (size_t i = 0; i < pages; i++) {
		uint64_t n = contents == identical ? 0 : contents == pairs ? i / 2 : i;

		for (size_t j = 0; j < WORDS; j++)
			((volatile uint64_t *)(p + i * PAGE))[j] =
				(n + 1) * 0x9e3779b97f4a7c15ULL;
	}
}

static int check(const char *p, size_t pages, enum contents contents, const char *name)
{
	for (size_t i = 0; i < pages; i++) {
		uint64_t n = contents == identical ? 0 : contents == pairs ? i / 2 : i;

		for (size_t j = 0; j < WORDS; j++) {
			if (((const uint64_t *)(p + i * PAGE))[j] ==
			    (n + 1) * 0x9e3779b97f4a7c15ULL)
				continue;
			ab_error("%s: CONTENTS LOST in page %zu", name, i);
			return -1;
		}
	}
	return 0;
}

static char *mergeable(size_t pages, enum contents contents)
{
	const size_t len = pages * PAGE;
	char *p = mmap(NULL, len + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, len, PROT_READ | PROT_WRITE) ||
	    madvise(p + PAGE, len, MADV_NOHUGEPAGE) || madvise(p + PAGE, len, MADV_MERGEABLE))
		return NULL;
	fill(p + PAGE, pages, contents);
	return p + PAGE;
}

/* A process with 1 MiB that all of them have, until it is told to end. */
int ab_ksm_main(void)
{
	char *p = mergeable(PROC_PAGES, unique), end;

	if (!p || write(STDOUT_FILENO, "r", 1) != 1)
		return 1;
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	return check(p, PROC_PAGES, unique, "200procs") ? 1 : 0;
}

static int stop_procs(void)
{
	int err = 0;

	for (size_t i = 0; i < PROCS && procs[i].pid; i++) {
		close(procs[i].to);
		close(procs[i].from);
		if (ab_wait(procs[i].pid, "a process with mergeable memory"))
			err = -1;
		procs[i].pid = 0;
	}
	return err;
}

static int start_procs(void)
{
	char ready;

	for (size_t i = 0; i < PROCS; i++) {
		procs[i].pid = ab_spawn_self(AB_AS_KSM, "1", &procs[i].to, &procs[i].from);
		if (procs[i].pid < 0) {
			procs[i].pid = 0;
			return -1;
		}
		if (read(procs[i].from, &ready, 1) != 1) {
			ab_error("a process with mergeable memory does not start");
			return -1;
		}
	}
	return 0;
}

static int ksm_setup(const struct ab_case *c)
{
	(void)c;
	if (access(SYSFS "run", W_OK))
		return AB_SKIP;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (!settings[i].before[0] &&
		    !read_setting(settings[i].file, settings[i].before,
				  sizeof(settings[i].before)))
			return AB_SKIP;
	return 0;
}

/* Everything is private, ksmd stands still, and is set to go on without a break. */
static int prepare(const struct ksm_load *l)
{
	if (write_setting("run", "2"))
		return -1;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (write_setting(settings[i].file, settings[i].value))
			return -1;
	if (l->procs) {
		munmap(memory.p, memory.p ? PAGES * PAGE : 0);
		memory.p = NULL;
		return start_procs();
	}
	if (!memory.p)
		memory.p = mergeable(PAGES, l->contents);
	else if (memory.contents != l->contents)
		fill(memory.p, PAGES, l->contents);
	memory.contents = l->contents;
	if (memory.p)
		return 0;
	ab_error("no mergeable memory: %s", strerror(errno));
	return -1;
}

static void ksm_teardown(const struct ab_case *c)
{
	(void)c;
	if (access(SYSFS "run", W_OK))
		return;
	write_setting("run", "2");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].before[0])
			write_setting(settings[i].file, settings[i].before);
	write_setting("run", "0");
}

static bool merged(const struct ksm_load *l)
{
	long shared = value_of("pages_shared"), sharing = value_of("pages_sharing");

	if (l->procs)
		return shared >= PROC_PAGES && shared + sharing == PROCS * PROC_PAGES;
	return shared + sharing == PAGES;
}

static int wait_for(const struct ksm_load *l, long scans)
{
	uint64_t end = ab_now() + PATIENCE_NS;

	while (scans >= 0 ? value_of("full_scans") < scans : !merged(l)) {
		if (ab_stop || ab_now() > end) {
			ab_error("ksmd does not come to an end: %ld shared, %ld sharing",
				 value_of("pages_shared"), value_of("pages_sharing"));
			return -1;
		}
		usleep(1000);
	}
	return 0;
}

/* ms of a merge, or of a full scan behind the first two, which make the trees. */
static int timed(const struct ksm_load *l, double *ms)
{
	long scans = value_of("full_scans");
	uint64_t t = ab_now();

	if (write_setting("run", "1"))
		return -1;
	if (!l->procs && l->contents == unique) {
		if (wait_for(l, scans + 2))
			return -1;
		t = ab_now();
		if (wait_for(l, scans + 4))
			return -1;
		*ms = (ab_now() - t) / 2e6;
		return write_setting("run", "0");
	}
	if (wait_for(l, -1))
		return -1;
	if (l->unmerge) {
		t = ab_now();
		if (write_setting("run", "2"))
			return -1;
	}
	*ms = (ab_now() - t) / 1e6;
	return l->unmerge ? 0 : write_setting("run", "0");
}

static pid_t ksmd(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char file[300], name[17];
	pid_t pid = 0;
	FILE *f;

	while (proc && !pid && (entry = readdir(proc))) {
		snprintf(file, sizeof(file), "/proc/%s/comm", entry->d_name);
		f = atoi(entry->d_name) ? fopen(file, "re") : NULL;
		if (f && fscanf(f, "%16s", name) == 1 && !strcmp(name, "ksmd"))
			pid = atoi(entry->d_name);
		if (f)
			fclose(f);
	}
	if (proc)
		closedir(proc);
	return pid;
}

struct traced {
	const struct ksm_load *load;
	double ms;
};

static int traced(void *arg)
{
	struct traced *t = arg;

	return timed(t->load, &t->ms);
}

/*
 * mmap_lock acquisitions by ksmd for each page scanned. Stock: by the kernel's own
 * trace event. On: by the path's counters, since the event fires for elided ones too.
 */
static int count_locks(const struct ab_case *c, enum ab_mode mode)
{
	struct ksm_load *l = c->load;
	struct traced t = { .load = l };
	static struct ab_counters before, after;
	long pages = value_of("pages_scanned");
	double locks;

	l->locks[mode] = NAN;
	if (mode == AB_on) {
		if (ab_counters_read(c->path, &before) || timed(l, &t.ms) ||
		    ab_counters_read(c->path, &after))
			return -1;
		locks = ab_counter(&after, "mmap_locks") - ab_counter(&before, "mmap_locks");
	} else if (ab_count_events("mmap_lock/mmap_lock_acquire_returned", "success == 1",
				   ksmd(), traced, &t, &locks)) {
		return -1;
	}
	pages = value_of("pages_scanned") - pages;
	if (pages > 0)
		l->locks[mode] = locks / pages;
	return l->procs && stop_procs() ? -1 : prepare(l);
}

static int ksm_run(const struct ab_case *c, enum ab_mode mode, struct ab_sample *s)
{
	struct ksm_load *l = c->load;
	struct ab_churn *churn = NULL;
	int err;

	if (prepare(l) || (l->locks[mode] < 0 && count_locks(c, mode)))
		return -1;
	s->locks = l->locks[mode];
	if (c->churners) {
		churn = ab_churn_start(c->churners, mode == AB_limit);
		if (!churn)
			return -1;
	}
	err = timed(l, &s->value);
	if (churn && ab_churn_stop(churn, &s->churn))
		err = -1;
	if (l->procs && stop_procs())
		err = -1;
	s->calls = PAGES;
	if (err || l->procs)
		return err;
	return check(memory.p, PAGES, l->contents, c->name);
}

#define CASE(name_, contents_, churners_, full_, ...) {			\
	.path = "ksm", .name = name_, .unit = "ms", .churners = churners_,	\
	.full = full_, .setup = ksm_setup, .run = ksm_run,		\
	.teardown = ksm_teardown,					\
	.load = &(struct ksm_load){ .contents = contents_,		\
				    .locks = { -1, -1, -1, -1 }, __VA_ARGS__ }, \
}

const struct ab_case ab_ksm_cases[] = {
	CASE("identical-0churn", identical, 0, true),
	CASE("identical-1churn", identical, 1, true),
	CASE("identical-4churn", identical, 4, true),
	CASE("pairs-0churn", pairs, 0, false),
	CASE("pairs-1churn", pairs, 1, true),
	CASE("pairs-4churn", pairs, 4, false),
	CASE("unique-0churn", unique, 0, false),
	CASE("unique-1churn", unique, 1, true),
	CASE("unique-4churn", unique, 4, false),
	CASE("200procs", unique, 0, true, .procs = true),
	CASE("unmerge", pairs, 0, true, .unmerge = true),
	{ }
};
