// SPDX-License-Identifier: GPL-2.0
/* The BTF reader over the BTF of each kernel image of the matrix. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "btf.h"
#include "image.h"

#define FUNC(fn, p) { .kind = MMOPT_BTF_FUNC, .name = fn, .proto = p }
#define MEMBER(s, m, o, n) \
	{ .kind = MMOPT_BTF_MEMBER, .name = "struct " s, .member = m, .offset = o, .size = n }
#define SIZE(s, n) { .kind = MMOPT_BTF_SIZE, .name = "struct " s, .size = n }
#define ENUM(e, m, v) \
	{ .kind = MMOPT_BTF_ENUM, .name = "enum " e, .member = m, .value = v }

/* What the three kernels have in common. */
#define COMMON \
	FUNC("do_madvise", "int (struct mm_struct *, long unsigned int, size_t, int)"), \
	FUNC("madvise_cold_or_pageout_pte_range", \
	     "int (pmd_t *, long unsigned int, long unsigned int, struct mm_walk *)"), \
	FUNC("walk_page_range_vma", \
	     "int (struct vm_area_struct *, long unsigned int, long unsigned int, const struct mm_walk_ops *, void *)"), \
	FUNC("lru_add_drain", "void (void)"), \
	FUNC("tlb_gather_mmu", "void (struct mmu_gather *, struct mm_struct *)"), \
	FUNC("tlb_finish_mmu", "void (struct mmu_gather *)"), \
	FUNC("insn_decode", "int (struct insn *, const void *, int, enum insn_mode)"), \
	FUNC("ftrace_location", "long unsigned int (long unsigned int)"), \
	FUNC("call_rcu", "void (struct callback_head *, rcu_callback_t)"), \
	FUNC("vprintk_emit", \
	     "int (int, int, const struct dev_printk_info *, const char *, struct __va_list_tag *)"), \
	FUNC("seq_printf", "void (struct seq_file *, const char *, ...)"), \
	SIZE("mmu_gather", 128), \
	MEMBER("mmu_gather", "mm", 0, 8), \
	MEMBER("mmu_gather", "start", 16, 8), \
	MEMBER("madvise_walk_private", "tlb", 0, 8), \
	MEMBER("madvise_walk_private", "pageout", 8, 1), \
	SIZE("madvise_walk_private", 16), \
	MEMBER("vm_area_struct", "vm_start", 0, 8), \
	MEMBER("vm_area_struct", "vm_end", 8, 8), \
	MEMBER("list_head", "prev", 8, 8), \
	ENUM("insn_mode", "INSN_MODE_KERN", 2), \
	ENUM("pid_type", "PIDTYPE_SID", 3)

static const struct mmopt_btf_want debian12[] = {
	COMMON,
	FUNC("madvise_cold",
	     "long int (struct vm_area_struct *, struct vm_area_struct **, long unsigned int, long unsigned int)"),
	FUNC("madvise_pageout",
	     "long int (struct vm_area_struct *, struct vm_area_struct **, long unsigned int, long unsigned int)"),
	{ 0 },
};

static const struct mmopt_btf_want debian13[] = {
	COMMON,
	FUNC("lock_vma_under_rcu",
	     "struct vm_area_struct * (struct mm_struct *, long unsigned int)"),
	{ 0 },
};

