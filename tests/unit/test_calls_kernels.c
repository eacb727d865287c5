// SPDX-License-Identifier: GPL-2.0
/* The search for calls over the functions of each kernel image of the matrix. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "decode.h"
#include "image.h"

#define MAX_CALLS 16
#define MAX_CALLEES 7

/*
 * An image that was not booted has jumps to code for the boot alone, outside
 * of .text. So the core text is taken to be all that the kernel maps there.
 */
#define CORE_TEXT 0x8000000ul

struct site {
	const char *in;
	struct {
		const char *name;
		unsigned int min, max;
	} callee[MAX_CALLEES];
};

#define KSM_SITES \
	{ "ksm_scan_thread", { { "down_read", 3, 3 }, { "up_read", 5, 5 }, \
			       { "mtree_load", 2, 2 }, { "mas_find", 1, 1 }, \
			       { "mutex_unlock", 1, 1 }, \
			       { "folio_walk_start", 1, 1 }, \
			       { "walk_page_range_vma", 1, 1 } } }, \
	{ "try_to_merge_with_ksm_page", { { "down_read", 1, 1 }, { "up_read", 1, 1 }, \
					  { "mtree_load", 1, 1 } } }, \
	{ "try_to_merge_one_page", { { "ptep_clear_flush", 1, 1 } } }, \
	{ "write_protect_page", { { "ptep_clear_flush", 1, 1 } } }, \
	{ "break_cow", { { "down_read", 1, 1 } } }

#define PAGEMAP_SITES(clear) \
	{ "do_pagemap_scan", { { "down_read_killable", 1, 1 }, { "up_read", 1, 1 }, \
			       { "walk_page_range", 1, 1 }, \
			       { "__mmu_notifier_invalidate_range_start", 1, 1 }, \
			       { "__mmu_notifier_invalidate_range_end", 1, 1 } } }, \
	{ "pagemap_scan_pmd_entry", { { "flush_tlb_mm_range", 2, 2 } } }, \
	{ "userfaultfd_clear_vma", { { clear, 1, 1 } } }

static const struct site sites13[] = {
	{ "__x64_sys_madvise", { { "do_madvise", 1, 1 } } },
	{ "__ia32_sys_madvise", { { "do_madvise", 1, 1 } } },
	{ "io_madvise", { { "do_madvise", 1, 1 } } },
	{ "__do_sys_process_madvise", { { "do_madvise", 1, 1 } } },
	{ "copy_process", { { "copy_page_range", 1, 1 } } },
	KSM_SITES,
	PAGEMAP_SITES("uffd_wp_range"),
	{ 0 },
};

static const struct site sites13_backports[] = {
	{ "do_madvise", { { "madvise_lock", 1, 2 }, { "madvise_do_behavior", 1, 1 },
			  { "madvise_unlock", 1, 2 } } },
	{ "vector_madvise", { { "madvise_lock", 1, 2 }, { "madvise_do_behavior", 1, 1 },
			      { "madvise_unlock", 1, 2 } } },
	{ "dup_mmap", { { "copy_page_range", 1, 1 } } },
	KSM_SITES,
	PAGEMAP_SITES("change_protection"),
	{ 0 },
};

static const struct site sites12[] = {
	{ "__x64_sys_madvise", { { "do_madvise", 1, 1 } } },
	{ "dup_mmap", { { "copy_page_range", 1, 1 } } },
	{ 0 },
};

struct kernel {
	const char *name;
	const struct site *sites;
};

static struct kernel kernels[] = {
	{ "debian12", sites12 },
	{ "debian13", sites13 },
	{ "debian13-backports", sites13_backports },
};

static char why[300];

static struct mmopt_text text_of(const struct image *image, const char *name,
				 unsigned long addr)
{
	return (struct mmopt_text){
		.name = name,
		.bytes = image_bytes(image, addr),
		.len = image_function_len(image, addr),
		.addr = addr,
		.text_lo = image->text_addr,
		.text_hi = image->text_addr + CORE_TEXT,
		.insn_len = decode_len,
	};
}

static size_t callees_of(const struct image *image, const struct site *site,
			 struct mmopt_callee *callee)
{
	size_t n;

