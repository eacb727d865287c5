/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds the call instructions of a function. Plain C: the caller brings the
 * bytes and an instruction decoder, so that the same source builds in
 * userspace, where it meets the functions of every supported kernel image and
 * hostile bytes.
 */
#ifndef MMOPT_CALLS_H
#define MMOPT_CALLS_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
#endif

/**
 * struct mmopt_text - the bytes of one function
 * @name:     its name, for messages
 * @bytes:    its instructions, from the first one on
 * @len:      how many bytes
 * @addr:     address at which they run
 * @text_lo:  first address of the kernel's core text
 * @text_hi:  end of it
 * @insn_len: length in bytes of the instruction at @p, of which @avail bytes
 *            may be read; 0 or negative if it cannot be decoded
 * @alien:    name of a function at @target that must not be called in here, or
 *            NULL if it may be; asked about every target outside of this
 *            function that is no callee. NULL if all may be
 */
struct mmopt_text {
	const char *name;
	const u8 *bytes;
	size_t len;
	unsigned long addr;
	unsigned long text_lo;
	unsigned long text_hi;
	int (*insn_len)(const u8 *p, size_t avail);
	const char *(*alien)(unsigned long target);
};

/**
 * struct mmopt_callee - a function whose calls are wanted
 * @name: its name, for messages
 * @addr: its address
 * @min:  fewest calls that are right
 * @max:  most calls that are right
 */
struct mmopt_callee {
	const char *name;
	unsigned long addr;
	unsigned int min;
	unsigned int max;
};

/**
 * struct mmopt_call - a call that was found
 * @offset: of the instruction, in bytes from the start of the function
 * @callee: index of the function that it calls
 */
struct mmopt_call {
	u32 offset;
	u16 callee;
};

bool mmopt_calls_alien(const char *name, const char *const *in,
		       const char *const *alien, const char *const *harmless);
int mmopt_calls_find(const struct mmopt_text *text,
		     const struct mmopt_callee *callee, size_t nr_callees,
		     struct mmopt_call *call, size_t max_calls,
		     char *why, size_t why_len);

#endif /* MMOPT_CALLS_H */
