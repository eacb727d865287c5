#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

# explain LINE...: the file explain of the path madvise, which is on.
explain() {
	tree_loaded
	tree_path madvise on
	put sys/kernel/debug/mmopt/madvise/explain "$@"
}

SITES=('site __x64_sys_madvise+0x1e do_madvise -> mmopt_do_madvise [mmopt]'
	'site io_madvise+0x30 do_madvise -> mmopt_do_madvise [mmopt]'
	'site io_madvise+0x9a do_madvise -> mmopt_do_madvise [mmopt]')

@test "explain tells what the module says: calls, what does not run, tunables" {
	explain 'v: 1' 'mechanism callsite' "${SITES[@]}" 'bypasses do_madvise' \
		'bypasses madvise_lock' 'tunable batch_bytes 4096 1 8192'
	run_mmopt explain madvise
	assert_success
	refute_stderr
	assert_output - <<-'END'
		madvise: MADV_COLD and MADV_PAGEOUT under per-VMA locks
		  state       on
		  mechanism   callsite: calls inside kernel functions are led elsewhere
		  sites       3 calls in 2 functions
		              __x64_sys_madvise+0x1e: do_madvise -> mmopt_do_madvise [mmopt]
		              io_madvise+0x30: do_madvise -> mmopt_do_madvise [mmopt]
		              io_madvise+0x9a: do_madvise -> mmopt_do_madvise [mmopt]
		  goes around do_madvise, madvise_lock
		  tunables    batch_bytes 4096 (1 to 8192)
	END
	run_mmopt -j explain madvise
	assert_success
	assert_json ".release == \"$RELEASE\" and (.paths | length == 1)"
	assert_json '.paths[0] | .mechanism == "callsite" and .state == "on" and .bypasses == ["do_madvise", "madvise_lock"]'
	assert_json '.paths[0].sites[0] | "\(.in) \(.offset) \(.calls) \(.instead)"' \
		'__x64_sys_madvise 0x1e do_madvise mmopt_do_madvise [mmopt]'
	assert_json '.paths[0].tunables[0] | "\(.name) \(.value) \(.min) \(.max)"' 'batch_bytes 4096 1 8192'
}

@test "explain of an entry, and of a path that is unavailable" {
	explain 'v: 1' 'mechanism entry' \
		'site move_page_tables+0x4 move_page_tables -> mmopt_move_page_tables [mmopt]'
	tree_path zeta 'unavailable: no per-VMA lock'
	put sys/kernel/debug/mmopt/zeta/explain 'v: 1' 'mechanism none'
	run_mmopt explain
	assert_success
	assert_line --regexp '^  mechanism +entry: .* by ftrace$'
	assert_line --regexp '^ +move_page_tables\+0x4: move_page_tables -> '
	refute_line --partial 'calls in'
	assert_line --regexp '^  state +unavailable: no per-VMA lock$'
	assert_line --regexp '^  mechanism +none: nothing of the kernel is touched$'
}

@test "many functions that it goes around stay within 80 columns" {
	local i

	explain 'v: 1' 'mechanism callsite' "$(for i in {1..40}; do echo "bypasses some_function_$i"; done)"
	run_mmopt explain
	assert_success
	[ "$(awk 'length > 80' <<<"$output")" = '' ]
	for i in {1..40}; do
		assert_line --regexp " some_function_$i(,|\$)"
	done
}

@test "every mechanism of the ABI has a meaning" {
	local name found=

	# shellcheck disable=SC2013
	for name in $(sed -n '/^#define MMOPT_MECHANISMS(X)/,/^$/s/^\tX(\([a-z]*\),.*/\1/p' \
		"$BATS_TEST_DIRNAME/../../include/mmopt/abi.h"); do
		explain 'v: 1' "mechanism $name"
		run_mmopt explain
		assert_line --regexp "^  mechanism   $name: [a-z]"
		found=y
	done
	[ "$found" ]
}

@test "what is not understood is an error that names the line; the rest is shown" {
	local line

	for line in site 'site ' 'site x' 'site a+0x1' 'site a+0x1 b' 'site a+0x1 b c' \
		'site a b -> c' 'tunable' 'tunable a' 'tunable a 1 2' 'tunable a 1 2 x' \
		'tunable a -1 2 3' mechanism $'\xff'; do
		explain 'v: 1' "$line" 'mechanism callsite' 'newer thing'
		run_mmopt explain
		assert_failure 1
		assert_stderr 'mmopt: madvise: explain line 2 is not understood; '
		assert_line --regexp '^  mechanism +callsite'
		run_mmopt -j explain
		assert_failure 1
		assert_json '.errors | length' 1
	done
}

@test "explain without the module, of an older module, of an unknown path, as a user" {
	run_mmopt explain madvise
	assert_failure 3
	explain 'v: 1'
	run_mmopt explain nosuch
	assert_failure 2
	assert_stderr 'the paths are: madvise'
	rm "$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/explain"
	run_mmopt explain
	assert_failure 1
	assert_message_form
	assert_stderr 'cannot read explain: No such file'
	chmod 0700 "$MMOPT_ROOT/sys/kernel/debug"
	run_mmopt_as_user explain
	assert_failure 4
}

@test "explain works under lockdown" {
	explain 'v: 1' 'mechanism callsite'
	chmod 0444 "$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/explain"
	touch "$MMOPT_ROOT/.lockdown"
	run_mmopt explain
	assert_success
}