	for (n = 0; n < MAX_CALLEES && site->callee[n].name; n++) {
		callee[n].name = site->callee[n].name;
		callee[n].addr = image_symbol(image, callee[n].name);
		callee[n].min = site->callee[n].min;
		callee[n].max = site->callee[n].max;
		if (!callee[n].addr)
			fail_msg("%s: no symbol %s", image->kernel, callee[n].name);
	}
	return n;
}

static struct mmopt_text site_text(const struct image *image, const struct site *site)
{
	unsigned long addr = image_symbol(image, site->in);

	if (!addr)
		fail_msg("%s: no symbol %s", image->kernel, site->in);
	return text_of(image, site->in, addr);
}

static void test_sites_are_found(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	const struct site *site;

	for (site = k->sites; site->in; site++) {
		struct mmopt_text text = site_text(image, site);
		struct mmopt_call call[MAX_CALLS];
		struct mmopt_callee callee[MAX_CALLEES];
		size_t nr = callees_of(image, site, callee);
		int i, found;

		found = mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why, sizeof(why));
		if (found < 0)
			fail_msg("%s: %s", k->name, why);
		for (i = 0; i < found; i++) {
			const uint8_t *p = text.bytes + call[i].offset;
			int32_t rel;

			assert_true(call[i].callee < nr);
			assert_int_equal(p[0], 0xe8);
			memcpy(&rel, p + 1, 4);
			assert_int_equal(text.addr + call[i].offset + 5 + rel,
					 callee[call[i].callee].addr);
			assert_true(!i || call[i - 1].offset < call[i].offset);
		}
	}
}

/* Any change of a call that was found is noticed. */
static void test_changed_calls_are_noticed(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	const struct site *site;

	for (site = k->sites; site->in; site++) {
		struct mmopt_text text = site_text(image, site);
		struct mmopt_call call[MAX_CALLS], again[MAX_CALLS];
		uint8_t *copy = malloc(text.len);
		struct mmopt_callee callee[MAX_CALLEES];
		size_t nr = callees_of(image, site, callee);
		int i, bit, found, ret;

		assert_non_null(copy);
		memcpy(copy, text.bytes, text.len);
		text.bytes = copy;
		found = mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why, sizeof(why));
		assert_true(found > 0);
		for (i = 0; i < found; i++) {
			for (bit = 0; bit < 40; bit++) {
				copy[call[i].offset + bit / 8] ^= 1 << bit % 8;
				ret = mmopt_calls_find(&text, callee, nr, again, MAX_CALLS,
						       why, sizeof(why));
				if (ret == found && !memcmp(call, again, found * sizeof(*call)))
					fail_msg("%s+0x%x: bit %d flipped", site->in,
						 call[i].offset, bit);
				copy[call[i].offset + bit / 8] ^= 1 << bit % 8;
			}
		}
		free(copy);
	}
}

static unsigned long alien_addr;

static const char *alien(unsigned long target)
{
	return target == alien_addr ? "someone" : NULL;
}

/* A call that a path does not turn is none of its business, or is unexpected. */
static void test_aliens_are_refused(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	const struct site *site;

	for (site = k->sites; site->in; site++) {
		struct mmopt_text text = site_text(image, site);
		struct mmopt_call call[MAX_CALLS];
		struct mmopt_callee callee[MAX_CALLEES];
		size_t nr = callees_of(image, site, callee) - 1;
		int found = mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why,
					     sizeof(why));

		assert_true(found >= 0);
		text.alien = alien;
		alien_addr = callee[nr].addr;
		assert_int_equal(mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why,
						  sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, "unexpected call of someone"));
		alien_addr = text.addr + 1;
		assert_int_equal(mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why,
						  sizeof(why)), found);
	}
}

/* A breakpoint on any instruction, padding excepted, is noticed. */
static void test_breakpoints_are_noticed(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	const struct site *site;

	for (site = k->sites; site->in; site++) {
		struct mmopt_text text = site_text(image, site);
		const uint8_t *bytes = text.bytes;
		struct mmopt_call call[MAX_CALLS];
		uint8_t *copy = malloc(text.len);
		struct mmopt_callee callee[MAX_CALLEES];
		size_t nr = callees_of(image, site, callee), off;
		uint8_t before = 0;
		int len;

		assert_non_null(copy);
		memcpy(copy, bytes, text.len);
		text.bytes = copy;
		for (off = 0; off < text.len; before = bytes[off], off += len) {
			len = decode_len(bytes + off, text.len - off);
			assert_true(len > 0);
			/* In KSM: what only a static branch reaches, a nop now. */
			if (!strstr(site->in, "madvise") && (before == 0xe9 || before == 0xeb))
				continue;
			/* Padding: int3, or a nop that nothing leads to. */
			if (bytes[off] == 0xcc || bytes[off] == 0x90 || bytes[off] == 0x66 ||
			    (bytes[off] == 0x0f && bytes[off + 1] == 0x1f))
				continue;
			copy[off] = 0xcc;
			if (mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why,
					     sizeof(why)) >= 0)
				fail_msg("%s+0x%zx: breakpoint not noticed", site->in, off);
			copy[off] = bytes[off];
		}
		free(copy);
	}
}

