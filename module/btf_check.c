// SPDX-License-Identifier: GPL-2.0
/* Facts about the kernel, compared with its BTF. */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <stdio.h>
#include <string.h>
#endif

#include "btf_types.h"

/* A real fact takes some ten thousand steps. */
#define MAX_STEPS	(4 << 20)

static bool same_name(const struct mmopt_btf *btf, u32 off, const char *name)
{
	const char *s = btf_str(btf, off);

	return s && !strcmp(s, name);
}

/* Renders text: compares it with @want as it goes, and writes it to @buf. */
struct sink {
	const char *want;
	bool same;
	char *buf;
	size_t room;
	char last;
};

static void put(struct sink *out, const char *s)
{
	for (; *s && (out->same || out->room > 1); s++) {
		if (out->same && *out->want++ != *s)
			out->same = false;
		if (out->room > 1) {
			*out->buf++ = *s;
			*out->buf = '\0';
			out->room--;
		}
		out->last = *s;
	}
}

static void put_after(struct sink *out, const char *s)
{
	if (out->last != '*')
		put(out, " ");
	put(out, s);
}

static const char *qualifier(u32 kind)
{
	switch (kind) {
	case K_CONST:
		return "const";
	case K_VOLATILE:
		return "volatile";
	case K_RESTRICT:
		return "restrict";
	default:
		return NULL;
	}
}

static int put_base(struct btf_job *job, struct sink *out, u32 id,
		    const struct btf_rec *t)
{
	const char *name = btf_str(job->btf, t->name);

	if (!name)
		return mmopt_btf_fail(job, -EBADMSG, "BTF: type %u has no name", id);
	switch (t->kind) {
	case K_INT:
	case K_FLOAT:
	case K_TYPEDEF:
		break;
	case K_STRUCT:
		put(out, "struct ");
		break;
	case K_UNION:
		put(out, "union ");
		break;
	case K_FWD:
		put(out, t->kflag ? "union " : "struct ");
		break;
	case K_ENUM:
	case K_ENUM64:
		put(out, "enum ");
		break;
	case K_FUNC_PROTO:
		name = "fn";
		break;
	default:
		return mmopt_btf_fail(job, -EBADMSG, "BTF: type %u of kind %u misplaced",
				      id, t->kind);
	}
	put(out, *name ? name : "(anonymous)");
	return 0;
}

static int put_type(struct btf_job *job, struct sink *out, u32 id)
{
	struct {
		u32 kind;
		u32 nr;
	} chain[MAX_CHAIN];
	struct btf_rec t = { .kind = K_VOID };
	const char *q;
	int n, i, j, err;
	char nr[16];

	/* From the outside in, down to what has a name. */
	for (n = 0; id; ) {
		err = mmopt_btf_get_type(job, id, &t);
		if (err)
			return err;
		if (t.kind != K_PTR && t.kind != K_ARRAY &&
		    (!btf_is_alias(t.kind) || t.kind == K_TYPEDEF))
			break;
		if (n == MAX_CHAIN)
			return mmopt_btf_too_complex(job);
		chain[n].kind = t.kind;
		chain[n].nr = 0;
		id = t.ref;
		if (t.kind == K_ARRAY) {
			id = btf_get32(job->btf, t.data);
			chain[n].nr = btf_get32(job->btf, t.data + 8);
		}
		n++;
	}

	/* Qualifiers of the innermost type stand before it. */
	for (i = n; i && btf_is_alias(chain[i - 1].kind); i--)
		;
	for (j = i; j < n; j++) {
		q = qualifier(chain[j].kind);
		if (q) {
			put(out, q);
			put(out, " ");
		}
	}
	if (!id) {
		put(out, "void");
	} else {
		err = put_base(job, out, id, &t);
		if (err)
			return err;
	}

	while (i--) {
		q = qualifier(chain[i].kind);
		if (chain[i].kind == K_PTR) {
			put_after(out, "*");
		} else if (chain[i].kind == K_ARRAY) {
			snprintf(nr, sizeof(nr), "[%u]", chain[i].nr);
			put(out, nr);
		} else if (q) {
			put_after(out, q);
		}
	}
	return 0;
}

