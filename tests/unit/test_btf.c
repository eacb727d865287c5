// SPDX-License-Identifier: GPL-2.0
/* The BTF reader over BTF made by hand: what it accepts, and each sentence. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "btf.h"
#include "btf_build.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct btf_build b;
static char why[256];

static int open_and_check(const struct mmopt_btf_want *want)
{
	struct mmopt_btf btf;
	const uint8_t *data;
	size_t len;
	int err;

	strcpy(why, "");
	data = bb_finish(&b, &len);
	err = mmopt_btf_open(&btf, data, len, why, sizeof(why));
	return err ? err : mmopt_btf_check(&btf, want, 1, why, sizeof(why));
}

#define assert_says(want, err, sentence) do { \
	assert_int_equal(open_and_check(want), err); \
	assert_string_equal(why, sentence); \
} while (0)

static int func(const char *name, const char *proto)
{
	return open_and_check(&(struct mmopt_btf_want){
		.kind = MMOPT_BTF_FUNC, .name = name, .proto = proto });
}

#define assert_proto(name, proto) do { \
	if (func(name, proto)) \
		fail_msg("%s", why); \
	assert_string_equal(why, ""); \
} while (0)

static void test_sample(void **state)
{
	size_t i;

	(void)state;
	bb_sample(&b);
	for (i = 0; i < bb_sample_nr_facts; i++)
		assert_says(&bb_sample_facts[i], 0, "");
}

static void test_all_facts_at_once(void **state)
{
	struct mmopt_btf_want want[16];
	struct mmopt_btf btf;
	const uint8_t *data;
	size_t len;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	assert_int_equal(mmopt_btf_open(&btf, data, len, why, sizeof(why)), 0);
	assert_int_equal(mmopt_btf_check(&btf, bb_sample_facts,
					 bb_sample_nr_facts, why, sizeof(why)), 0);
	/* The last one is looked at too. */
	memcpy(want, bb_sample_facts, bb_sample_nr_facts * sizeof(*want));
	want[bb_sample_nr_facts - 1].name = "walk_nothing";
	assert_int_equal(mmopt_btf_check(&btf, want, bb_sample_nr_facts, why,
					 sizeof(why)), -ENOENT);
	assert_int_equal(mmopt_btf_check(&btf, NULL, 0, why, sizeof(why)), 0);
}

static void test_prototypes(void **state)
{
	uint32_t i, ch, st, un, en, fwd, td, proto, fl, p, arr;

	(void)state;
	bb_reset(&b);
	i = bb_int(&b, "int", 4);
	ch = bb_int(&b, "char", 1);
	fl = bb_type(&b, "double", FLOAT, 0, 8);
	st = bb_type(&b, "page", STRUCT, 0, 0);
	un = bb_type(&b, "slot", UNION, 0, 0);
	en = bb_type(&b, "mode", ENUM, 0, 4);
	fwd = bb_type(&b, "opaque", FWD, 0, 0);
	td = bb_type(&b, "pte_t", TYPEDEF, 0, i);
	proto = bb_type(&b, "", FUNC_PROTO, 1, i);
	BB_WORDS(&b, 0, i);
	arr = bb_array(&b, i, 4);

	bb_func(&b, "nothing", 0, 0, NULL);
	assert_proto("nothing", "void (void)");
	BB_FUNC(&b, "plain", i, st, un, en, td, fl);
	assert_proto("plain", "int (struct page, union slot, enum mode, pte_t, double)");

	p = bb_ref(&b, PTR, bb_ref(&b, CONST, ch));
	BB_FUNC(&b, "print", i, p, 0);
	assert_proto("print", "int (const char *, ...)");
	/* Only the last one stands for varargs. */
	BB_FUNC(&b, "odd", 0, 0, i);
	assert_proto("odd", "void (void, int)");
	BB_FUNC(&b, "pointers", bb_ref(&b, PTR, 0), bb_ref(&b, PTR, bb_ref(&b, PTR, st)),
		bb_ref(&b, PTR, bb_ref(&b, CONST, 0)), bb_ref(&b, PTR, fwd));
	assert_proto("pointers", "void * (struct page **, const void *, struct opaque *)");
	BB_FUNC(&b, "qualified", 0, bb_ref(&b, CONST, bb_ref(&b, PTR, bb_ref(&b, CONST, p))),
		bb_ref(&b, PTR, bb_ref(&b, CONST, bb_ref(&b, VOLATILE, i))),
		bb_ref(&b, RESTRICT, bb_ref(&b, PTR, ch)));
	assert_proto("qualified",
		     "void (const char *const *const, const volatile int *, char *restrict)");
	BB_FUNC(&b, "callback", 0, bb_ref(&b, PTR, proto),
		bb_ref(&b, PTR, bb_ref(&b, PTR, proto)));
	assert_proto("callback", "void (fn *, fn **)");
	BB_FUNC(&b, "arrays", 0, bb_ref(&b, PTR, arr), bb_ref(&b, PTR, bb_array(&b, arr, 2)));
	assert_proto("arrays", "void (int[4] *, int[4][2] *)");
	BB_FUNC(&b, "tagged", 0, bb_ref(&b, PTR, bb_type(&b, "user", TYPE_TAG, 0, ch)));
	assert_proto("tagged", "void (char *)");
	BB_FUNC(&b, "unnamed", 0, bb_type(&b, "", STRUCT, 0, 0),
		bb_ref(&b, PTR, bb_type(&b, "u", FWD | KFLAG, 0, 0)));
	assert_proto("unnamed", "void (struct (anonymous), union u *)");
}

