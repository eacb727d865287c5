/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The three ways into the kernel's text, and the count of who is inside. Path
 * files use these; nothing else touches text, kprobes or livepatches.
 */
#ifndef MMOPT_HOOK_H
#define MMOPT_HOOK_H

#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>

/* drain.c */

/**
 * struct mmopt_drain - how many tasks are in a hook's functions
 * @inside: entries minus exits on each CPU; only the sum means something
 */
struct mmopt_drain {
	long __percpu *inside;
};

int mmopt_drain_init(struct mmopt_drain *drain);
void mmopt_drain_exit(struct mmopt_drain *drain);
void mmopt_drain_wait(struct mmopt_drain *drain);

static __always_inline void mmopt_enter(struct mmopt_drain *drain)
{
	this_cpu_inc(*drain->inside);
}

static __always_inline void mmopt_leave(struct mmopt_drain *drain)
{
	this_cpu_dec(*drain->inside);
}

/* entry.c */

/**
 * struct mmopt_entry - a function whose calls are taken over at its entry
 * @symbol:      the function
 * @replacement: runs instead, with the same arguments; ends with mmopt_leave()
 * @eligible:    decides from the arguments; NULL takes every call. Runs with
 *               preemption off, must be notrace and must not touch user memory
 * @drain:       counts who is in @replacement
 * @kp:          the probe
 */
struct mmopt_entry {
	const char *symbol;
	void *replacement;
	bool (*eligible)(struct pt_regs *regs);
	struct mmopt_drain drain;
	struct kprobe kp;
};

int mmopt_entry_arm(struct mmopt_entry *entry, char *why, size_t why_len);
void mmopt_entry_disarm(struct mmopt_entry *entry);
int mmopt_entry_owned(const char *symbol);
int mmopt_entry_selftest(void);

/* callsite.c */

/**
 * struct mmopt_callsite - calls of one function inside another
 * @in:          the function that calls
 * @callee:      the function that it calls
 * @replacement: what it shall call instead, of the same type
 * @nr:          how many such calls are right
 * @optional:    a kernel without the function @in is right too
 */
struct mmopt_callsite {
	const char *in;
	const char *callee;
	void *replacement;
	unsigned int nr;
	bool optional;
};

#define MMOPT_MAX_SITES 16

/**
 * struct mmopt_callsites - a set of call sites that is switched as one
 * @want:    what the path expects, in the order of arming
 * @nr_want: how many
 * @drain:   counts who is in the replacements
 * @site:    the calls that were found, in the order of @want
 * @nr:      how many
 */
struct mmopt_callsites {
	const struct mmopt_callsite *want;
	size_t nr_want;
	struct mmopt_drain drain;
	struct mmopt_site {
		void *at;
		void *stock;
		void *replacement;
		const char *in;
	} site[MMOPT_MAX_SITES];
	unsigned int nr;
};

int mmopt_callsites_init(void);
int mmopt_callsites_find(struct mmopt_callsites *set, char *why, size_t why_len);
int mmopt_callsites_arm(struct mmopt_callsites *set, char *why, size_t why_len);
bool mmopt_callsites_disarm(struct mmopt_callsites *set);

/* klp.c */

/**
 * struct mmopt_klp - a livepatch companion, from the side of the core
 * @module:  its module
 * @quiesce: called when somebody undoes it: no call may rely on it on return
 * @feed:    held to change @up and to begin feeding calls to the livepatch
 * @up:      the transition has completed and nobody has begun to undo it
 * @loaded:  its transition has begun and has not ended undone
 * @err:     why the livepatch core refused it
 * @done:    completes when @up becomes true
 */
struct mmopt_klp {
	const char *module;
	void (*quiesce)(void);
	struct mutex feed;
	bool up;
	bool loaded;
	int err;
	struct completion done;
};

#define MMOPT_KLP_INIT(var, name, fn) {				\
	.module = (name),					\
	.quiesce = (fn),					\
	.feed = __MUTEX_INITIALIZER((var).feed),		\
	.done = COMPLETION_INITIALIZER((var).done),		\
}

int mmopt_klp_get(struct mmopt_klp *klp, char *why, size_t why_len);
void mmopt_klp_failed(struct mmopt_klp *klp, int err);
void mmopt_klp_begun(struct mmopt_klp *klp, bool loaded);
void mmopt_klp_up(struct mmopt_klp *klp);
void mmopt_klp_down(struct mmopt_klp *klp);

#endif /* MMOPT_HOOK_H */
