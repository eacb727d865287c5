// SPDX-License-Identifier: GPL-2.0
/*
 * The BTF reader over BTF that is damaged or made to do harm. Each input is an
 * allocation of its exact size, so the sanitizer sees every read past it; and
 * no input may cost more than a moment.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "btf.h"
#include "btf_build.h"

/* CPU seconds for one fact, under the sanitizers. */
#define MOMENT 2.0

static struct btf_build b;
static char why[256];

static int check(const uint8_t *data, size_t len,
		 const struct mmopt_btf_want *want)
{
	struct mmopt_btf btf;
	int err;

	memset(why, 'x', sizeof(why));
	why[0] = '\0';
	err = mmopt_btf_open(&btf, data, len, why, sizeof(why));
	if (!err)
		err = mmopt_btf_check(&btf, want, 1, why, sizeof(why));
	assert_non_null(memchr(why, 0, sizeof(why)));
	switch (err) {
	case 0:
		assert_string_equal(why, "");
		break;
	case -ENOENT:
	case -EINVAL:
	case -EEXIST:
	case -EBADMSG:
		assert_string_not_equal(why, "");
		break;
	default:
		fail_msg("error %d: %s", err, why);
	}
	return err;
}

static int check_built(const struct mmopt_btf_want *want)
{
	clock_t start = clock();
	const uint8_t *data;
	size_t len;
	int err;

	data = bb_finish(&b, &len);
	err = check(data, len, want);
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < MOMENT);
	return err;
}

static uint8_t *copy_of(const uint8_t *data, size_t len)
{
	uint8_t *p = malloc(len ? len : 1);

	assert_non_null(p);
	return memcpy(p, data, len);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void test_cut_anywhere(void **state)
{
	const uint8_t *data;
	size_t len, cut, i;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	for (cut = 0; cut < len; cut++) {
		uint8_t *p = copy_of(data, cut);

		for (i = 0; i < bb_sample_nr_facts; i++)
			assert_int_equal(check(p, cut, &bb_sample_facts[i]), -EBADMSG);
		free(p);
	}
}

/* The header goes with the cut, so that only the records can tell. */
static void test_types_cut_anywhere(void **state)
{
	size_t len, cut, head, i;
	const uint8_t *data;
	int opened = 0;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	head = len - b.strs.len;
	for (cut = 24; cut < head; cut++) {
		uint8_t *p = malloc(b.strs.len + cut);

		assert_non_null(p);
		memcpy(p, data + head, b.strs.len);
		memcpy(p + b.strs.len, data, cut);
		/* Strings first, so that the end of the types is the end. */
		memmove(p + 24, p, b.strs.len);
		memcpy(p, data, 24);
		memcpy(p + 24 + b.strs.len, data + 24, cut - 24);
		put32(p + 8, b.strs.len);
		put32(p + 12, cut - 24);
		put32(p + 16, 0);
		for (i = 0; i < bb_sample_nr_facts; i++)
			opened += check(p, b.strs.len + cut, &bb_sample_facts[i]) != -EBADMSG;
		free(p);
	}
	/* Cuts between two records leave a whole, if smaller, BTF. */
	assert_true(opened > 0);
}

static void test_strings_cut_anywhere(void **state)
{
	size_t len, cut, i;
	const uint8_t *data;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	for (cut = len - b.strs.len; cut < len; cut++) {
		uint8_t *p = copy_of(data, cut);

		put32(p + 20, cut - (len - b.strs.len));
		for (i = 0; i < bb_sample_nr_facts; i++)
			check(p, cut, &bb_sample_facts[i]);
		free(p);
	}
}

static void test_each_bit_flipped(void **state)
{
	size_t len, bit, i, noticed = 0;
	const uint8_t *data;

	(void)state;
	bb_sample(&b);
	data = bb_finish(&b, &len);
	for (bit = 0; bit < 8 * len; bit++) {
		uint8_t *p = copy_of(data, len);
		int bad = 0;

		p[bit / 8] ^= 1 << bit % 8;
		for (i = 0; i < bb_sample_nr_facts; i++)
			bad |= check(p, len, &bb_sample_facts[i]);
		noticed += bad != 0;
		free(p);
	}
	/*
	 * What goes unnoticed is not part of any fact: names of parameters,
	 * say. The sample is mostly facts.
	 */
	assert_true(noticed > 8 * len / 2);
}

/* Two random bytes at a time: combinations that single bits do not make. */
static void test_random_damage(void **state)
{
	const uint8_t *data;
	size_t len, i;
	int round;

	(void)state;
	srand(1);
	bb_sample(&b);
	data = bb_finish(&b, &len);
	for (round = 0; round < 20000; round++) {
		uint8_t *p = copy_of(data, len);

		p[rand() % len] = rand();
		p[rand() % len] = rand();
		for (i = 0; i < bb_sample_nr_facts; i++)
			check(p, len, &bb_sample_facts[i]);
		free(p);
	}
}

static const struct mmopt_btf_want size_of_m = {
	.kind = MMOPT_BTF_MEMBER, .name = "struct s", .member = "m",
};

static const struct mmopt_btf_want proto_of_f = {
	.kind = MMOPT_BTF_FUNC, .name = "f", .proto = "void (void)",
};

static void assert_too_complex(const struct mmopt_btf_want *want)
{
	assert_int_equal(check_built(want), -EBADMSG);
	assert_string_equal(why, "BTF: types too deep or too many");
}

/* Types that refer to themselves or in a circle. */
static void test_cycles(void **state)
{
	static const uint32_t kinds[] = { TYPEDEF, CONST, VOLATILE, RESTRICT, TYPE_TAG, PTR };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bb_reset(&b);
		bb_type(&b, kinds[i] == TYPEDEF ? "t" : "", kinds[i], 0, 2);
		bb_type(&b, kinds[i] == TYPEDEF ? "u" : "", kinds[i], 0, 1);
		bb_type(&b, "s", STRUCT, 1, 8);
		bb_member(&b, "m", 1, 0);
		BB_FUNC(&b, "f", 0, 1);
		if (kinds[i] != PTR)
			assert_too_complex(&size_of_m);
		if (kinds[i] != TYPEDEF)
			assert_too_complex(&proto_of_f);
	}

	bb_reset(&b);
	bb_array(&b, 1, 2);
	bb_type(&b, "s", STRUCT, 1, 8);
	bb_member(&b, "m", 1, 0);
	BB_FUNC(&b, "f", 0, 1);
	assert_too_complex(&size_of_m);
	assert_too_complex(&proto_of_f);

	/* A struct whose anonymous member is itself. */
	bb_reset(&b);
	bb_type(&b, "s", STRUCT, 1, 8);
	bb_member(&b, "", 1, 0);
	assert_too_complex(&size_of_m);
}

