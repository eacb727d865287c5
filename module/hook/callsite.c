// SPDX-License-Identifier: GPL-2.0
/*
 * Call-site retargeting: the call instructions of X inside a given function
 * call our function instead. Nobody else who calls X notices.
 *
 * The calls are found by decoding the function with the kernel's own decoder
 * (calls.c), and turned by the kernel's own protocol for live text. Bytes are
 * compared and written in one hold of text_mutex, under which everybody else
 * who patches text does so too; the exported arch_static_call_transform() takes
 * that mutex itself, and stops the machine if a probe came in between.
 *
 * Each site is reserved by a disabled kprobe of ours from the time when it is
 * still stock. The first probe at an address notes where the call there leads,
 * later ones inherit the note, and a hit emulates the call by it. We correct the
 * note with each turn, under the mutex of kprobes: else a tracer would call what
 * was right at another time, a replacement that is gone, or a stock unlock of
 * what a replacement never locked. While a probe is enabled the site holds its
 * breakpoint, and is not turned.
 *
 * A caller relies on no more than the ABI of a function whose body the compiler
 * has seen: kernels with ftrace are built with -pg, which rules out -fipa-ra.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <asm/insn.h>
#include <mmopt/abi.h>

#include "../compat.h"
#include "../ksym.h"
#include "calls.h"
#include "hook.h"

#define CALL_SIZE	5
#define CALL_OPCODE	0xe8

int proto_insn_decode(struct insn *insn, const void *kaddr, int len,
		      enum insn_mode mode);
void proto_poke(void *addr, const void *opcode, size_t len, const void *emulate);

MMOPT_DEFINE_KFUNC(insn_decode, proto_insn_decode);
MMOPT_DEFINE_KFUNC(get_kprobe, get_kprobe);
DEFINE_STATIC_CALL_NULL(k_text_poke, proto_poke);

static const struct mmopt_kfunc funcs[] = {
	MMOPT_KFUNC(insn_decode),
	MMOPT_KFUNC(get_kprobe),
	MMOPT_KFUNC_AS(MMOPT_TEXT_POKE, k_text_poke),
};

static const struct mmopt_btf_want want[] = {
	MMOPT_WANT_FUNC(insn_decode,
			"int (struct insn *, const void *, int, enum insn_mode)"),
	MMOPT_WANT_SIZE(struct insn),
	MMOPT_WANT_FUNC(get_kprobe, "struct kprobe * (void *)"),
	MMOPT_WANT_MEMBER(struct kprobe, ainsn.rel32),
	{ .kind = MMOPT_BTF_FUNC, .name = MMOPT_TEXT_POKE,
	  .proto = "void (void *, const void *, size_t, const void *)" },
};

static unsigned long text_lo, text_hi;
static struct mutex *kernel_text_mutex, *kernel_kprobe_mutex;

static int insn_len(const u8 *p, size_t avail)
{
	struct insn insn;

	if (static_call(k_insn_decode)(&insn, p, min_t(size_t, avail, MAX_INSN_SIZE),
				       INSN_MODE_KERN))
		return -1;
	return insn.length;
}

static int setup(char *why, size_t why_len)
{
	int err;

	text_lo = mmopt_ksym("_stext");
	text_hi = mmopt_ksym("_etext");
	kernel_text_mutex = (struct mutex *)mmopt_ksym("text_mutex");
	kernel_kprobe_mutex = (struct mutex *)mmopt_ksym("kprobe_mutex");
	if (!text_lo || !text_hi || !kernel_text_mutex || !kernel_kprobe_mutex) {
		snprintf(why, why_len, "no symbol %s", !text_lo ? "_stext" :
			 !text_hi ? "_etext" : !kernel_text_mutex ? "text_mutex" : "kprobe_mutex");
		return -ENOENT;
	}
	err = mmopt_kfunc_bind(funcs, ARRAY_SIZE(funcs), why, why_len);
	return err ?: mmopt_verify(want, ARRAY_SIZE(want), why, why_len);
}

static void lock_text(void)
{
	cpus_read_lock();
	mutex_lock(kernel_text_mutex);
}

static void unlock_text(void)
{
	mutex_unlock(kernel_text_mutex);
	cpus_read_unlock();
}

/*
 * The order is that of kprobes, which take theirs before CPUs and text. A guard
 * comes after CPUs (memory hot-remove takes ksm_thread_mutex so), but whoever
 * holds it may be long about it, and nobody shall wait for CPUs and kprobes
 * meanwhile: so it is waited for alone, and the others must be free then.
 */