static void test_prototype_differs(void **state)
{
	static const char *const wrong[] = {
		"", "int", "int (", "int (const struct walk *, size_t, enum mode, ...",
		"int (const struct walk *, size_t, enum mode, ...) ",
		"int (struct walk *, size_t, enum mode, ...)",
		"int (const struct walk *, size_t, enum mode)",
		"int (const struct walk *, long unsigned int, enum mode, ...)",
		"void (const struct walk *, size_t, enum mode, ...)",
	};
	char sentence[256];
	size_t i;

	(void)state;
	bb_sample(&b);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(sentence, sizeof(sentence),
			 "walk_range: expected `%s`, found `int (const struct walk *, size_t, enum mode, ...)`",
			 wrong[i]);
		assert_int_equal(func("walk_range", wrong[i]), -EINVAL);
		assert_string_equal(why, sentence);
	}
}

static void test_sentences(void **state)
{
	struct mmopt_btf_want want;

	(void)state;
	bb_sample(&b);
	want = (struct mmopt_btf_want){ .kind = MMOPT_BTF_FUNC, .name = "do_it", .proto = "" };
	assert_says(&want, -ENOENT, "do_it: not in the kernel's BTF");

	want = (struct mmopt_btf_want){ .kind = MMOPT_BTF_SIZE, .name = "struct gone", .size = 1 };
	assert_says(&want, -ENOENT, "struct gone: not in the kernel's BTF");
	want.name = "struct walk";
	assert_says(&want, -EINVAL, "struct walk: expected size 1, found 48");
	want.name = "union walk";
	assert_says(&want, -ENOENT, "union walk: not in the kernel's BTF");
	want.name = "walk";
	assert_says(&want, -EINVAL, "walk: not a name that can be checked");

	want = bb_sample_facts[0];
	want.offset = 16;
	want.size = 4;
	assert_says(&want, -EINVAL,
		    "struct walk.range.end: expected offset 16 size 4, found offset 8 size 8");
	want.offset = 8;
	assert_says(&want, -EINVAL,
		    "struct walk.range.end: expected offset 8 size 4, found offset 8 size 8");
	want.offset = 12;
	want.size = 8;
	assert_says(&want, -EINVAL,
		    "struct walk.range.end: expected offset 12 size 8, found offset 8 size 8");
	want.member = "range.middle";
	assert_says(&want, -ENOENT, "struct walk: no member range.middle");
	want.member = "len.end";
	assert_says(&want, -ENOENT, "struct walk: no member len.end");
	want.member = "rang";
	assert_says(&want, -ENOENT, "struct walk: no member rang");
	want.member = "range.end.x";
	assert_says(&want, -ENOENT, "struct walk: no member range.end.x");
	want.member = "flag";
	assert_says(&want, -EINVAL, "struct walk.flag: is a bit-field");

	want = bb_sample_facts[4];
	want.value = 3;
	assert_says(&want, -EINVAL, "enum mode: expected LOCKED = 3, found -3");
	want.member = "LOCK";
	assert_says(&want, -ENOENT, "enum mode: no LOCK");
	want = bb_sample_facts[5];
	want.value = 1;
	assert_says(&want, -EINVAL, "enum wide: expected HIGH = 1, found 21474836481");

	want.kind = 77;
	assert_says(&want, -EINVAL, "enum wide: not a name that can be checked");
}

