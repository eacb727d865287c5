// SPDX-License-Identifier: GPL-2.0
/*
 * Only one user at a time may redirect a function. Others that are there
 * already are found before they make a path fail.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

#define LIVEPATCH	"/sys/kernel/livepatch"
#define KPROBES		"/sys/kernel/debug/kprobes/list"

static const struct {
	const char *path; /* or paths */
	const char *function;
} used[] = {
	{ "copy", "copy_page_range" },
	{ "copy", "copy_p4d_range" },
	{ "copy", "copy_pud_range" },
	{ "copy", "copy_pmd_range" },
	{ "copy", "copy_pte_range" },
	{ "copy", "copy_present_ptes" },
	{ "copy", "copy_present_pte" },
	{ "copy", "dup_mmap" },
	{ "copy", "dup_mm" },
	{ "copy", "copy_process" },
	{ "mremap", "move_page_tables" },
	{ "mremap", "get_old_pud" },
	{ "mremap", "get_old_pmd" },
	{ "mremap", "alloc_new_pud" },
	{ "mremap", "alloc_new_pmd" },
	{ "mremap", "move_pgt_entry" },
	{ "mremap", "move_normal_pmd" },
	{ "mremap", "move_huge_pmd" },
	{ "mremap", "move_ptes" },
	{ "madvise", "do_madvise" },
	{ "madvise", "vector_madvise" },
	{ "madvise", "madvise_do_behavior" },
	{ "madvise", "madvise_lock" },
	{ "madvise", "madvise_unlock" },
	{ "madvise", "madvise_vma_behavior" },
	{ "madvise", "madvise_cold" },
	{ "madvise", "madvise_pageout" },
	{ "madvise", "__x64_sys_madvise" },
	{ "madvise", "__ia32_sys_madvise" },
	{ "madvise", "__do_sys_process_madvise" },
	{ "madvise", "io_madvise" },
	{ "madvise and pagemap", "walk_page_range" },
	{ "madvise and ksm", "__walk_page_range" },
	{ "madvise and ksm", "walk_pgd_range" },
	{ "madvise and ksm", "walk_p4d_range" },
	{ "madvise and ksm", "walk_pud_range" },
	{ "madvise and ksm", "walk_pmd_range" },
	{ "ksm", "ksm_scan_thread" },
	{ "ksm", "try_to_merge_with_ksm_page" },
	{ "ksm", "break_cow" },
	{ "ksm", "folio_walk_start" },
	{ "ksm", "walk_page_range_vma" },
	{ "ksm", "ptep_clear_flush" },
	{ "pagemap", "do_pagemap_scan" },
	{ "pagemap", "walk_page_test" },
	{ "pagemap", "walk_page_range_mm_unsafe" },
	{ "pagemap", "pagemap_scan_pmd_entry" },
	{ "pagemap", "userfaultfd_clear_vma" },
};

/* The path that uses @function, of which only @len bytes are the name. */
static const char *path_of(const char *function, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		if (strlen(used[i].function) == len && !strncmp(used[i].function, function, len))
			return used[i].path;
	return NULL;
}

/* Each function that a livepatch replaces is a folder "name,position". */
static void check_livepatch(const char *patch)
{
	struct dirent **list;
	int i, n = dir_list(&list, LIVEPATCH "/%s/vmlinux", patch);
	bool clash = false;
	char transition[8];

	for (i = 0; i < n; i++) {
		int len = (int)strcspn(list[i]->d_name, ",");
		const char *path = path_of(list[i]->d_name, (size_t)len);

		if (!path)
			continue;
		clash = true;
		check_item(CHECK_PROBLEM, "livepatches", "%s owns %.*s, used by %s",
			   patch, len, list[i]->d_name, path);
		check_info("leave %s off, or disable that livepatch first", path);
	}
	if (!clash)
		check_item(CHECK_OK, "livepatches", "%s, of other functions", patch);
	if (!file_line(transition, sizeof(transition), LIVEPATCH "/%s/transition", patch) &&
	    transition[0] == '1') {
		check_item(CHECK_NOTE, "livepatches", "%s is in transition", patch);
		check_info("what it will own is not settled: wait until that has ended");
	}
	dir_free(list, n);
}

static void check_livepatches(void)
{
	struct dirent **list;
	int i, n = dir_list(&list, LIVEPATCH);
	bool others = false;

	for (i = 0; i < n; i++) {
		others = true;
		check_livepatch(list[i]->d_name);
	}
	if (!others)
		check_item(CHECK_OK, "livepatches", "none");
	dir_free(list, n);
}

/*
 * "address kind function+offset [module] [flags]"; the kind k is an entry or a
 * body, r a return. The module holds the calls that it turns by disabled probes.
 */
static bool check_probe(const char *line)
{
	char function[128], kind[8];
	const char *path;

	if (sscanf(line, "%*s %7s %127s", kind, function) != 2)
		return false;
	path = path_of(function, strcspn(function, "+"));
	if (!path || (module_loaded(MODULE) && strstr(line, "[DISABLED]")))
		return false;
	check_item(CHECK_NOTE, "probes", "%s on %s, used by %s",
		   kind[0] == 'r' ? "a return probe" : "a probe", function, path);
	check_info("tracing may stay; a probe that redirects the function, or sits on a call in it, makes the path unavailable");
	return true;
}

static void check_probes(void)
{
	char *text = file_slurp(KPROBES), *save, *line;
	bool any = false;

	if (!text) {
		check_item(CHECK_NOTE, "probes", "kprobes/list in debugfs: %s", strerror(errno));
		if (errno == EACCES)
			check_info("run mmopt as root");
		return;
	}
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		any |= check_probe(line);
	if (!any)
		check_item(CHECK_OK, "probes", "none on the functions of the paths");
	free(text);
}

void check_rivals(void)
{
	check_livepatches();
	check_probes();
}