static const struct mmopt_btf_want debian13_backports[] = {
	COMMON,
	FUNC("lock_vma_under_rcu",
	     "struct vm_area_struct * (struct mm_struct *, long unsigned int)"),
	FUNC("madvise_lock", "int (struct madvise_behavior *)"),
	FUNC("madvise_unlock", "void (struct madvise_behavior *)"),
	FUNC("madvise_do_behavior",
	     "int (long unsigned int, size_t, struct madvise_behavior *)"),
	FUNC("madvise_vma_behavior", "int (struct madvise_behavior *)"),
	FUNC("madvise_cold", "long int (struct madvise_behavior *)"),
	FUNC("madvise_pageout", "long int (struct madvise_behavior *)"),
	SIZE("madvise_behavior", 80),
	MEMBER("madvise_behavior", "mm", 0, 8),
	MEMBER("madvise_behavior", "behavior", 8, 4),
	MEMBER("madvise_behavior", "tlb", 16, 8),
	MEMBER("madvise_behavior", "lock_mode", 24, 4),
	MEMBER("madvise_behavior", "anon_name", 32, 8),
	MEMBER("madvise_behavior", "range", 40, 16),
	MEMBER("madvise_behavior", "range.start", 40, 8),
	MEMBER("madvise_behavior", "range.end", 48, 8),
	MEMBER("madvise_behavior", "prev", 56, 8),
	MEMBER("madvise_behavior", "vma", 64, 8),
	MEMBER("madvise_behavior", "lock_dropped", 72, 1),
	ENUM("madvise_lock_mode", "MADVISE_NO_LOCK", 0),
	ENUM("madvise_lock_mode", "MADVISE_MMAP_READ_LOCK", 1),
	ENUM("madvise_lock_mode", "MADVISE_MMAP_WRITE_LOCK", 2),
	ENUM("madvise_lock_mode", "MADVISE_VMA_READ_LOCK", 3),
	{ 0 },
};

/* Static functions that the compiler inlined, or that are not there yet. */
static const char *const absent12[] = {
	"lock_vma_under_rcu", "madvise_lock", "madvise_do_behavior", NULL,
};

static const char *const absent13[] = {
	"madvise_cold", "madvise_pageout", "madvise_lock", "madvise_do_behavior", NULL,
};

static const char *const absent13_backports[] = { NULL };

struct kernel {
	const char *name;
	const struct mmopt_btf_want *facts;
	const char *const *absent;
};

static struct kernel kernels[] = {
	{ "debian12", debian12, absent12 },
	{ "debian13", debian13, absent13 },
	{ "debian13-backports", debian13_backports, absent13_backports },
};

static char why[400];

static void open_kernel(const struct kernel *k, struct mmopt_btf *btf)
{
	const struct image *image = image_open(k->name);

	if (mmopt_btf_open(btf, image->btf, image->btf_len, why, sizeof(why)))
		fail_msg("%s: %s", k->name, why);
	assert_true(btf->nr_types > 50000);
}

static void test_facts_hold(void **state)
{
	const struct kernel *k = *state;
	const struct mmopt_btf_want *want;
	struct mmopt_btf btf;

	open_kernel(k, &btf);
	for (want = k->facts; want->name; want++)
		if (mmopt_btf_check(&btf, want, 1, why, sizeof(why)))
			fail_msg("%s: %s", k->name, why);
}

/* The same facts, each wrong in one thing. */
static void test_wrong_facts_are_noticed(void **state)
{
	const struct kernel *k = *state;
	const struct mmopt_btf_want *want;
	struct mmopt_btf btf;

	open_kernel(k, &btf);
	for (want = k->facts; want->name; want++) {
		struct mmopt_btf_want wrong = *want;
		char name[80];

		snprintf(name, sizeof(name), "%s_", want->name);
		wrong.name = name;
		assert_int_equal(mmopt_btf_check(&btf, &wrong, 1, why, sizeof(why)), -ENOENT);

		wrong = *want;
		switch (want->kind) {
		case MMOPT_BTF_FUNC:
			wrong.proto = "int (struct vm_area_struct *)";
			break;
		case MMOPT_BTF_MEMBER:
			wrong.offset++;
			assert_int_equal(mmopt_btf_check(&btf, &wrong, 1, why, sizeof(why)),
					 -EINVAL);
			wrong.offset--;
			wrong.size++;
			break;
		case MMOPT_BTF_SIZE:
			wrong.size--;
			break;
		case MMOPT_BTF_ENUM:
			wrong.value++;
			break;
		}
		assert_int_equal(mmopt_btf_check(&btf, &wrong, 1, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "expected"));
		assert_non_null(strstr(why, "found"));
	}
}