static void test_why_is_cut(void **state)
{
	static const char sentence[] =
		"walk_range: expected `void (void)`, found `int (const struct walk *, size_t, enum mode, ...)`";
	const struct mmopt_btf_want want = {
		.kind = MMOPT_BTF_FUNC, .name = "walk_range", .proto = "void (void)" };
	struct mmopt_btf btf;
	const uint8_t *data;
	size_t len, room;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	assert_int_equal(mmopt_btf_open(&btf, data, len, NULL, 0), 0);
	assert_int_equal(mmopt_btf_check(&btf, &want, 1, NULL, 0), -EINVAL);
	for (room = 1; room < sizeof(sentence) + 2; room++) {
		char *buf = malloc(room);

		assert_non_null(buf);
		assert_int_equal(mmopt_btf_check(&btf, &want, 1, buf, room), -EINVAL);
		assert_int_equal(strlen(buf), room < sizeof(sentence) ? room - 1 :
				 sizeof(sentence) - 1);
		assert_memory_equal(buf, sentence, strlen(buf));
		free(buf);
	}
}

static void test_same_name(void **state)
{
	struct mmopt_btf_want want = { .kind = MMOPT_BTF_SIZE, .name = "struct s", .size = 8 };
	uint32_t i;

	(void)state;
	bb_reset(&b);
	i = bb_int(&b, "int", 4);
	BB_FUNC(&b, "twin", i, i);
	BB_FUNC(&b, "twin", i, i);
	assert_proto("twin", "int (int)");
	BB_FUNC(&b, "twin", 0, i);
	assert_int_equal(func("twin", "int (int)"), -EEXIST);
	assert_string_equal(why, "twin: ambiguous, 1 of 3 of that name differ");
	assert_int_equal(func("twin", "void (void)"), -EINVAL);

	/* A variable, a tag or a forward declaration of the name is none. */
	bb_type(&b, "s", FWD, 0, 0);
	bb_type(&b, "s", VAR, 0, i);
	BB_WORDS(&b, 0);
	bb_type(&b, "s", DECL_TAG, 0, i);
	BB_WORDS(&b, -1);
	assert_says(&want, -ENOENT, "struct s: not in the kernel's BTF");
	bb_type(&b, "s", STRUCT, 0, 8);
	assert_says(&want, 0, "");
	bb_type(&b, "s", UNION, 0, 12);
	assert_says(&want, 0, "");
	want.name = "union s";
	want.size = 12;
	assert_says(&want, 0, "");
}

/* Each kind is stepped over by its own size: a function behind it is found. */
static void test_kinds_are_skipped(void **state)
{
	static const struct {
		uint32_t kind, vlen, words;
	} kinds[] = {
		{ INT, 0, 1 }, { PTR, 0, 0 }, { ARRAY, 0, 3 }, { STRUCT, 3, 9 },
		{ UNION, 2, 6 }, { ENUM, 4, 8 }, { FWD, 0, 0 }, { TYPEDEF, 0, 0 },
		{ VOLATILE, 0, 0 }, { CONST, 0, 0 }, { RESTRICT, 0, 0 }, { FUNC, 2, 0 },
		{ FUNC_PROTO, 5, 10 }, { VAR, 0, 1 }, { DATASEC, 3, 9 }, { FLOAT, 0, 0 },
		{ DECL_TAG, 0, 1 }, { TYPE_TAG, 0, 0 }, { ENUM64, 3, 9 },
	};
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		bb_reset(&b);
		bb_type(&b, "x", kinds[i].kind, kinds[i].vlen, 0);
		for (n = 0; n < kinds[i].words; n++)
			BB_WORDS(&b, 0);
		bb_func(&b, "behind", 0, 0, NULL);
		assert_proto("behind", "void (void)");
	}
	bb_reset(&b);
	bb_type(&b, "x", ENUM64 + 1, 0, 0);
	assert_int_equal(func("behind", ""), -EBADMSG);
	assert_string_equal(why, "BTF: type 1 at 0x0 damaged or of unknown kind");
	bb_reset(&b);
	bb_type(&b, "x", 0, 0, 0);
	assert_int_equal(func("behind", ""), -EBADMSG);
}