/* One byte less and less: never a read past the end. */
static void test_cut_functions(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	const struct site *site;

	for (site = k->sites; site->in; site++) {
		struct mmopt_text text = site_text(image, site);
		const uint8_t *bytes = text.bytes;
		struct mmopt_call call[MAX_CALLS];
		struct mmopt_callee callee[MAX_CALLEES];
		size_t nr = callees_of(image, site, callee);

		while (text.len--) {
			uint8_t *copy = malloc(text.len ? text.len : 1);

			assert_non_null(copy);
			memcpy(copy, bytes, text.len);
			text.bytes = copy;
			mmopt_calls_find(&text, callee, nr, call, MAX_CALLS, why, sizeof(why));
			free(copy);
			if (!text.len)
				break;
		}
	}
}

/*
 * Every function: what is refused is assembler (thunks, entry code), markers
 * of sections, or one of the few instructions that the decoder of the tests
 * does not know. At most one in a thousand.
 */
static void test_all_functions(void **state)
{
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	size_t i, nr = 0, refused = 0;

	for (i = 0; i < image->nr_symbols; i++) {
		const struct symbol *s = &image->symbols[i];
		struct mmopt_text text;

		if (i && s->addr == s[-1].addr)
			continue;
		nr++;
		text = text_of(image, s->name, s->addr);
		if (mmopt_calls_find(&text, NULL, 0, NULL, 0, why, sizeof(why)) < 0)
			refused++;
	}
	print_message("%s: %zu of %zu functions refused\n", k->name, refused, nr);
	assert_true(nr > 40000);
	assert_true(refused * 1000 < nr);
}

/* None of those that mm code is made of. */
static void test_mm_functions(void **state)
{
	static const char *const parts[] = {
		"madvise", "ksm_", "vma_", "mremap", "move_page_tables", "copy_page_range",
		"copy_process", "dup_mm", "pagemap", "walk_page", "mmap_", "tlb_", "unmap_",
		"shmem_", "do_swap", "lru_", "folio_",
	};
	const struct kernel *k = *state;
	const struct image *image = image_open(k->name);
	size_t i, j, nr = 0;

	for (i = 0; i < image->nr_symbols; i++) {
		const struct symbol *s = &image->symbols[i];
		struct mmopt_text text;

		for (j = 0; j < sizeof(parts) / sizeof(parts[0]); j++)
			if (strstr(s->name, parts[j]))
				break;
		if (j == sizeof(parts) / sizeof(parts[0]))
			continue;
		nr++;
		text = text_of(image, s->name, s->addr);
		if (mmopt_calls_find(&text, NULL, 0, NULL, 0, why, sizeof(why)) < 0)
			fail_msg("%s: %s", k->name, why);
	}
	assert_true(nr > 500);
}

#define TEST(f, k) { #f " " k, test_##f, NULL, NULL, NULL }
#define TESTS(k) \
	TEST(sites_are_found, k), TEST(changed_calls_are_noticed, k), \
	TEST(aliens_are_refused, k), TEST(breakpoints_are_noticed, k), \
	TEST(cut_functions, k), TEST(all_functions, k), TEST(mm_functions, k)

int main(void)
{
	struct CMUnitTest tests[] = {
		TESTS("debian12"), TESTS("debian13"), TESTS("debian13-backports"),
	};
	size_t nr = sizeof(tests) / sizeof(tests[0]), i;

	if (!image_directory()) {
		puts("1..0 # SKIP calls_kernels: MMOPT_KERNELS=none");
		return 0;
	}
	for (i = 0; i < nr; i++)
		tests[i].initial_state = &kernels[i / (nr / 3)];
	return cmocka_run_group_tests_name("calls_kernels", tests, NULL, NULL);
}