/* Structs that hold the next one many times: 64 to the 7th ways through. */
static void test_wide_nesting(void **state)
{
	uint32_t depth, i;

	(void)state;
	bb_reset(&b);
	bb_type(&b, "", STRUCT, 0, 0);
	for (depth = 1; depth < 8; depth++) {
		bb_type(&b, depth < 7 ? "" : "s", STRUCT, 64, 0);
		for (i = 0; i < 64; i++)
			bb_member(&b, "", depth, 0);
	}
	assert_too_complex(&size_of_m);
}

static void test_array_of_all_memory(void **state)
{
	uint32_t id, i;

	(void)state;
	bb_reset(&b);
	id = bb_int(&b, "int", 4);
	for (i = 0; i < 3; i++)
		id = bb_array(&b, id, 0xffffffff);
	bb_type(&b, "s", STRUCT, 1, 8);
	bb_member(&b, "m", id, 0);
	assert_too_complex(&size_of_m);
}

static void test_wrong_kind_of_type(void **state)
{
	uint32_t func, var;

	(void)state;
	bb_reset(&b);
	bb_int(&b, "int", 4);
	func = bb_func(&b, "g", 0, 0, NULL);
	var = bb_type(&b, "v", VAR, 0, 1);
	BB_WORDS(&b, 0);
	bb_type(&b, "s", STRUCT, 1, 8);
	bb_member(&b, "m", func, 0);
	BB_FUNC(&b, "f", 0, var);
	assert_int_equal(check_built(&size_of_m), -EBADMSG);
	assert_string_equal(why, "BTF: type 3 has no size");
	assert_int_equal(check_built(&proto_of_f), -EBADMSG);
	assert_string_equal(why, "BTF: type 4 of kind 14 misplaced");

	bb_reset(&b);
	bb_type(&b, "f", FUNC, 0, 1);
	assert_int_equal(check_built(&proto_of_f), -EBADMSG);
	assert_string_equal(why, "BTF: type 1 is no prototype");

	bb_reset(&b);
	bb_type(&b, "f", FUNC, 0, 2);
	assert_int_equal(check_built(&proto_of_f), -EBADMSG);
	assert_string_equal(why, "BTF: no type 2");
	bb_reset(&b);
	bb_type(&b, "s", STRUCT, 1, 8);
	bb_member(&b, "m", 0xffffffff, 0);
	assert_int_equal(check_built(&size_of_m), -EBADMSG);
	assert_string_equal(why, "BTF: no type 4294967295");
}

