#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# A kernel that lacks a symbol, which the parameter "hide" makes believe: what
# needs it is unavailable and names it, and nothing else changes.

load helpers

setup()
{
	klog_mark
	mmopt_unload
}

teardown()
{
	mmopt_unload
	klog_assert_clean
}

teardown_file()
{
	mmopt_load
}

# without PATH SYMBOL...: each of them is one that the path cannot do without.
without()
{
	local path=$1 symbol

	rmmod mmopt
	for symbol in "${@:2}"; do
		modprobe mmopt hide="$symbol"
		assert_regex "$(<"$MMOPT/$path/state")" "^unavailable: .*\b$symbol\b"
		run poke "$MMOPT/$path/enabled" 1
		assert_output EOPNOTSUPP
		rmmod mmopt
	done
}

@test "without a symbol that it needs, the path madvise is unavailable and names it" {
	local here=()

	require_path madvise
	! kernel_is 7 || here=(vector_madvise walk_page_range_vma)
	without madvise do_madvise lru_add_drain flush_tlb_mm_range lock_vma_under_rcu \
		madvise_cold_or_pageout_pte_range __x64_sys_madvise __do_sys_process_madvise \
		insn_decode text_mutex _stext "${here[@]}"
}

@test "without a symbol that it needs, the path mremap is unavailable and names it" {
	require_path mremap
	without mremap move_page_tables flush_tlb_mm_range pgtable_trans_huge_withdraw \
		pgtable_trans_huge_deposit __pte_alloc __pmd_alloc __pud_alloc
}

@test "without a symbol that it needs, the path copy is unavailable and names it" {
	local limit=cfs_task_bw_constrained

	require_path copy
	! kernel_is 6.1 || limit=__cfs_bandwidth_used
	without copy copy_page_range highest_memmap_pfn __pte_alloc __pmd_alloc __pud_alloc \
		insn_decode text_mutex $limit
}

@test "without a symbol that some kernels lack, the path is available" {
	require_path madvise
	rmmod mmopt
	modprobe mmopt hide=io_madvise
	path_enable madvise
	run "$PROG/advise" <<<"run 3"
	assert_line "calls 3"
	assert_equal "$(stat_of madvise taken)" 3
	mmopt_unload
	modprobe mmopt hide=__ia32_sys_madvise
	assert_equal "$(<"$ADVICE/state")" off
}

@test "without what all paths need, every path is unavailable" {
	local symbol path

	for symbol in __start_BTF kallsyms_lookup_size_offset; do
		modprobe mmopt hide=$symbol
		for path in $(mmopt_paths); do
			assert_regex "$(<"$MMOPT/$path/state")" '^unavailable: .+'
			run poke "$MMOPT/$path/enabled" 1
			assert_output EOPNOTSUPP
		done
		rmmod mmopt
	done
}

@test "what one path needs is not missed by the others, and a name that nobody needs by none" {
	local before

	modprobe mmopt
	before=$(<"$MMOPT/status")
	rmmod mmopt
	modprobe mmopt hide=no_such_symbol
	assert_equal "$(<"$MMOPT/status")" "$before"
	rmmod mmopt
	modprobe mmopt hide=do_madvise
	assert_equal "$(path_state_word madvise)" unavailable
	assert_equal "$(grep -v '^madvise ' "$MMOPT/status")" "$(grep -v '^madvise ' <<<"$before")"
	rmmod mmopt
	modprobe mmopt hide=move_page_tables
	assert_equal "$(path_state_word mremap)" unavailable
	assert_equal "$(grep -v '^mremap ' "$MMOPT/status")" "$(grep -v '^mremap ' <<<"$before")"
}
