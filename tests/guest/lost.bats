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
	load helpers
	mmopt_load
}

# Symbols that the path madvise cannot do without.
needed()
{
	echo do_madvise lru_add_drain tlb_gather_mmu tlb_finish_mmu lock_vma_under_rcu
	echo madvise_cold_or_pageout_pte_range __x64_sys_madvise __do_sys_process_madvise
	if kernel_is 7; then
		echo vector_madvise walk_page_range_vma
	fi
}

@test "without a symbol that it needs, the path is unavailable and names it" {
	local symbol

	require_path madvise
	mmopt_unload
	for symbol in $(needed); do
		modprobe mmopt hide="$symbol"
		run path_state madvise
		assert_output --regexp "^unavailable: .*\b$symbol\b"
		run poke "$ADVICE/enabled" 1
		assert_output EOPNOTSUPP
		mmopt_unload
	done
}

@test "without a symbol that some kernels lack, the path is available" {
	local symbol

	require_path madvise
	mmopt_unload
	for symbol in io_madvise __ia32_sys_madvise; do
		modprobe mmopt hide=$symbol
		path_enable madvise
		run "$PROG/advise" <<<"run 3"
		assert_line "calls 3"
		assert_equal "$(stat_of madvise taken)" 3
		mmopt_unload
	done
}

@test "without BTF, decoder, text patching or symbol table every path is unavailable" {
	local symbol path

	for symbol in __start_BTF insn_decode text_mutex kallsyms_lookup_size_offset; do
		modprobe mmopt hide=$symbol
		for path in $(mmopt_paths); do
			run path_state "$path"
			assert_output --regexp '^unavailable: .+'
			run poke "$MMOPT/$path/enabled" 1
			assert_output EOPNOTSUPP
		done
		mmopt_unload
	done
}

@test "what one path needs is not missed by the others" {
	modprobe mmopt
	path_is_available mremap || skip "mremap: $(path_state mremap)"
	mmopt_unload
	modprobe mmopt hide=do_madvise
	assert_equal "$(path_state_word madvise)" unavailable
	assert_equal "$(path_state mremap)" off
	mmopt_unload
	modprobe mmopt hide=move_page_tables
	assert_equal "$(path_state_word mremap)" unavailable
	mmopt_unload
}

@test "a hidden symbol that nobody needs changes nothing" {
	local before

	modprobe mmopt
	before=$(<"$MMOPT/status")
	mmopt_unload
	modprobe mmopt hide=no_such_symbol
	assert_equal "$(<"$MMOPT/status")" "$before"
}
