// SPDX-License-Identifier: GPL-2.0
/*
 * Who is inside. A hook's function counts itself in at its first and out at
 * its last line, which leaves two gaps: a task can be preempted between the
 * patched call and mmopt_enter(), and between mmopt_leave() and its return.
 *
 * synchronize_rcu_tasks() waits until each task has once slept of its own
 * accord or been in user mode, and there is no such sleep in the gaps. Once
 * after the hook is out of the text: everyone who still got in has been counted,
 * so the sum can only fall, and zero is final although the CPUs are not read at
 * one instant. Once more before the text may be freed: everyone has returned.
 */
#include <linux/delay.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

#include "hook.h"

int mmopt_drain_init(struct mmopt_drain *drain)
{
	drain->inside = alloc_percpu(long);
	return drain->inside ? 0 : -ENOMEM;
}

/**
 * mmopt_drain_exit() - end counting; the functions of the hook may be freed
 * @drain: drained before, or never initialised
 *
 * Context: sleeps until those who were counted out have returned.
 */
void mmopt_drain_exit(struct mmopt_drain *drain)
{
	if (!drain->inside)
		return;
	synchronize_rcu_tasks();
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
 * mmopt_drain_wait() - wait until no call of a hook is under way
 * @drain: of the hook, which must be out of the text already and stay out
 *
 * A call can last as long as its caller likes (reclaim to a slow device, a lock
 * behind a user-space file system), so the wait can be interrupted.
 *
 * Context: sleeps. One waiter at a time.
 * Return: 0, or -EINTR if calls are still under way.
 */
int mmopt_drain_wait(struct mmopt_drain *drain)
{
	synchronize_rcu_tasks();
	while (inside(drain)) {
		if (signal_pending(current))
			return -EINTR;
		msleep_interruptible(1);
	}
	return 0;
}
