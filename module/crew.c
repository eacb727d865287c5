// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel threads that help a task with work that can be cut into items: one item
 * at a time, taken when the one before is done, by the caller and by whoever of
 * the crew has come. The caller waits for none who has not taken an item, so that
 * it can always finish alone, however busy the other CPUs are; and for those who
 * have only as long as that item takes, since they do it under a spinlock, which no
 * other task can interrupt. (A hypervisor can take the CPU away, as from any holder
 * of a lock.) With PREEMPT_RT one could, and the caller would wait for a task that
 * matters less: no help there.
 *
 * Threads of our own and not a workqueue: a helper runs where the caller may run and
 * with its nice value, and a worker of an unbound queue belongs to whoever comes next.
 *
 * A helper gets nothing of the caller's but its CPUs and its nice value, so an item
 * must not sleep, allocate, or ask who current is. Its CPU time is not charged to
 * the caller's cgroup, nor weighed by it: a task whose cgroup has a limit on that gets
 * no help, nor does one that is scheduled by anything else than its nice value, or may
 * run on isolated CPUs.
 */
#include <linux/bitmap.h>
#include <linux/cpumask.h>
#include <linux/jump_label.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "crew.h"
#include "ksym.h"

/**
 * struct work - what a caller wants done; on its stack
 * @fn:    does one item
 * @arg:   for @fn
 * @items: how many there are
 * @next:  the first that nobody has taken
 */
struct work {
	void (*fn)(void *arg, unsigned int item);
	void *arg;
	unsigned int items;
	atomic_t next;
};

/**
 * struct member - a thread of the crew
 * @task:  the thread
 * @lock:  protects @work, and is held while the thread does an item of it
 * @work:  whose items to take
 */
struct member {
	struct task_struct *task;
	spinlock_t lock; /* see above */
	struct work *work;
};

static struct member crew[MMOPT_CREW_MAX - 1];
static unsigned long hired; /* a bit for each whom a caller has */
static unsigned int crew_size;

static bool take(struct work *work, unsigned int *item)
{
	*item = atomic_fetch_inc(&work->next);
	return *item < work->items;
}

/* Does one item, if there is one. */
static bool help(struct member *m)
{
	struct work *work;
	unsigned int item;

	spin_lock(&m->lock);
	work = m->work;
	if (work && take(work, &item)) {
		work->fn(work->arg, item);
	} else {
		m->work = NULL;
		work = NULL;
	}
	spin_unlock(&m->lock);
	return work;
}

static int serve(void *arg)
{
	struct member *m = arg;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!READ_ONCE(m->work)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		while (help(m))
			cond_resched();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* Has the task's cgroup, or one above it, a limit on CPU time? Under RCU. */
#ifndef CONFIG_CFS_BANDWIDTH

static bool limited(void)
{
	return false;
}

static int find_limit(char *why, size_t why_len)
{
	return 0;
}

#elif MMOPT_TASK_LIMITED

bool proto_limited(struct task_struct *task);

MMOPT_DEFINE_KFUNC(cfs_task_bw_constrained, proto_limited);

static bool limited(void)
{
	return static_call(k_cfs_task_bw_constrained)(current);
}

static int find_limit(char *why, size_t why_len)
{
	static const struct mmopt_kfunc fn[] = { MMOPT_KFUNC(cfs_task_bw_constrained) };
	static const struct mmopt_btf_want want[] = {
		MMOPT_WANT_FUNC(cfs_task_bw_constrained, "bool (struct task_struct *)"),
	};
	int err = mmopt_kfunc_bind(fn, ARRAY_SIZE(fn), why, why_len);

	return err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
}

#else

/* Older kernels only tell whether any cgroup has one, or had one when it was removed. */
static struct static_key *any_limit;

static bool limited(void)
{
	return static_key_count(any_limit);
}

static int find_limit(char *why, size_t why_len)
{
	any_limit = (struct static_key *)mmopt_ksym("__cfs_bandwidth_used");
	if (any_limit)
		return 0;
	snprintf(why, why_len, "no symbol __cfs_bandwidth_used");
	return -ENOENT;
}

#endif

static void begin(struct member *m, struct work *work)
{
	/* fails if the caller's CPUs are all going down */
	if (set_cpus_allowed_ptr(m->task, current->cpus_ptr))
		return;
	set_user_nice(m->task, task_nice(current));
	spin_lock(&m->lock);
	m->work = work;
	spin_unlock(&m->lock);
	wake_up_process(m->task);
}

/* Whoever has taken an item has done it then. */
static void end(struct member *m)
{
	spin_lock(&m->lock);
	m->work = NULL;
	spin_unlock(&m->lock);
	clear_bit_unlock(m - crew, &hired);
}

/* How many others may work for the caller. */
static unsigned int others(void)
{
	bool usual = current->policy == SCHED_NORMAL || current->policy == SCHED_BATCH;
	unsigned int cpus = cpumask_weight_and(current->cpus_ptr, cpu_online_mask);

	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !usual || cpus < 2)
		return 0;
	/* the cgroup can be left, and go, and CPUs become isolated, meanwhile */
	rcu_read_lock();
	if (limited() ||
	    !cpumask_subset(current->cpus_ptr, housekeeping_cpumask(HK_TYPE_DOMAIN)))
		cpus = 1;
	rcu_read_unlock();
	return cpus - 1;
}

