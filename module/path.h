/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A path: one memory-management operation that mmopt makes faster. The core
 * (path.c, control.c) switches, counts and shows paths; a path file says how
 * its own hooks go in and out and what they do.
 */
#ifndef MMOPT_PATH_H
#define MMOPT_PATH_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <mmopt/abi.h>

#include "stats.h"

struct mmopt_callsites;
struct mmopt_entry;

#define MMOPT_REASON_LEN 200

enum mmopt_state {
#define X(id) MMOPT_STATE_##id,
	MMOPT_STATES(X)
#undef X
};

struct mmopt_path;

/**
 * struct mmopt_path_ops - what a path file provides
 * @probe: resolve and verify all that the path relies on, write the reason to
 *         @why if something differs. Called once, at load; names @sites or @entry.
 * @start: get what the hooks need while they are armed; may be NULL.
 * @stop:  undo @start, when no task runs in the hooks any more.
 *
 * All may sleep. @start and @stop run under the lock of the path.
 */
struct mmopt_path_ops {
	int (*probe)(struct mmopt_path *path, char *why, size_t why_len);
	int (*start)(struct mmopt_path *path, char *why, size_t why_len);
	void (*stop)(struct mmopt_path *path);
};

/**
 * struct mmopt_tunable - a number that a path lets people set
 * @name:  of its file, ends with the unit
 * @value: where it is; read and written whole, without a lock
 * @min:   least value that is right
 * @max:   greatest value that is right
 */
struct mmopt_tunable {
	const char *name;
	unsigned long *value;
	unsigned long min;
	unsigned long max;
};

/* For the lists of tunables in the ABI: each is a variable of that name. */
#define MMOPT_TUNABLE(id, min, max, what)	{ #id, &id, min, max },

/**
 * struct mmopt_path - a path and its state
 * @name:      as in the ABI
 * @ops:       the path file's functions
 * @tunables:  ends with an empty one; may be NULL
 * @fast:      hooks take calls, they pass every call on without it; calls under
 *             way when it goes may still be taken
 * @sites:     its call sites; set by @probe
 * @entry:     or the entry that it takes over
 * @bypassed:  kernel functions that do not run when a call is taken, ends with
 *             NULL: if another patcher owns one, the path must not be on
 * @stats:     counters and histograms
 * @lock:      serialises switching; protects @enabled, @observe, @armed,
 *             @held
 * @enabled:   hooks take calls
 * @observe:   hooks stay armed while the path is off
 * @armed:     hooks are in the text
 * @held:      they are, or calls are still in them: the module cannot go
 * @state:     what the file "state" says; read without lock
 * @say:       protects @reason
 * @reason:    why unavailable or tripped
 * @trip_work: takes a tripped path out of service
 */
struct mmopt_path {
	const char *name;
	const struct mmopt_path_ops *ops;
	const struct mmopt_tunable *tunables;
	struct static_key_false *fast;
	struct mmopt_callsites *sites;
	struct mmopt_entry *entry;
	const char *const *bypassed;
	struct mmopt_stats stats;

	struct mutex lock; /* switching */
	bool enabled;
	bool observe;
	bool armed;
	bool held;
	enum mmopt_state state;
	spinlock_t say; /* the reason */
	char reason[MMOPT_REASON_LEN];
	struct work_struct trip_work;
};

/* Every path, in the order of the ABI; ends with NULL. */
extern struct mmopt_path *const mmopt_paths[];
extern struct mmopt_path mmopt_path_copy, mmopt_path_mremap, mmopt_path_madvise,
	mmopt_path_ksm, mmopt_path_pagemap;

#define mmopt_for_each_path(p, i) \
	for ((i) = 0; ((p) = mmopt_paths[i]); (i)++)

struct mmopt_path *mmopt_path_find(const char *name, size_t len);
int mmopt_path_init(struct mmopt_path *path, const char *unfit);
void mmopt_path_exit(struct mmopt_path *path);
int mmopt_path_enable(struct mmopt_path *path, bool on);
int mmopt_path_observe(struct mmopt_path *path, bool observe);
bool mmopt_path_recheck(void);
void mmopt_path_trip(struct mmopt_path *path, const char *why);
int mmopt_path_describe(struct mmopt_path *path, char *buf, size_t len);

#endif /* MMOPT_PATH_H */
