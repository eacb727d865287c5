/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel functions that are not exported to modules.
 *
 * They are called through static calls and in no other way. Kernels with
 * indirect-branch tracking erase the landing pad of each function whose
 * address the kernel itself never takes: a call through a pointer would kill
 * the machine there, while a static call is a direct call.
 */
#ifndef MMOPT_KSYM_H
#define MMOPT_KSYM_H

#include <linux/static_call.h>

#include "btf.h"

/**
 * struct mmopt_kfunc - a kernel function and the static call that reaches it
 * @name:  its symbol
 * @key:   key of the static call
 * @tramp: its trampoline
 * @past:  enter behind the ftrace site, for a function that we hook ourselves
 */
struct mmopt_kfunc {
	const char *name;
	struct static_call_key *key;
	void *tramp;
	bool past;
};

/* Static call k_fn with the type of the function proto. */
#define MMOPT_DEFINE_KFUNC(fn, proto) DEFINE_STATIC_CALL_NULL(k_##fn, proto)

#define MMOPT_KFUNC(fn) MMOPT_KFUNC_AS(#fn, k_##fn)
#define MMOPT_KFUNC_AS(symbol, key) \
	{ symbol, &STATIC_CALL_KEY(key), STATIC_CALL_TRAMP_ADDR(key), false }
#define MMOPT_KFUNC_PAST(fn) \
	{ #fn, &STATIC_CALL_KEY(k_##fn), STATIC_CALL_TRAMP_ADDR(k_##fn), true }

int mmopt_ksym_init(void);
unsigned long mmopt_ksym(const char *name);
unsigned long mmopt_ksym_size(unsigned long addr);
unsigned long mmopt_ftrace_site(unsigned long addr);
int mmopt_kfunc_bind(const struct mmopt_kfunc *fn, size_t nr, char *why,
		     size_t why_len);
int mmopt_verify(const struct mmopt_btf_want *want, size_t nr, char *why,
		 size_t why_len);

#endif /* MMOPT_KSYM_H */
