/* SPDX-License-Identifier: GPL-2.0 */
/* The types of BTF, for btf.c (which reads them) and btf_check.c. */
#ifndef MMOPT_BTF_TYPES_H
#define MMOPT_BTF_TYPES_H

#ifdef __KERNEL__
#include <linux/compiler.h>
#include <linux/string.h>
#else
#include <string.h>
#define __printf(a, b)
#endif

#include "btf.h"

#define REC_SIZE	12	/* name, info, size or type */
#define MEMBER_SIZE	12	/* name, type, offset */
#define ENUM_SIZE	8	/* name, value */
#define ENUM64_SIZE	12	/* name, low and high half of the value */
#define PARAM_SIZE	8	/* name, type */

enum btf_kind {
	K_VOID, K_INT, K_PTR, K_ARRAY, K_STRUCT, K_UNION, K_ENUM, K_FWD,
	K_TYPEDEF, K_VOLATILE, K_CONST, K_RESTRICT, K_FUNC, K_FUNC_PROTO,
	K_VAR, K_DATASEC, K_FLOAT, K_DECL_TAG, K_TYPE_TAG, K_ENUM64,
};

/* Longest chain of pointers, qualifiers and typedefs that is followed. */
#define MAX_CHAIN	16

/* A type record, taken apart. */
struct btf_rec {
	u32 name;
	u32 kind;
	u32 vlen;
	bool kflag;
	u32 ref;	/* size or type, by kind */
	u32 data;	/* offset of what follows the record */
	u32 end;	/* offset of the next record */
};

/* The check of one fact. */
struct btf_job {
	const struct mmopt_btf *btf;
	u32 steps;	/* left to spend */
	char *why;
	size_t why_len;
};

/* Where a member is. */
struct btf_member_at {
	u32 type;
	u64 bit;	/* offset in the outermost struct */
	bool bitfield;
};

static inline u32 btf_get32(const struct mmopt_btf *btf, u32 off)
{
	u32 v;

	memcpy(&v, btf->types + off, sizeof(v));
	return v;
}

/* The string at @off, NULL if that is outside of the strings. */
static inline const char *btf_str(const struct mmopt_btf *btf, u32 off)
{
	return off < btf->strs_len ? btf->strs + off : NULL;
}

/* Whether there is another step to spend. */
static inline bool btf_step(struct btf_job *job)
{
	if (!job->steps)
		return false;
	job->steps--;
	return true;
}

static inline bool btf_is_alias(u32 kind)
{
	return kind == K_TYPEDEF || kind == K_CONST || kind == K_VOLATILE ||
	       kind == K_RESTRICT || kind == K_TYPE_TAG;
}

__printf(3, 4)
int mmopt_btf_fail(struct btf_job *job, int err, const char *fmt, ...);
int mmopt_btf_too_complex(struct btf_job *job);
bool mmopt_btf_read_type(const struct mmopt_btf *btf, u32 off,
			 struct btf_rec *t);
int mmopt_btf_get_type(struct btf_job *job, u32 id, struct btf_rec *t);
int mmopt_btf_real_type(struct btf_job *job, u32 id, struct btf_rec *t);
int mmopt_btf_size_of(struct btf_job *job, u32 id, u64 *size);
int mmopt_btf_find_member(struct btf_job *job, const struct btf_rec *outer,
			  const char *name, size_t name_len,
			  struct btf_member_at *m);

#endif /* MMOPT_BTF_TYPES_H */
