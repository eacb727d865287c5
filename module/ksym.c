// SPDX-License-Identifier: GPL-2.0
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

#include "ksym.h"

unsigned long proto_lookup(const char *name);
int proto_size(unsigned long addr, unsigned long *size, unsigned long *offset);
unsigned long proto_location(unsigned long ip);

DEFINE_STATIC_CALL_NULL(k_kallsyms_lookup_name, proto_lookup);
DEFINE_STATIC_CALL_NULL(k_kallsyms_lookup_size_offset, proto_size);
DEFINE_STATIC_CALL_NULL(k_ftrace_location, proto_location);

static char *hide;
module_param(hide, charp, 0400);
MODULE_PARM_DESC(hide, "symbol to treat as missing, to see what becomes unavailable without it (default: none)");

static const struct mmopt_kfunc core_funcs[] = {
	MMOPT_KFUNC(kallsyms_lookup_size_offset),
	MMOPT_KFUNC(ftrace_location),
};

/**
 * mmopt_ksym_init() - find the kernel's symbol table
 *
 * A kprobe is the one exported service that turns a name into an address. It
 * is asked for a single name, the function that knows all others, and is never
 * armed.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, of register_kprobe() or -ENOENT.
 */
int mmopt_ksym_init(void)
{
	struct kprobe kp = {
		.symbol_name = "kallsyms_lookup_name",
		.flags = KPROBE_FLAG_DISABLED,
	};
	char why[80];
	int err;

	err = register_kprobe(&kp);
	if (err)
		return err;
	static_call_update(k_kallsyms_lookup_name,
			   (unsigned long (*)(const char *))kp.addr);
	unregister_kprobe(&kp);
	return mmopt_kfunc_bind(core_funcs, ARRAY_SIZE(core_funcs), why,
				sizeof(why));
}

/**
 * mmopt_ksym() - address of a kernel symbol
 * @name: of a function or variable
 *
 * Return: the address, or 0 if there is no such symbol.
 */
unsigned long mmopt_ksym(const char *name)
{
	if (hide && !strcmp(name, hide))
		return 0;
	return static_call(k_kallsyms_lookup_name)(name);
}

/**
 * mmopt_ksym_size() - bytes from a symbol to the next one
 * @addr: address of the symbol
 *
 * Return: the size, or 0 if @addr is not the start of a symbol.
 */
unsigned long mmopt_ksym_size(unsigned long addr)
{
	unsigned long size = 0, offset = 0;

	if (!static_call(k_kallsyms_lookup_size_offset)(addr, &size, &offset))
		return 0;
	return offset ? 0 : size;
}

/**
 * mmopt_ftrace_site() - where a function calls tracers
 * @addr: address of the function
 *
 * Return: address of the call or of the nop in its place, or 0 if it has none.
 */
unsigned long mmopt_ftrace_site(unsigned long addr)
{
	return static_call(k_ftrace_location)(addr);
}

/**
 * mmopt_kfunc_bind() - let static calls reach their kernel functions
 * @fn:      functions
 * @nr:      how many
 * @why:     gets the reason of a failure
 * @why_len: its size in bytes
 *
 * Context: may sleep.
 * Return: 0, or -ENOENT if a symbol is missing.
 */
int mmopt_kfunc_bind(const struct mmopt_kfunc *fn, size_t nr, char *why,
		     size_t why_len)
{
	unsigned long addr;
	size_t i;

	for (i = 0; i < nr; i++) {
		addr = mmopt_ksym(fn[i].name);
		if (!addr) {
			snprintf(why, why_len, "no symbol %s", fn[i].name);
			return -ENOENT;
		}
		if (fn[i].past) {
			addr = mmopt_ftrace_site(addr);
			if (!addr) {
				snprintf(why, why_len, "%s has no ftrace site",
					 fn[i].name);
				return -ENOENT;
			}
			addr += MCOUNT_INSN_SIZE;
		}
		__static_call_update(fn[i].key, fn[i].tramp, (void *)addr);
	}
	return 0;
}

/**
 * mmopt_verify() - compare what a path relies on with the running kernel
 * @want:    facts
 * @nr:      how many
 * @why:     gets the first difference
 * @why_len: its size in bytes
 *
 * Return: 0 or a negative errno.
 */
int mmopt_verify(const struct mmopt_btf_want *want, size_t nr, char *why,
		 size_t why_len)
{
	unsigned long start = mmopt_ksym("__start_BTF");
	unsigned long stop = mmopt_ksym("__stop_BTF");
	struct mmopt_btf btf;
	int err;

	if (!start || stop <= start) {
		snprintf(why, why_len, "the kernel has no BTF");
		return -ENOENT;
	}
	err = mmopt_btf_open(&btf, (const void *)start, stop - start, why,
			     why_len);
	if (err)
		return err;
	return mmopt_btf_check(&btf, want, nr, why, why_len);
}
