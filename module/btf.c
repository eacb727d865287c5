// SPDX-License-Identifier: GPL-2.0
/*
 * BTF is a list of type records of varying length, numbered from 1 in the
 * order in which they stand. Nothing here allocates or recurses, and nothing
 * in the data is believed: each read is bounded by its section, and a budget
 * of steps per fact bounds the time that types which contain each other, or
 * very many of one name, can take.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

#include "btf_types.h"

/*
 * Own names for the format: the headers of the supported kernels differ in
 * the width of kind and vlen. The widest reading is right for all of them,
 * because the bits that grew were zero before.
 */
#define MAGIC		0xeb9f
#define VERSION		1
#define HDR_MIN		24
#define KIND(info)	(((info) >> 24) & 0x7f)
#define VLEN(info)	((info) & 0xffffff)
#define KFLAG(info)	((info) >> 31)

/* What follows a record: a fixed part, and a part for each of vlen. */
static const struct {
	u8 fixed;
	u8 each;
} extra[] = {
	[K_INT] = { 4, 0 },
	[K_ARRAY] = { 12, 0 },
	[K_STRUCT] = { 0, MEMBER_SIZE },
	[K_UNION] = { 0, MEMBER_SIZE },
	[K_ENUM] = { 0, ENUM_SIZE },
	[K_FUNC_PROTO] = { 0, PARAM_SIZE },
	[K_VAR] = { 4, 0 },
	[K_DATASEC] = { 0, 12 },
	[K_DECL_TAG] = { 4, 0 },
	[K_ENUM64] = { 0, ENUM64_SIZE },
};

/* Deepest nesting of anonymous structs and unions. */
#define MAX_NEST	8

int mmopt_btf_fail(struct btf_job *job, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(job->why, job->why_len, fmt, ap);
	va_end(ap);
	return err;
}

/* Reads the record at @off; false if it is of no known kind or too long. */
bool mmopt_btf_read_type(const struct mmopt_btf *btf, u32 off, struct btf_rec *t)
{
	u32 room = btf->types_len - off;
	u32 info;
	u64 need;

	if (off > btf->types_len || room < REC_SIZE)
		return false;
	info = btf_get32(btf, off + 4);
	t->name = btf_get32(btf, off);
	t->kind = KIND(info);
	t->vlen = VLEN(info);
	t->kflag = KFLAG(info);
	t->ref = btf_get32(btf, off + 8);
	if (t->kind == K_VOID || t->kind > K_ENUM64)
		return false;

	need = REC_SIZE;
	if (t->kind < ARRAY_SIZE(extra))
		need += extra[t->kind].fixed +
			(u64)extra[t->kind].each * t->vlen;
	if (need > room)
		return false;
	t->data = off + REC_SIZE;
	t->end = off + (u32)need;
	return true;
}

int mmopt_btf_too_complex(struct btf_job *job)
{
	return mmopt_btf_fail(job, -EBADMSG, "BTF: types too deep or too many");
}

int mmopt_btf_get_type(struct btf_job *job, u32 id, struct btf_rec *t)
{
	const struct mmopt_btf *btf = job->btf;
	u32 slot, cur, off;

	if (!id || id > btf->nr_types)
		return mmopt_btf_fail(job, -EBADMSG, "BTF: no type %u", id);

	slot = (id - 1) >> btf->index_shift;
	off = btf->index[slot];
	for (cur = 1 + (slot << btf->index_shift); ; cur++) {
		if (!btf_step(job))
			return mmopt_btf_too_complex(job);
		if (!mmopt_btf_read_type(btf, off, t))
			return mmopt_btf_fail(job, -EBADMSG, "BTF: type %u damaged", cur);
		if (cur == id)
			return 0;
		off = t->end;
	}
}

/* The type behind typedefs and qualifiers. */
int mmopt_btf_real_type(struct btf_job *job, u32 id, struct btf_rec *t)
{
	int depth, err;

	for (depth = 0; depth < MAX_CHAIN; depth++) {
		err = mmopt_btf_get_type(job, id, t);
		if (err || !btf_is_alias(t->kind))
			return err;
		id = t->ref;
	}
	return mmopt_btf_too_complex(job);
}

int mmopt_btf_size_of(struct btf_job *job, u32 id, u64 *size)
{
	u64 nr = 1;
	struct btf_rec t;
	int depth, err;

	for (depth = 0; depth < MAX_CHAIN; depth++) {
		err = mmopt_btf_real_type(job, id, &t);
		if (err)
			return err;
		switch (t.kind) {
		case K_PTR:
			*size = nr * sizeof(u64);
			return 0;
		case K_INT:
		case K_FLOAT:
		case K_ENUM:
		case K_ENUM64:
		case K_STRUCT:
		case K_UNION:
			*size = nr * t.ref;
			return 0;
		case K_ARRAY:
			id = btf_get32(job->btf, t.data);
			nr *= btf_get32(job->btf, t.data + 8);
			if (nr >> 32)
				return mmopt_btf_too_complex(job);
			break;
		default:
			return mmopt_btf_fail(job, -EBADMSG, "BTF: type %u has no size",
					      id);
		}
	}
	return mmopt_btf_too_complex(job);
}

/* Members of a struct or union that are still to be looked at. */
struct members {
	u32 data;
	u32 left;
	bool kflag;
	u64 bit;
};

