// SPDX-License-Identifier: GPL-2.0
/* Which functions must not be called in a region, by their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "calls.h"

static const char *const in[] = { "scan", "merge_page", NULL };
static const char *const alien[] = { "mmap_", "mas_", NULL };
static const char *const harmless[] = { "mas_quiet", NULL };

static bool refused(const char *name)
{
	return mmopt_calls_alien(name, in, alien, harmless);
}

static void test_alien(void **state)
{
	static const char *const yes[] = {
		"scan.cold", "scan.part.0", "merge_page.isra.0.cold", "mmap_lock", "mas_quiet2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_true(refused(yes[i]));
}

static void test_others(void **state)
{
	static const char *const no[] = {
		"scanner", "scan_page.cold", "merge.cold", "mas_quiet", "xmas_", "mas", "",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_false(refused(no[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alien),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests_name("alien", tests, NULL, NULL);
}