static int lock_sites(const struct mmopt_callsites *set)
{
	if (!set->mutex) {
		mutex_lock(kernel_kprobe_mutex);
		cpus_read_lock();
		mutex_lock(kernel_text_mutex);
		return 0;
	}
	for (;;) {
		if (mutex_lock_interruptible(set->mutex))
			return -EINTR;
		if (mutex_trylock(kernel_kprobe_mutex)) {
			if (cpus_read_trylock())
				break;
			mutex_unlock(kernel_kprobe_mutex);
		}
		mutex_unlock(set->mutex);
		if (msleep_interruptible(1))
			return -EINTR;
	}
	mutex_lock(kernel_text_mutex);
	return 0;
}

static void unlock_sites(const struct mmopt_callsites *set)
{
	mutex_unlock(kernel_text_mutex);
	cpus_read_unlock();
	mutex_unlock(kernel_kprobe_mutex);
	if (set->mutex)
		mutex_unlock(set->mutex);
}

/* Does the site hold a call of @target? Under text_mutex. */
static bool calls(const struct mmopt_site *site, const void *target)
{
	const u8 *insn = site->at;
	s32 rel;

	memcpy(&rel, insn + 1, sizeof(rel));
	return insn[0] == CALL_OPCODE && insn + CALL_SIZE + rel == target;
}

/* Under text_mutex and kprobe_mutex. */
static void turn(struct mmopt_site *site, const void *target)
{
	struct kprobe *probe = static_call(k_get_kprobe)(site->at);
	s32 rel = target - (site->at + CALL_SIZE);
	u8 insn[CALL_SIZE] = { CALL_OPCODE };

	memcpy(insn + 1, &rel, sizeof(rel));
	static_call(k_text_poke)(site->at, insn, CALL_SIZE, NULL);
	site->reserve.ainsn.rel32 = rel;
	if (probe)
		probe->ainsn.rel32 = rel;
}

static int calls_in(struct mmopt_text *text, const struct mmopt_callee *callee,
		    unsigned int nr_callees, struct mmopt_call *call,
		    char *why, size_t why_len)
{
	int nr;

	text->text_lo = text_lo;
	text->text_hi = text_hi;
	text->insn_len = insn_len;
	text->bytes = (const u8 *)text->addr;
	text->len = mmopt_ksym_size(text->addr);
	lock_text();
	nr = mmopt_calls_find(text, callee, nr_callees, call, MMOPT_MAX_SITES,
			      why, why_len);
	unlock_text();
	return nr;
}

static int add(struct mmopt_callsites *set, const struct mmopt_text *text,
	       const struct mmopt_call *call, unsigned long stock,
	       void *replacement, char *why, size_t why_len)
{
	struct mmopt_site *site = &set->site[set->nr];

	if (set->nr == MMOPT_MAX_SITES) {
		snprintf(why, why_len, "%s: more than %d calls", text->name,
			 MMOPT_MAX_SITES);
		return -E2BIG;
	}
	set->nr++;
	site->at = (void *)(text->addr + call->offset);
	site->stock = (void *)stock;
	site->replacement = replacement;
	site->in = text->name;
	return 0;
}

static int find(struct mmopt_callsites *set, const struct mmopt_callsite *want,
		char *why, size_t why_len)
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
	};
	int i, nr, err = 0;

	if (!text.addr && want->optional)
		return 0;
	if (!text.addr || !callee.addr) {
		snprintf(why, why_len, "no symbol %s",
			 text.addr ? want->callee : want->in);
		return -ENOENT;
	}
	nr = calls_in(&text, &callee, 1, call, why, why_len);
	for (i = 0; i < nr && !err; i++)
		err = add(set, &text, &call[i], callee.addr, want->replacement,
			  why, why_len);
	return nr < 0 ? nr : err;
}

/* The region whose functions are being decoded, under text_mutex. */
static const struct mmopt_region *decoding;

