// SPDX-License-Identifier: GPL-2.0
/*
 * Livepatch companions, seen from the core. A companion is a module of its
 * own, since a livepatch pins its module and cannot be enabled twice. The core
 * loads it when its path is first switched on; it stays patched while the path
 * goes off and on and is removed by "mmopt unload".
 *
 * The companion's callbacks tell the core when its transition has completed
 * and when somebody begins to undo it. They run under the livepatch core's
 * mutex, so nothing here may wait for a transition while holding a lock that
 * they take.
 */
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/kmod.h>
#include <linux/printk.h>

#include "hook.h"

/* A transition waits for every task to leave the old functions. */
#define TRANSITION_TIMEOUT (30 * HZ)

static int refused(const struct mmopt_klp *klp, int modprobe, char *why,
		   size_t why_len)
{
	int err = READ_ONCE(klp->err);

	if (err == -EBUSY) {
		snprintf(why, why_len, "%s: another livepatch or probe owns a function it patches",
			 klp->module);
		return err;
	}
	if (!modprobe) {
		snprintf(why, why_len, "%s was disabled by hand: remove that module to start afresh",
			 klp->module);
		return -EBUSY;
	}
	snprintf(why, why_len, "%s cannot be loaded (%d): is it built for this kernel? See the kernel log",
		 klp->module, err ?: modprobe);
	return -ENOENT;
}

/**
 * mmopt_klp_get() - have a livepatch in force
 * @klp:     the companion
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Loads the companion unless it is there, and waits for its transition.
 *
 * Context: sleeps. Must not be called from module init: the companion needs
 * the core to be live.
 * Return: 0, -EBUSY if another livepatch or probe owns a function or the
 * livepatch was disabled by hand, -ETIMEDOUT if the transition stalls, -EINTR,
 * or -ENOENT if the companion cannot be loaded.
 */
int mmopt_klp_get(struct mmopt_klp *klp, char *why, size_t why_len)
{
	long left;
	int err;

	if (READ_ONCE(klp->up))
		return 0;
	if (!READ_ONCE(klp->loaded)) {
		WRITE_ONCE(klp->err, 0);
		err = request_module("%s", klp->module);
		if (!READ_ONCE(klp->loaded))
			return refused(klp, err, why, why_len);
	}
	left = wait_for_completion_killable_timeout(&klp->done, TRANSITION_TIMEOUT);
	if (left < 0)
		return -EINTR;
	if (!left) {
		snprintf(why, why_len, "%s: the transition has not completed, see /proc/*/patch_state",
			 klp->module);
		return -ETIMEDOUT;
	}
	return 0;
}

/**
 * mmopt_klp_failed() - a companion was refused
 * @klp: the companion
 * @err: what klp_enable_patch() said
 *
 * Context: the companion's init.
 */
void mmopt_klp_failed(struct mmopt_klp *klp, int err)
{
	WRITE_ONCE(klp->err, err);
}
EXPORT_SYMBOL_GPL(mmopt_klp_failed);

/**
 * mmopt_klp_begun() - a livepatch begins its transition, or has ended undone
 * @klp:    the companion
 * @loaded: which of the two
 *
 * Context: pre_patch and post_unpatch callbacks, under the livepatch core's
 * mutex.
 */
void mmopt_klp_begun(struct mmopt_klp *klp, bool loaded)
{
	WRITE_ONCE(klp->loaded, loaded);
}
EXPORT_SYMBOL_GPL(mmopt_klp_begun);

/**
 * mmopt_klp_up() - the transition has completed
 * @klp: the companion
 *
 * Context: post_patch callback, under the livepatch core's mutex.
 */
void mmopt_klp_up(struct mmopt_klp *klp)
{
	mutex_lock(&klp->feed);
	klp->up = true;
	mutex_unlock(&klp->feed);
	complete_all(&klp->done);
}
EXPORT_SYMBOL_GPL(mmopt_klp_up);

/**
 * mmopt_klp_down() - somebody begins to undo the livepatch
 * @klp: the companion
 *
 * On return no call relies on the patched functions.
 *
 * Context: pre_unpatch callback, under the livepatch core's mutex. Sleeps.
 */
void mmopt_klp_down(struct mmopt_klp *klp)
{
	mutex_lock(&klp->feed);
	klp->up = false;
	reinit_completion(&klp->done);
	mutex_unlock(&klp->feed);
	klp->quiesce();
}
EXPORT_SYMBOL_GPL(mmopt_klp_down);
