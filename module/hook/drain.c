// SPDX-License-Identifier: GPL-2.0
/*
 * Who is inside. A hook's function counts itself in at its first and out at
 * its last line, which leaves two gaps: a task can be preempted between the
 * patched call and mmopt_enter(), and between mmopt_leave() and its return.
 *
 * synchronize_rcu_tasks() waits until each task has once slept of its own
 * accord or been in user mode, so it closes the gaps, as there is no voluntary
 * sleep in them. It takes two: after the first, everyone who got in through
 * the hook that was just removed has been counted, so the sum can only fall and
 * zero is final; after the second, everyone has also left.
 */
#include <linux/delay.h>
#include <linux/rcupdate.h>

#include "hook.h"

int mmopt_drain_init(struct mmopt_drain *drain)
{
	drain->inside = alloc_percpu(long);
	return drain->inside ? 0 : -ENOMEM;
}

void mmopt_drain_exit(struct mmopt_drain *drain)
{
	free_percpu(drain->inside);
	drain->inside = NULL;
}

static long inside(const struct mmopt_drain *drain)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(drain->inside, cpu));
	return sum;
}

/**
 * mmopt_drain_wait() - wait until no task is in the functions of a hook
 * @drain: of the hook, which must be out of the text already
 *
 * Context: sleeps, for as long as the longest call under way.
 */
void mmopt_drain_wait(struct mmopt_drain *drain)
{
	synchronize_rcu_tasks();
	while (inside(drain))
		msleep(1);
	synchronize_rcu_tasks();
}