static int put_proto(struct btf_job *job, struct sink *out, u32 id)
{
	struct btf_rec t;
	u32 i, arg;
	int err;

	err = mmopt_btf_get_type(job, id, &t);
	if (err)
		return err;
	if (t.kind != K_FUNC_PROTO)
		return mmopt_btf_fail(job, -EBADMSG, "BTF: type %u is no prototype", id);

	err = put_type(job, out, t.ref);
	if (err)
		return err;
	put(out, " (");
	for (i = 0; i < t.vlen; i++) {
		if (i)
			put(out, ", ");
		arg = btf_get32(job->btf, t.data + i * PARAM_SIZE + 4);
		if (!arg && i == t.vlen - 1) {
			put(out, "...");
			continue;
		}
		if (!btf_step(job))
			return mmopt_btf_too_complex(job);
		err = put_type(job, out, arg);
		if (err)
			return err;
	}
	put(out, t.vlen ? ")" : "void)");
	return 0;
}

static int check_func(struct btf_job *job, const struct mmopt_btf_want *want,
		      const struct btf_rec *t)
{
	struct sink out = { .want = want->proto, .same = true };
	int err, n;

	err = put_proto(job, &out, t->ref);
	if (err)
		return err;
	if (out.same && !*out.want)
		return 0;

	n = snprintf(job->why, job->why_len, "%s: expected `%s`, found `",
		     want->name, want->proto);
	memset(&out, 0, sizeof(out));
	if (n >= 0 && (size_t)n < job->why_len) {
		out.buf = job->why + n;
		out.room = job->why_len - n;
	}
	err = put_proto(job, &out, t->ref);
	if (err)
		return err;
	put(&out, "`");
	return -EINVAL;
}

static int check_size(struct btf_job *job, const struct mmopt_btf_want *want,
		      const struct btf_rec *t)
{
	if (t->ref == want->size)
		return 0;
	return mmopt_btf_fail(job, -EINVAL, "%s: expected size %u, found %u", want->name,
			      want->size, t->ref);
}

static int check_member(struct btf_job *job, const struct mmopt_btf_want *want,
			const struct btf_rec *outer)
{
	const char *name = want->member;
	struct btf_member_at m = { 0 };
	struct btf_rec t = *outer;
	size_t len;
	u64 size = 0;
	int ret;

	for (;;) {
		len = strcspn(name, ".");
		if (t.kind != K_STRUCT && t.kind != K_UNION)
			ret = 0;
		else
			ret = mmopt_btf_find_member(job, &t, name, len, &m);
		if (ret < 0)
			return ret;
		if (!ret)
			return mmopt_btf_fail(job, -ENOENT, "%s: no member %s",
					      want->name, want->member);
		if (m.bitfield)
			return mmopt_btf_fail(job, -EINVAL, "%s.%s: is a bit-field",
					      want->name, want->member);
		if (!name[len])
			break;
		name += len + 1;
		ret = mmopt_btf_real_type(job, m.type, &t);
		if (ret)
			return ret;
	}

	ret = mmopt_btf_size_of(job, m.type, &size);
	if (ret)
		return ret;
	if (m.bit / 8 == want->offset && size == want->size)
		return 0;
	return mmopt_btf_fail(job, -EINVAL,
			      "%s.%s: expected offset %u size %u, found offset %llu size %llu",
			      want->name, want->member, want->offset, want->size,
			      (unsigned long long)m.bit / 8, (unsigned long long)size);
}

static int check_enum(struct btf_job *job, const struct mmopt_btf_want *want,
		      const struct btf_rec *t)
{
	u32 step = t->kind == K_ENUM64 ? ENUM64_SIZE : ENUM_SIZE;
	u32 off = t->data, i, low;
	long long value;

	for (i = 0; i < t->vlen; i++, off += step) {
		if (!btf_step(job))
			return mmopt_btf_too_complex(job);
		if (!same_name(job->btf, btf_get32(job->btf, off), want->member))
			continue;
		low = btf_get32(job->btf, off + 4);
		if (t->kind == K_ENUM64)
			value = (u64)btf_get32(job->btf, off + 8) << 32 | low;
		else
			value = t->kflag ? (int)low : (long long)low;
		if (value == want->value)
			return 0;
		return mmopt_btf_fail(job, -EINVAL, "%s: expected %s = %lld, found %lld",
				      want->name, want->member, want->value, value);
	}
	return mmopt_btf_fail(job, -ENOENT, "%s: no %s", want->name, want->member);
}