static void test_absent_functions(void **state)
{
	const struct kernel *k = *state;
	const char *const *name;
	struct mmopt_btf btf;
	char sentence[120];

	open_kernel(k, &btf);
	for (name = k->absent; *name; name++) {
		struct mmopt_btf_want want = FUNC(*name, "void (void)");

		assert_int_equal(mmopt_btf_check(&btf, &want, 1, why, sizeof(why)), -ENOENT);
		snprintf(sentence, sizeof(sentence), "%s: not in the kernel's BTF", *name);
		assert_string_equal(why, sentence);
	}
}

/* Members that C finds in anonymous parts, and bit-fields. */
static void test_anonymous_members(void **state)
{
	const struct kernel *k = *state;
	struct mmopt_btf_want want = MEMBER("page", "mapping", 24, 8);
	struct mmopt_btf btf;

	open_kernel(k, &btf);
	if (mmopt_btf_check(&btf, &want, 1, why, sizeof(why)))
		fail_msg("%s: %s", k->name, why);
	want = (struct mmopt_btf_want)MEMBER("mmu_gather", "fullmm", 32, 4);
	assert_int_equal(mmopt_btf_check(&btf, &want, 1, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "struct mmu_gather.fullmm: is a bit-field");
}

/* Damaged all over: an answer or an error, never more. */
static void test_damaged_btf(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	const struct mmopt_btf_want *want;
	uint8_t *copy = malloc(image->btf_len);
	int round, i, refused = 0;
	struct mmopt_btf btf;

	assert_non_null(copy);
	srand(1);
	for (round = 0; round < 20; round++) {
		memcpy(copy, image->btf, image->btf_len);
		/* Not the header: that refuses before anything is read. */
		for (i = 0; i < 1 << round % 10; i++)
			copy[32 + rand() % (image->btf_len - 32)] ^= 1 << rand() % 8;
		if (mmopt_btf_open(&btf, copy, image->btf_len, why, sizeof(why))) {
			refused++;
			continue;
		}
		for (want = k->facts; want->name; want++)
			mmopt_btf_check(&btf, want, 1, why, sizeof(why));
	}
	assert_true(refused > 0 && refused < round);
	free(copy);
}

/* All facts of a kernel: milliseconds, not more, even under the sanitizers. */
static void test_time(void **state)
{
	const struct kernel *k = *state;
	const struct mmopt_btf_want *want;
	struct mmopt_btf btf;
	size_t nr = 0;
	clock_t start;

	for (want = k->facts; want->name; want++)
		nr++;
	start = clock();
	open_kernel(k, &btf);
	assert_int_equal(mmopt_btf_check(&btf, k->facts, nr, why, sizeof(why)), 0);
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 2);
}

#define TESTS(k) \
	{ "facts_hold " k, test_facts_hold, NULL, NULL, NULL }, \
	{ "wrong_facts_are_noticed " k, test_wrong_facts_are_noticed, NULL, NULL, NULL }, \
	{ "absent_functions " k, test_absent_functions, NULL, NULL, NULL }, \
	{ "anonymous_members " k, test_anonymous_members, NULL, NULL, NULL }, \
	{ "damaged_btf " k, test_damaged_btf, NULL, NULL, NULL }, \
	{ "time " k, test_time, NULL, NULL, NULL }

int main(void)
{
	struct CMUnitTest tests[] = {
		TESTS("debian12"), TESTS("debian13"), TESTS("debian13-backports"),
	};
	size_t nr = sizeof(tests) / sizeof(tests[0]), i;

	if (!image_directory()) {
		puts("1..0 # SKIP btf_kernels: MMOPT_KERNELS=none");
		return 0;
	}
	for (i = 0; i < nr; i++)
		tests[i].initial_state = &kernels[i / (nr / 3)];
	return cmocka_run_group_tests_name("btf_kernels", tests, NULL, NULL);
}