static void test_names_outside(void **state)
{
	(void)state;
	bb_reset(&b);
	bb_type(&b, "s", STRUCT, 1, 8);
	BB_WORDS(&b, 0x7fffffff, 1, 0);
	assert_int_equal(check_built(&size_of_m), -EBADMSG);
	assert_string_equal(why, "BTF: member has no name");
	BB_WORDS(&b, 1000, PTR << 24, 0);
	assert_int_equal(check_built(&size_of_m), -EBADMSG);
	assert_string_equal(why, "BTF: name of type 2 outside the strings");
}

static void test_more_parts_than_data(void **state)
{
	static const uint32_t kinds[] = { STRUCT, UNION, ENUM, FUNC_PROTO, DATASEC, ENUM64 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bb_reset(&b);
		bb_type(&b, "s", kinds[i], 0xffffff, 0);
		assert_int_equal(check_built(&size_of_m), -EBADMSG);
		assert_string_equal(why, "BTF: type 1 at 0x0 damaged or of unknown kind");
	}
}

/* Very many of everything, each as far from the index as can be. */
static void test_many(void **state)
{
	const struct mmopt_btf_want value = {
		.kind = MMOPT_BTF_ENUM, .name = "enum e", .member = "none",
	};
	uint32_t i, last;

	(void)state;
	bb_reset(&b);
	bb_int(&b, "int", 4);
	for (i = 0; i < 300000; i++)
		bb_ref(&b, PTR, 1);
	for (i = 0; i < 100000; i++)
		BB_FUNC(&b, "f", 0, 300000, 300000, 300000);
	assert_too_complex(&proto_of_f);

	bb_reset(&b);
	bb_type(&b, "", FUNC_PROTO, 500000, 0);
	for (i = 0; i < 500000; i++)
		BB_WORDS(&b, 0, 2);
	bb_int(&b, "int", 4);
	for (i = 0; i < 100; i++)
		bb_type(&b, "f", FUNC, 0, 1);
	assert_too_complex(&proto_of_f);

	bb_reset(&b);
	bb_int(&b, "int", 4);
	for (last = 0; last < 50; last++) {
		bb_type(&b, "s", STRUCT, 20000, 4);
		for (i = 0; i < 20000; i++)
			bb_member(&b, "member", 1, 0);
	}
	assert_int_equal(check_built(&size_of_m), -ENOENT);
	for (last = 0; last < 5; last++) {
		bb_type(&b, "e", ENUM, 1000000, 4);
		for (i = 0; i < 1000000; i++)
			BB_WORDS(&b, 0, 1);
	}
	assert_too_complex(&value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_types_cut_anywhere),
		cmocka_unit_test(test_strings_cut_anywhere),
		cmocka_unit_test(test_each_bit_flipped),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_wide_nesting),
		cmocka_unit_test(test_array_of_all_memory),
		cmocka_unit_test(test_wrong_kind_of_type),
		cmocka_unit_test(test_names_outside),
		cmocka_unit_test(test_more_parts_than_data),
		cmocka_unit_test(test_many),
	};
	int failed = cmocka_run_group_tests_name("btf_hostile", tests, NULL, NULL);

	bb_free(&b);
	return failed;
}
