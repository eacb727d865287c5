/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ways into the kernel's text, and the count of who is inside. Path files
 * use these; nothing else touches text, ftrace or kprobes.
 */
#ifndef MMOPT_HOOK_H
#define MMOPT_HOOK_H

#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
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
int mmopt_drain_wait(struct mmopt_drain *drain);

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
 * @symbol:      the function, for messages
 * @addr:        its address
 * @replacement: runs instead, with the same arguments; ends with mmopt_leave()
 * @eligible:    decides from the arguments, all that @regs has; NULL takes every
 *               call. Runs with preemption off, must be notrace and must not touch
 *               user memory
 * @drain:       counts who is in @replacement
 * @nmissed:     calls that passed unseen because they came from within tracing
 * @ops:         the hook
 */
struct mmopt_entry {
	const char *symbol;
	unsigned long addr;
	void *replacement;
	bool (*eligible)(struct pt_regs *regs);
	struct mmopt_drain drain;
	unsigned long nmissed;
	struct ftrace_ops ops;
};

int mmopt_entry_arm(struct mmopt_entry *entry, char *why, size_t why_len);
int mmopt_entry_disarm(struct mmopt_entry *entry, char *why, size_t why_len);
void mmopt_entry_explain(const struct mmopt_entry *entry, struct seq_file *m);
bool mmopt_entry_owned(const char *symbol);
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

/**
 * struct mmopt_role - calls that do the same thing for a region
 * @what:        "lock", "lookup", "walk", "unlock": for messages
 * @callee:      the function that is called for it
 * @replacement: what shall be called instead, of the same type
 * @min:         fewest calls of it that are right, in the whole region
 * @max:         most calls of it that are right
 */
struct mmopt_role {
	const char *what;
	const char *callee;
	void *replacement;
	unsigned int min;
	unsigned int max;
};

/**
 * struct mmopt_region - code whose calls in several roles are turned together
 * @in:       the functions that the code is in, ends with NULL. The first must
 *            be there; others may have been inlined
 * @role:     in the order of arming: unlocks first, locks last
 * @nr_roles: how many, at most MMOPT_MAX_ROLES
 * @alien:    how the names of functions begin that could do a role's work in a
 *            way that the path does not know, ends with NULL. A call of one
 *            that is neither in @in nor in @role is an error
 * @harmless: exceptions from @alien, ends with NULL
 */
struct mmopt_region {
	const char *const *in;
	const struct mmopt_role *role;
	unsigned int nr_roles;
	const char *const *alien;
	const char *const *harmless;
};

#define MMOPT_MAX_SITES 40
#define MMOPT_MAX_ROLES 8

/**
 * struct mmopt_callsites - a set of call sites that is switched as one
 * @want:    what the path expects
 * @nr_want: how many
 * @region:  what it expects besides, or NULL
 * @guard:   name of the kernel's mutex that everybody holds who is between the
 *           first and the last call of a region, or comes to a call that is
 *           turned: it is held while sites are turned, so that all see either
 *           none or all of them turned. Or NULL
 * @mutex:   that mutex
 * @drain:   counts who is in the replacements; of no use with a guard. Without
 *           one, also who is between a replaced lock and its unlock: the locks
 *           are turned back first, and the rest when the count is zero
 * @site:    the calls that were found, in the order of arming
 * @nr:      how many
 * @first_lock: index of the first that has the region's last role
 */
struct mmopt_callsites {
	const struct mmopt_callsite *want;
	size_t nr_want;
	const struct mmopt_region *region;
	const char *guard;
	struct mutex *mutex; /* the guard */
	struct mmopt_drain drain;
	struct mmopt_site {
		void *at;
		void *stock;
		void *replacement;
		const char *in;
		struct kprobe reserve;
	} site[MMOPT_MAX_SITES];
	unsigned int nr;
	unsigned int first_lock;
};

int mmopt_callsites_init(struct mmopt_callsites *set, char *why, size_t why_len);
void mmopt_callsites_exit(struct mmopt_callsites *set);
int mmopt_callsites_arm(struct mmopt_callsites *set, char *why, size_t why_len);
int mmopt_callsites_disarm(struct mmopt_callsites *set, char *why, size_t why_len);
void mmopt_callsites_explain(const struct mmopt_callsites *set, struct seq_file *m);

#endif /* MMOPT_HOOK_H */
