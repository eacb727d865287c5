// SPDX-License-Identifier: GPL-2.0
/*
 * Call-site retargeting: the call instructions of X inside a given function
 * call our function instead. Nobody else who calls X notices.
 *
 * The calls are found by decoding the function with the kernel's own decoder
 * (calls.c) and turned with arch_static_call_transform(), by which the kernel
 * turns its static calls: the same text_poke protocol, and the padding that
 * call depth tracking wants. That function stops the machine when the bytes
 * are not a call, so each site is looked at again before it is turned.
 *
 * The kernel is built with -flive-patching, which rules out that a caller
 * relies on more than the ABI of a function whose body it has seen.
 */
#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/static_call.h>
#include <asm/insn.h>
#include <asm/text-patching.h>

#include "../ksym.h"
#include "calls.h"
#include "hook.h"

int proto_insn_decode(struct insn *insn, const void *kaddr, int len,
			     enum insn_mode mode);
MMOPT_DEFINE_KFUNC(insn_decode, proto_insn_decode);

static const struct mmopt_kfunc decoder[] = { MMOPT_KFUNC(insn_decode) };
static unsigned long text_lo, text_hi;

/* Serialises looking at sites and turning them. */
static DEFINE_MUTEX(sites_lock);

/* The order is the kernel's own for static calls. */
static void lock_sites(void)
{
	cpus_read_lock();
	mutex_lock(&sites_lock);
}

static void unlock_sites(void)
{
	mutex_unlock(&sites_lock);
	cpus_read_unlock();
}

static int insn_len(const u8 *p, size_t avail)
{
	struct insn insn;

	if (static_call(k_insn_decode)(&insn, p, min_t(size_t, avail, MAX_INSN_SIZE),
				       INSN_MODE_KERN))
		return -1;
	return insn.length;
}

/**
 * mmopt_callsites_init() - prepare the search for call sites
 *
 * Return: 0, or -ENOENT if the kernel lacks what the search needs.
 */
int mmopt_callsites_init(void)
{
	char why[80];

	text_lo = mmopt_ksym("_stext");
	text_hi = mmopt_ksym("_etext");
	if (!text_lo || !text_hi)
		return -ENOENT;
	return mmopt_kfunc_bind(decoder, ARRAY_SIZE(decoder), why, sizeof(why));
}

static int find_in(struct mmopt_callsites *set,
		   const struct mmopt_callsite *want, char *why, size_t why_len)
{
	struct mmopt_call call[MMOPT_MAX_SITES];
	struct mmopt_callee callee = {
		.name = want->callee,
		.addr = mmopt_ksym(want->callee),
		.min = want->nr,
		.max = want->nr,
	};
	struct mmopt_text text = {
		.name = want->in,
		.addr = mmopt_ksym(want->in),
		.text_lo = text_lo,
		.text_hi = text_hi,
		.insn_len = insn_len,
	};
	int i, nr;

	if (!text.addr && want->optional)
		return 0;
	if (!text.addr || !callee.addr) {
		snprintf(why, why_len, "no symbol %s",
			 text.addr ? want->callee : want->in);
		return -ENOENT;
	}
	text.bytes = (const u8 *)text.addr;
	text.len = mmopt_ksym_size(text.addr);
	nr = mmopt_calls_find(&text, &callee, 1, call,
			      MMOPT_MAX_SITES - set->nr, why, why_len);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++) {
		struct mmopt_site *site = &set->site[set->nr++];

		site->at = (void *)(text.addr + call[i].offset);
		site->stock = (void *)callee.addr;
		site->replacement = want->replacement;
		site->in = want->in;
	}
	return 0;
}

/**
 * mmopt_callsites_find() - find the calls that a path wants to turn
 * @set:     what it expects
 * @why:     gets the difference between expected and found
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, or a negative errno if the text is not as expected; then no site
 * is known.
 */
int mmopt_callsites_find(struct mmopt_callsites *set, char *why, size_t why_len)
{
	size_t i;
	int err = 0;

	lock_sites();
	set->nr = 0;
	for (i = 0; i < set->nr_want && !err; i++)
		err = find_in(set, &set->want[i], why, why_len);
	if (err)
		set->nr = 0;
	unlock_sites();
	return err;
}

/* Does the site hold a call of @target? Text changes under text_mutex only. */
static bool calls(const struct mmopt_site *site, const void *target)
{
	u8 insn[CALL_INSN_SIZE];
	s32 rel;

	memcpy(insn, site->at, sizeof(insn));
	memcpy(&rel, insn + 1, sizeof(rel));
	return insn[0] == CALL_INSN_OPCODE &&
	       (u8 *)site->at + CALL_INSN_SIZE + rel == target;
}

static void turn(const struct mmopt_site *site, void *target)
{
	arch_static_call_transform(site->at, NULL, target, false);
}

/**
 * mmopt_callsites_arm() - let the sites call their replacements
 * @set:     found before
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Turned in the order of the set.
 *
 * Context: may sleep.
 * Return: 0, or -EBUSY if somebody else changed a site; then none is turned.
 */
int mmopt_callsites_arm(struct mmopt_callsites *set, char *why, size_t why_len)
{
	unsigned int i;
	int err = 0;

	lock_sites();
	for (i = 0; i < set->nr && !err; i++) {
		if (calls(&set->site[i], set->site[i].stock))
			continue;
		snprintf(why, why_len, "a call in %s was changed by another patcher",
			 set->site[i].in);
		err = -EBUSY;
	}
	for (i = 0; i < set->nr && !err; i++)
		turn(&set->site[i], set->site[i].replacement);
	unlock_sites();
	return err;
}

/**
 * mmopt_callsites_disarm() - let the sites call the stock functions again
 * @set: found before
 *
 * In reverse order; sites that are not armed stay as they are. A site that somebody else has changed since is left alone,
 * and mmopt stays loaded for good: that somebody may still call us.
 *
 * Context: sleeps until no task is in a replacement.
 * Return: true if a site was armed.
 */
bool mmopt_callsites_disarm(struct mmopt_callsites *set)
{
	bool armed = false;
	unsigned int i;

	lock_sites();
	for (i = set->nr; i--;) {
		if (calls(&set->site[i], set->site[i].replacement)) {
			turn(&set->site[i], set->site[i].stock);
			armed = true;
			continue;
		}
		if (calls(&set->site[i], set->site[i].stock))
			continue;
		pr_err("a call in %s was changed by another patcher: mmopt cannot be removed\n",
		       set->site[i].in);
		__module_get(THIS_MODULE);
	}
	unlock_sites();
	mmopt_drain_wait(&set->drain);
	return armed;
}
