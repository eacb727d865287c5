// SPDX-License-Identifier: GPL-2.0
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "btf.h"
#include "btf_build.h"

static void add(struct bytes *to, const void *p, size_t len)
{
	if (to->len + len > to->room) {
		to->room = 2 * (to->len + len);
		to->p = realloc(to->p, to->room);
		if (!to->p)
			err(1, "realloc");
	}
	memcpy(to->p + to->len, p, len);
	to->len += len;
}

void bb_free(struct btf_build *b)
{
	free(b->types.p);
	free(b->strs.p);
	free(b->out.p);
	memset(b, 0, sizeof(*b));
}

void bb_reset(struct btf_build *b)
{
	bb_free(b);
	add(&b->strs, "", 1);
}

uint32_t bb_str(struct btf_build *b, const char *s)
{
	uint32_t off = b->strs.len;

	if (!*s)
		return 0;
	add(&b->strs, s, strlen(s) + 1);
	return off;
}

void bb_words(struct btf_build *b, size_t n, const uint32_t *words)
{
	add(&b->types, words, n * sizeof(*words));
}

uint32_t bb_type(struct btf_build *b, const char *name, uint32_t kind,
		 uint32_t vlen, uint32_t size_or_type)
{
	BB_WORDS(b, bb_str(b, name), (kind & KFLAG) | (kind & 0x7f) << 24 | vlen,
		 size_or_type);
	return ++b->nr;
}

uint32_t bb_int(struct btf_build *b, const char *name, uint32_t size)
{
	uint32_t id = bb_type(b, name, INT, 0, size);

	BB_WORDS(b, size * 8);
	return id;
}

uint32_t bb_ref(struct btf_build *b, uint32_t kind, uint32_t type)
{
	return bb_type(b, "", kind, 0, type);
}

uint32_t bb_array(struct btf_build *b, uint32_t type, uint32_t nr)
{
	uint32_t id = bb_type(b, "", ARRAY, 0, 0);

	BB_WORDS(b, type, type, nr);
	return id;
}

void bb_member(struct btf_build *b, const char *name, uint32_t type,
	       uint32_t bit)
{
	BB_WORDS(b, bb_str(b, name), type, bit);
}

uint32_t bb_func(struct btf_build *b, const char *name, uint32_t ret,
		 size_t nr_args, const uint32_t *args)
{
	uint32_t proto = bb_type(b, "", FUNC_PROTO, nr_args, ret);
	size_t i;

	for (i = 0; i < nr_args; i++)
		BB_WORDS(b, args[i] ? bb_str(b, "arg") : 0, args[i]);
	return bb_type(b, name, FUNC, 1, proto);
}

const uint8_t *bb_finish(struct btf_build *b, size_t *len)
{
	uint32_t header[6] = {
		0x0001eb9f, sizeof(header), 0, b->types.len, b->types.len,
		b->strs.len,
	};

	free(b->out.p);
	b->out.len = sizeof(header) + b->types.len + b->strs.len;
	b->out.p = malloc(b->out.len);
	if (!b->out.p)
		err(1, "malloc");
	memcpy(b->out.p, header, sizeof(header));
	if (b->types.len)
		memcpy(b->out.p + sizeof(header), b->types.p, b->types.len);
	memcpy(b->out.p + sizeof(header) + b->types.len, b->strs.p, b->strs.len);
	*len = b->out.len;
	return b->out.p;
}

const struct mmopt_btf_want bb_sample_facts[] = {
	{ .kind = MMOPT_BTF_MEMBER, .name = "struct walk", .member = "range.end",
	  .offset = 8, .size = 8 },
	{ .kind = MMOPT_BTF_MEMBER, .name = "struct walk", .member = "table",
	  .offset = 16, .size = 16 },
	{ .kind = MMOPT_BTF_MEMBER, .name = "struct walk", .member = "len",
	  .offset = 40, .size = 8 },
	{ .kind = MMOPT_BTF_SIZE, .name = "struct walk", .size = 48 },
	{ .kind = MMOPT_BTF_ENUM, .name = "enum mode", .member = "LOCKED",
	  .value = -3 },
	{ .kind = MMOPT_BTF_ENUM, .name = "enum wide", .member = "HIGH",
	  .value = 0x500000001 },
	{ .kind = MMOPT_BTF_FUNC, .name = "walk_range",
	  .proto = "int (const struct walk *, size_t, enum mode, ...)" },
};

const size_t bb_sample_nr_facts =
	sizeof(bb_sample_facts) / sizeof(bb_sample_facts[0]);

void bb_sample(struct btf_build *b)
{
	uint32_t i, l, size, range, anon, array, const_size, walk, mode, ptr;

	bb_reset(b);
	i = bb_int(b, "int", 4);
	l = bb_int(b, "long unsigned int", 8);
	size = bb_type(b, "size_t", TYPEDEF, 0, l);
	const_size = bb_ref(b, CONST, size);
	array = bb_array(b, i, 4);

	range = bb_type(b, "range", STRUCT, 2, 16);
	bb_member(b, "start", l, 0);
	bb_member(b, "end", l, 64);

	anon = bb_type(b, "", UNION, 2, 16);
	bb_member(b, "count", i, 0);
	bb_member(b, "table", array, 0);

	walk = bb_type(b, "walk", STRUCT | KFLAG, 4, 48);
	bb_member(b, "range", range, 0);
	bb_member(b, "", anon, 128);
	bb_member(b, "flag", i, 1 << 24 | 256);
	bb_member(b, "len", const_size, 320);

	mode = bb_type(b, "mode", ENUM | KFLAG, 2, 4);
	BB_WORDS(b, bb_str(b, "UNLOCKED"), 0);
	BB_WORDS(b, bb_str(b, "LOCKED"), -3);

	bb_type(b, "wide", ENUM64, 2, 8);
	BB_WORDS(b, bb_str(b, "LOW"), 1, 0);
	BB_WORDS(b, bb_str(b, "HIGH"), 1, 5);

	ptr = bb_ref(b, PTR, bb_ref(b, CONST, walk));
	BB_FUNC(b, "walk_range", i, ptr, size, mode, 0);
}