/* See struct mmopt_text; the answer lasts until the next question. */
static const char *alien(unsigned long target)
{
	static char name[KSYM_NAME_LEN];
	const char *const *s;

	for (s = decoding->in; *s; s++)
		if (mmopt_ksym(*s) == target)
			return NULL;
	snprintf(name, sizeof(name), "%ps", (void *)target);
	return mmopt_calls_alien(name, decoding->in, decoding->alien, decoding->harmless) ?
	       name : NULL;
}

/* The calls of each role, over all functions of the region. */
static int find_role(struct mmopt_callsites *set, const struct mmopt_callee *callee,
		     unsigned int role, char *why, size_t why_len)
{
	const struct mmopt_region *region = set->region;
	const struct mmopt_role *want = &region->role[role];
	unsigned int before = set->nr;
	const char *const *in;
	int i, nr, err = 0;

	for (in = region->in; *in && !err; in++) {
		struct mmopt_call call[MMOPT_MAX_SITES];
		struct mmopt_text text = {
			.name = *in,
			.addr = mmopt_ksym(*in),
			.alien = alien,
		};

		if (!text.addr && in != region->in)
			continue;
		if (!text.addr) {
			snprintf(why, why_len, "no symbol %s", *in);
			return -ENOENT;
		}
		nr = calls_in(&text, callee, region->nr_roles, call, why, why_len);
		if (nr < 0)
			return nr;
		for (i = 0; i < nr && !err; i++)
			if (call[i].callee == role)
				err = add(set, &text, &call[i], callee[role].addr,
					  want->replacement, why, why_len);
	}
	nr = set->nr - before;
	if (!err && (nr < want->min || nr > want->max)) {
		snprintf(why, why_len, "%s: expected %u to %u calls of %s (%s), found %d",
			 region->in[0], want->min, want->max, want->callee,
			 want->what, nr);
		err = -EINVAL;
	}
	return err;
}

static int find_region(struct mmopt_callsites *set, char *why, size_t why_len)
{
	struct mmopt_callee callee[MMOPT_MAX_ROLES];
	const struct mmopt_region *region = set->region;
	unsigned int i;
	int err = 0;

	for (i = 0; i < region->nr_roles; i++) {
		callee[i].name = region->role[i].callee;
		callee[i].addr = mmopt_ksym(callee[i].name);
		callee[i].min = 0;
		callee[i].max = MMOPT_MAX_SITES;
		if (!callee[i].addr) {
			snprintf(why, why_len, "no symbol %s", callee[i].name);
			return -ENOENT;
		}
	}
	decoding = region;
	for (i = 0; i < region->nr_roles && !err; i++) {
		set->first_lock = set->nr;
		err = find_role(set, callee, i, why, why_len);
	}
	return err;
}

static int never(struct kprobe *kp, struct pt_regs *regs)
{
	return 0;
}

NOKPROBE_SYMBOL(never);

static int reserve(struct mmopt_site *site, char *why, size_t why_len)
{
	int err;

	site->reserve.addr = site->at;
	site->reserve.pre_handler = never;
	site->reserve.flags = KPROBE_FLAG_DISABLED;
	err = register_kprobe(&site->reserve);
	if (!err && site->reserve.ainsn.rel32 != site->stock - (site->at + CALL_SIZE)) {
		unregister_kprobe(&site->reserve);
		err = -EINVAL;
	}
	if (err) {
		site->reserve.addr = NULL;
		snprintf(why, why_len, "a call in %s cannot be reserved: %d",
			 site->in, err);
	}
	return err;
}

/**
 * mmopt_callsites_init() - find and reserve the calls that a path wants to turn
 * @set:     what it expects
 * @why:     gets the difference between expected and found
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, or a negative errno if the text is not as expected. Undone by
 * mmopt_callsites_exit() in either case.
 */
int mmopt_callsites_init(struct mmopt_callsites *set, char *why, size_t why_len)
{
	unsigned int i;
	int err;

	err = setup(why, why_len);
	if (!err && set->guard) {
		set->mutex = (struct mutex *)mmopt_ksym(set->guard);
		if (!set->mutex) {
			snprintf(why, why_len, "no symbol %s", set->guard);
			err = -ENOENT;
		}
	}
	for (i = 0; i < set->nr_want && !err; i++)
		err = find(set, &set->want[i], why, why_len);
	if (!err && set->region)
		err = find_region(set, why, why_len);
	for (i = 0; i < set->nr && !err; i++)
		err = reserve(&set->site[i], why, why_len);
	if (err || set->mutex)
		return err;
	err = mmopt_drain_init(&set->drain);
	if (err)
		snprintf(why, why_len, "out of memory");
	return err;
}

