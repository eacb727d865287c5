/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a path relies on, checked against the BTF of the running kernel. Plain
 * C without kernel services, so that the same source builds in userspace,
 * where it meets the BTF of every supported kernel and damaged BTF.
 */
#ifndef MMOPT_BTF_H
#define MMOPT_BTF_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#ifndef sizeof_field
#define sizeof_field(type, member) (sizeof(((type *)0)->member))
#endif
#endif

#define MMOPT_BTF_INDEX 64

/**
 * struct mmopt_btf - BTF data, its sections bounded
 * @types:       type section
 * @types_len:   its length in bytes
 * @strs:        string section, ends with a NUL
 * @strs_len:    its length in bytes
 * @nr_types:    how many types, void not counted
 * @index_shift: one type in 1 << @index_shift has a place in @index
 * @index:       offset of type 1 and of every (1 << @index_shift)th after it
 *
 * Refers to the data that mmopt_btf_open() got; owns nothing.
 */
struct mmopt_btf {
	const u8 *types;
	u32 types_len;
	const char *strs;
	u32 strs_len;
	u32 nr_types;
	u32 index_shift;
	u32 index[MMOPT_BTF_INDEX];
};

enum mmopt_btf_kind {
	MMOPT_BTF_FUNC,		/* prototype of a function */
	MMOPT_BTF_MEMBER,	/* offset and size of a struct member */
	MMOPT_BTF_SIZE,		/* size of a struct */
	MMOPT_BTF_ENUM,		/* value of an enumerator */
};

/**
 * struct mmopt_btf_want - one fact that a path relies on
 * @kind:   what sort of fact
 * @name:   function, "struct name", or "enum name"
 * @member: member ("range.end" for one of a nested struct) or enumerator
 * @proto:  prototype in canonical form, see mmopt_btf_check()
 * @offset: offset of the member in bytes
 * @size:   size of the member or struct in bytes
 * @value:  value of the enumerator
 */
struct mmopt_btf_want {
	enum mmopt_btf_kind kind;
	const char *name;
	const char *member;
	const char *proto;
	u32 offset;
	u32 size;
	long long value;
};

#define MMOPT_WANT_FUNC(fn, p) \
	{ .kind = MMOPT_BTF_FUNC, .name = #fn, .proto = (p) }
#define MMOPT_WANT_MEMBER(type, m) \
	{ .kind = MMOPT_BTF_MEMBER, .name = #type, .member = #m, \
	  .offset = offsetof(type, m), .size = sizeof_field(type, m) }
#define MMOPT_WANT_SIZE(type) \
	{ .kind = MMOPT_BTF_SIZE, .name = #type, .size = sizeof(type) }
#define MMOPT_WANT_ENUM(type, e, v) \
	{ .kind = MMOPT_BTF_ENUM, .name = #type, .member = #e, .value = (v) }

int mmopt_btf_open(struct mmopt_btf *btf, const void *data, size_t len,
		   char *why, size_t why_len);
int mmopt_btf_check(const struct mmopt_btf *btf,
		    const struct mmopt_btf_want *want, size_t nr,
		    char *why, size_t why_len);

#endif /* MMOPT_BTF_H */