/* Every type is found by its id, whatever place it has in the index. */
static void test_many_types(void **state)
{
	uint32_t n, ids, i;
	char name[32], proto[80];

	(void)state;
	for (n = 1; n < 1000; n += 37) {
		bb_reset(&b);
		ids = bb_int(&b, "int", 4);
		for (i = 1; i < n; i++) {
			snprintf(name, sizeof(name), "type%u", i);
			ids = bb_type(&b, name, TYPEDEF, 0, 1);
		}
		for (i = 1; i <= ids; i += 1 + n / 40) {
			BB_FUNC(&b, "probe", i, i);
			snprintf(name, sizeof(name), i == 1 ? "int" : "type%u", i - 1);
			snprintf(proto, sizeof(proto), "%s (%s)", name, name);
			assert_proto("probe", proto);
			/* Only the last one may have the name. */
			b.types.len -= 12 + 12 + 8;
			b.nr -= 2;
		}
	}
}

static void test_header(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
		const char *sentence;
	} damage[] = {
		{ 0, 0x9e, "BTF: bad magic 0xeb9e" },
		{ 2, 2, "BTF: unknown version 2, flags 0x0" },
		{ 3, 1, "BTF: unknown version 1, flags 0x1" },
		{ 4, 23, "BTF: bad header length 23" },
		{ 7, 1, "BTF: bad header length 16777240" },
		{ 11, 0xff, "BTF: types out of bounds" },
		{ 15, 0xff, "BTF: types out of bounds" },
		{ 19, 0xff, "BTF: strings out of bounds" },
		{ 23, 0xff, "BTF: strings out of bounds" },
	};
	struct mmopt_btf btf;
	const uint8_t *data;
	uint8_t copy[2048];
	size_t i, len;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	assert_true(len < sizeof(copy));
	for (i = 0; i < ARRAY_SIZE(damage); i++) {
		memcpy(copy, data, len);
		copy[damage[i].at] = damage[i].byte;
		assert_int_equal(mmopt_btf_open(&btf, copy, len, why, sizeof(why)), -EBADMSG);
		assert_string_equal(why, damage[i].sentence);
	}
	/* A header that is just longer than everything. */
	memcpy(copy, data, len);
	copy[4] = (len + 1) & 0xff;
	copy[5] = (len + 1) >> 8;
	assert_int_equal(mmopt_btf_open(&btf, copy, len, why, sizeof(why)), -EBADMSG);
	assert_memory_equal(why, "BTF: bad header length ", 23);

	/* Strings begin and end with a NUL, and there are some. */
	memcpy(copy, data, len);
	copy[len - 1] = 'x';
	assert_int_equal(mmopt_btf_open(&btf, copy, len, why, sizeof(why)), -EBADMSG);
	assert_string_equal(why, "BTF: strings not between two NULs");
	copy[len - 1] = 0;
	copy[24 + b.types.len] = 'x';
	assert_int_equal(mmopt_btf_open(&btf, copy, len, why, sizeof(why)), -EBADMSG);
	assert_string_equal(why, "BTF: strings not between two NULs");
	memcpy(copy, data, len);
	memset(copy + 20, 0, 4);
	assert_int_equal(mmopt_btf_open(&btf, copy, len, why, sizeof(why)), -EBADMSG);
	assert_string_equal(why, "BTF: strings not between two NULs");
	assert_int_equal(mmopt_btf_open(&btf, data, 23, why, sizeof(why)), -EBADMSG);
	assert_string_equal(why, "BTF: shorter than its header");

	/* A longer header, as later kernels may have. */
	memcpy(copy, data, 24);
	copy[4] = 32;
	memset(copy + 24, 0, 8);
	memcpy(copy + 32, data + 24, len - 24);
	assert_int_equal(mmopt_btf_open(&btf, copy, len + 8, why, sizeof(why)), 0);
	assert_int_equal(mmopt_btf_check(&btf, bb_sample_facts, bb_sample_nr_facts,
					 why, sizeof(why)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_all_facts_at_once),
		cmocka_unit_test(test_prototypes),
		cmocka_unit_test(test_prototype_differs),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_why_is_cut),
		cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_kinds_are_skipped),
		cmocka_unit_test(test_many_types),
		cmocka_unit_test(test_header),
	};
	int failed = cmocka_run_group_tests_name("btf", tests, NULL, NULL);

	bb_free(&b);
	return failed;
}