/**
 * mmopt_crew_do() - do work, with help if there is some
 * @fn:      does one item; in any order, and several at once
 * @arg:     for @fn
 * @items:   how many
 * @helpers: how many helpers to ask at most; those whom nobody else has, and no more
 *           than there are other CPUs for the caller
 *
 * Context: sleeps. @fn must not, nor mind who runs it.
 * Return: how many items helpers did.
 */
unsigned int mmopt_crew_do(void (*fn)(void *arg, unsigned int item), void *arg,
			   unsigned int items, unsigned int helpers)
{
	struct work work = { .fn = fn, .arg = arg, .items = items };
	unsigned int i, item, mine = 0;
	unsigned long got = 0;

	helpers = helpers ? min(helpers, others()) : 0;
	for (i = 0; i < crew_size && helpers; i++) {
		if (test_and_set_bit_lock(i, &hired))
			continue;
		begin(&crew[i], &work);
		__set_bit(i, &got);
		helpers--;
	}
	for (; take(&work, &item); mine++) {
		fn(arg, item);
		cond_resched();
	}
	for_each_set_bit(i, &got, crew_size)
		end(&crew[i]);
	return items - mine;
}

/**
 * mmopt_crew_init() - find out how to see what a task may use
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Return: 0 or a negative errno.
 */
int mmopt_crew_init(char *why, size_t why_len)
{
	return find_limit(why, why_len);
}

/**
 * mmopt_crew_start() - let there be helpers
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: sleeps.
 * Return: 0 or a negative errno.
 */
int mmopt_crew_start(char *why, size_t why_len)
{
	unsigned int want = min_t(unsigned int, num_online_cpus() - 1, ARRAY_SIZE(crew));
	struct task_struct *task;
	struct member *m;

	for (m = crew; m < crew + want; m++) {
		spin_lock_init(&m->lock);
		task = kthread_run(serve, m, "mmopt_crew/%zu", m - crew);
		if (IS_ERR(task)) {
			snprintf(why, why_len, "no thread mmopt_crew/%zu", m - crew);
			mmopt_crew_stop();
			return PTR_ERR(task);
		}
		m->task = task;
		crew_size++;
	}
	return 0;
}

/**
 * mmopt_crew_stop() - send the helpers away
 *
 * Context: sleeps. Nobody is in mmopt_crew_do() any more.
 */
void mmopt_crew_stop(void)
{
	struct task_struct *task;

	while (crew_size) {
		task = crew[--crew_size].task;
		/* where it was last called to, somebody may not let it run */
		set_cpus_allowed_ptr(task, current->cpus_ptr);
		kthread_stop(task);
	}
}