static void enter(struct members *m, const struct btf_rec *t, u64 bit)
{
	m->data = t->data;
	m->left = t->vlen;
	m->kflag = t->kflag;
	m->bit = bit;
}

/*
 * Finds a member of @outer, which lies at @m->bit, as C does: also among those
 * of anonymous structs and unions. 1 if found, 0 if not.
 */
int mmopt_btf_find_member(struct btf_job *job, const struct btf_rec *outer,
			  const char *name, size_t name_len,
			  struct btf_member_at *m)
{
	struct members stack[MAX_NEST], *top = stack;
	struct btf_rec t;
	const char *s;
	u32 off;
	int err;

	enter(top, outer, m->bit);
	for (;;) {
		while (!top->left) {
			if (top == stack)
				return 0;
			top--;
		}
		if (!btf_step(job))
			return mmopt_btf_too_complex(job);

		s = btf_str(job->btf, btf_get32(job->btf, top->data));
		m->type = btf_get32(job->btf, top->data + 4);
		off = btf_get32(job->btf, top->data + 8);
		m->bitfield = (top->kflag && off >> 24) || off % 8;
		m->bit = top->bit + (top->kflag ? off & 0xffffff : off);
		top->data += MEMBER_SIZE;
		top->left--;

		if (!s)
			return mmopt_btf_fail(job, -EBADMSG, "BTF: member has no name");
		if (!strncmp(s, name, name_len) && !s[name_len])
			return 1;
		if (*s)
			continue;
		err = mmopt_btf_real_type(job, m->type, &t);
		if (err)
			return err;
		if (t.kind != K_STRUCT && t.kind != K_UNION)
			continue;
		if (top == &stack[MAX_NEST - 1])
			return mmopt_btf_too_complex(job);
		enter(++top, &t, m->bit);
	}
}

/* Every record in bounds and of a known kind; counted, with the index. */
static int index_types(struct btf_job *job, struct mmopt_btf *btf)
{
	u32 off, i, slot;
	struct btf_rec t;

	btf->nr_types = 0;
	btf->index_shift = 0;
	for (off = 0; off < btf->types_len; off = t.end) {
		if (!mmopt_btf_read_type(btf, off, &t))
			return mmopt_btf_fail(job, -EBADMSG,
					      "BTF: type %u at 0x%x damaged or of unknown kind",
					      btf->nr_types + 1, off);
		if (!btf_str(btf, t.name))
			return mmopt_btf_fail(job, -EBADMSG,
					      "BTF: name of type %u outside the strings",
					      btf->nr_types + 1);

		slot = btf->nr_types >> btf->index_shift;
		if (slot == MMOPT_BTF_INDEX) {
			for (i = 0; i < MMOPT_BTF_INDEX / 2; i++)
				btf->index[i] = btf->index[2 * i];
			btf->index_shift++;
			slot /= 2;
		}
		if (btf->nr_types == slot << btf->index_shift)
			btf->index[slot] = off;
		btf->nr_types++;
	}
	return 0;
}

/**
 * mmopt_btf_open() - finds the sections of BTF data
 * @btf:     set up on success
 * @data:    the data, as in /sys/kernel/btf/vmlinux; must outlive @btf
 * @len:     its length in bytes
 * @why:     gets a sentence about what is wrong
 * @why_len: its size
 *
 * Return: 0, or -EBADMSG if this is not BTF, or damaged.
 */
int mmopt_btf_open(struct mmopt_btf *btf, const void *data, size_t len,
		   char *why, size_t why_len)
{
	struct btf_job job = { .btf = btf, .why = why, .why_len = why_len };
	u32 hdr_len, off[2], size[2];
	const u8 *p = data;
	u16 magic;
	int i;

	if (len < HDR_MIN)
		return mmopt_btf_fail(&job, -EBADMSG, "BTF: shorter than its header");
	memcpy(&magic, p, sizeof(magic));
	memcpy(&hdr_len, p + 4, sizeof(hdr_len));
	if (magic != MAGIC)
		return mmopt_btf_fail(&job, -EBADMSG, "BTF: bad magic 0x%x", magic);
	if (p[2] != VERSION || p[3])
		return mmopt_btf_fail(&job, -EBADMSG,
				      "BTF: unknown version %u, flags 0x%x", p[2], p[3]);
	if (hdr_len < HDR_MIN || hdr_len > len)
		return mmopt_btf_fail(&job, -EBADMSG, "BTF: bad header length %u", hdr_len);

	for (i = 0; i < 2; i++) {
		memcpy(&off[i], p + 8 + 8 * i, sizeof(off[i]));
		memcpy(&size[i], p + 12 + 8 * i, sizeof(size[i]));
		if ((u64)off[i] + size[i] > len - hdr_len)
			return mmopt_btf_fail(&job, -EBADMSG, "BTF: %s out of bounds",
					      i ? "strings" : "types");
	}
	btf->types = p + hdr_len + off[0];
	btf->types_len = size[0];
	btf->strs = (const char *)p + hdr_len + off[1];
	btf->strs_len = size[1];
	if (!size[1] || btf->strs[0] || btf->strs[size[1] - 1])
		return mmopt_btf_fail(&job, -EBADMSG,
				      "BTF: strings not between two NULs");
	return index_types(&job, btf);
}