static const char *after(const char *s, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(s, prefix, len) ? NULL : s + len;
}

static int check_want(struct btf_job *job, const struct mmopt_btf_want *want)
{
	int (*check)(struct btf_job *job, const struct mmopt_btf_want *want,
		     const struct btf_rec *t);
	const char *name = want->name;
	u32 kind = K_FUNC, or_kind = K_VOID;
	u32 off = 0, found = 0, differ = 0;
	struct btf_rec t;
	int err, ret = 0;

	job->steps = MAX_STEPS;
	switch (want->kind) {
	case MMOPT_BTF_FUNC:
		check = check_func;
		break;
	case MMOPT_BTF_MEMBER:
	case MMOPT_BTF_SIZE:
		check = want->kind == MMOPT_BTF_SIZE ? check_size : check_member;
		kind = K_STRUCT;
		name = after(want->name, "struct ");
		if (!name) {
			kind = K_UNION;
			name = after(want->name, "union ");
		}
		break;
	case MMOPT_BTF_ENUM:
		check = check_enum;
		kind = K_ENUM;
		or_kind = K_ENUM64;
		name = after(want->name, "enum ");
		break;
	default:
		name = NULL;
	}
	if (!name)
		return mmopt_btf_fail(job, -EINVAL, "%s: not a name that can be checked",
				      want->name);

	for (; off < job->btf->types_len; off = t.end) {
		if (!mmopt_btf_read_type(job->btf, off, &t))
			return mmopt_btf_fail(job, -EBADMSG, "BTF: type at 0x%x damaged",
					      off);
		if ((t.kind != kind && t.kind != or_kind) ||
		    !same_name(job->btf, t.name, name))
			continue;
		found++;
		err = check(job, want, &t);
		if (err == -EBADMSG)
			return err;
		if (err) {
			differ++;
			ret = err;
		}
	}
	if (!found)
		return mmopt_btf_fail(job, -ENOENT, "%s: not in the kernel's BTF",
				      want->name);
	if (differ && differ < found)
		return mmopt_btf_fail(job, -EEXIST,
				      "%s: ambiguous, %u of %u of that name differ",
				      want->name, differ, found);
	return ret;
}

/**
 * mmopt_btf_check() - checks facts against BTF
 * @btf:     from mmopt_btf_open()
 * @want:    the facts
 * @nr:      how many
 * @why:     gets a sentence about the first fact that does not hold
 * @why_len: its size
 *
 * A prototype is `ret (arg, arg)`: types as C writes them, without parameter
 * names. Base types and typedefs go by the name that BTF has for them
 * ("long unsigned int", not "unsigned long"), others by "struct x", "union x",
 * "enum x". Qualifiers stand before the type they belong to, those of a
 * pointer behind its star ("const char *", "void *const *"). A function type
 * is "fn" ("fn *" is a pointer to any function), an array "int[4]", varargs
 * "...", no arguments "void". Type tags (__user) are left out.
 *
 * Where several types have the name, all of them must agree.
 *
 * Return: 0; -ENOENT if a name is missing, -EINVAL if something differs,
 * -EEXIST if types of one name differ among themselves, -EBADMSG if the BTF
 * is damaged.
 */
int mmopt_btf_check(const struct mmopt_btf *btf,
		    const struct mmopt_btf_want *want, size_t nr,
		    char *why, size_t why_len)
{
	struct btf_job job = { .btf = btf, .why = why, .why_len = why_len };
	size_t i;
	int err;

	for (i = 0; i < nr; i++) {
		err = check_want(&job, &want[i]);
		if (err)
			return err;
	}
	return 0;
}