/**
 * mmopt_callsites_exit() - undo mmopt_callsites_init()
 * @set: disarmed
 *
 * Context: sleeps until those who were in a replacement have returned.
 */
void mmopt_callsites_exit(struct mmopt_callsites *set)
{
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		if (set->site[i].reserve.addr)
			unregister_kprobe(&set->site[i].reserve);
	set->nr = 0;
	/* Who gave the guard back in a replacement still has to return from it. */
	if (set->mutex)
		synchronize_rcu_tasks();
	mmopt_drain_exit(&set->drain);
}

/**
 * mmopt_callsites_arm() - let the sites call their replacements
 * @set:     found before; a part may still be armed, if disarming failed
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, -EINTR if a signal came first, or -EBUSY if somebody else changed
 * a site; then none is turned.
 */
int mmopt_callsites_arm(struct mmopt_callsites *set, char *why, size_t why_len)
{
	struct mmopt_site *site;
	int err;

	err = lock_sites(set);
	if (err) {
		snprintf(why, why_len, "interrupted in waiting for %s", set->guard);
		return err;
	}
	for (site = set->site; site < set->site + set->nr && !err; site++) {
		/* It may still be turned: disarming can have met a probe. */
		if (calls(site, site->stock) || calls(site, site->replacement))
			continue;
		snprintf(why, why_len, "a probe or another patcher sits on a call in %s",
			 site->in);
		err = -EBUSY;
	}
	for (site = set->site; site < set->site + set->nr && !err; site++)
		turn(site, site->replacement);
	unlock_sites(set);
	return err;
}

/*
 * Turns sites back from the last one down to @first. A lock that stays turned
 * needs its unlocks, hence no further than to the first failure.
 */
static int turn_back(struct mmopt_callsites *set, unsigned int first, char *why,
		     size_t why_len)
{
	struct mmopt_site *site;
	int err;

	err = lock_sites(set);
	if (err) {
		snprintf(why, why_len, "calls are still under way");
		return err;
	}
	for (site = set->site + set->nr; site-- > set->site + first && !err; ) {
		if (calls(site, site->replacement)) {
			turn(site, site->stock);
		} else if (!calls(site, site->stock)) {
			snprintf(why, why_len,
				 "remove what sits on a call in %s, a probe or another patcher, and disable again",
				 site->in);
			err = -EBUSY;
		}
	}
	unlock_sites(set);
	/* Whoever is in a region, or goes into a replacement, holds the guard: nobody. */
	if (err || set->mutex)
		return err;
	err = mmopt_drain_wait(&set->drain);
	if (err)
		snprintf(why, why_len, "calls are still under way");
	return err;
}

/**
 * mmopt_callsites_disarm() - let the sites call the stock functions again
 * @set:     armed, or disarmed and not drained
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: sleeps until no call is in a replacement.
 * Return: 0, -EBUSY if a site holds something else by now and may still lead to
 * us, or -EINTR if a signal ended the wait. Can be tried again.
 */
int mmopt_callsites_disarm(struct mmopt_callsites *set, char *why, size_t why_len)
{
	int err = 0;

	/* Without a guard, first let everyone out of the region who is in it. */
	if (set->region && !set->mutex)
		err = turn_back(set, set->first_lock, why, why_len);
	return err ?: turn_back(set, 0, why, why_len);
}

/**
 * mmopt_callsites_explain() - the sites in words, see <mmopt/abi.h>
 * @set: found before
 * @m:   where to
 */
void mmopt_callsites_explain(const struct mmopt_callsites *set, struct seq_file *m)
{
	const struct mmopt_site *site;

	seq_puts(m, MMOPT_KEY_MECHANISM " callsite\n");
	for (site = set->site; site < set->site + set->nr; site++)
		seq_printf(m, MMOPT_KEY_SITE " %s+0x%lx %ps -> %ps\n", site->in,
			   (unsigned long)site->at - mmopt_ksym(site->in),
			   site->stock, site->replacement);
}
