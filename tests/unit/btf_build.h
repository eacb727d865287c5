/* SPDX-License-Identifier: GPL-2.0 */
/* Makes BTF by hand, right or wrong. Exits when memory runs out. */
#ifndef BTF_BUILD_H
#define BTF_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	INT = 1, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST,
	RESTRICT, FUNC, FUNC_PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG,
	ENUM64,
};

#define KFLAG 0x80000000u

struct bytes {
	uint8_t *p;
	size_t len;
	size_t room;
};

struct btf_build {
	struct bytes types;
	struct bytes strs;
	uint32_t nr;		/* id of the last type */
	struct bytes out;
};

/* Starts anew; frees what a builder that was used before holds. */
void bb_reset(struct btf_build *b);
void bb_free(struct btf_build *b);

/* Offset of a string; "" is 0. */
uint32_t bb_str(struct btf_build *b, const char *s);

/* A record; its id. @kind may have KFLAG. */
uint32_t bb_type(struct btf_build *b, const char *name, uint32_t kind,
		 uint32_t vlen, uint32_t size_or_type);

/* Further words of the last record. */
void bb_words(struct btf_build *b, size_t n, const uint32_t *words);

#define BB_WORDS(b, ...) \
	bb_words(b, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), \
		 (uint32_t[]){ __VA_ARGS__ })

/* Common records. */
uint32_t bb_int(struct btf_build *b, const char *name, uint32_t size);
uint32_t bb_ref(struct btf_build *b, uint32_t kind, uint32_t type);
uint32_t bb_array(struct btf_build *b, uint32_t type, uint32_t nr);
void bb_member(struct btf_build *b, const char *name, uint32_t type,
	       uint32_t bit);

/* A function and its prototype; the id of the function. */
uint32_t bb_func(struct btf_build *b, const char *name, uint32_t ret,
		 size_t nr_args, const uint32_t *args);

#define BB_FUNC(b, name, ret, ...) \
	bb_func(b, name, ret, \
		sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), \
		(uint32_t[]){ __VA_ARGS__ })

/*
 * The whole: header, types, strings. An allocation of exactly this size, so
 * that the sanitizer sees a read past the end; valid until the next call.
 */
const uint8_t *bb_finish(struct btf_build *b, size_t *len);

/* A small BTF with a bit of everything, for damaging, and what is true of it. */
void bb_sample(struct btf_build *b);
extern const struct mmopt_btf_want bb_sample_facts[];
extern const size_t bb_sample_nr_facts;

#endif /* BTF_BUILD_H */
