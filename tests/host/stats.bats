#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

# stats LINE...: the stats file of the path madvise.
stats() {
	tree_loaded
	tree_path madvise on
	put sys/kernel/debug/mmopt/madvise/stats "$@"
}

@test "stats shows counters with their meaning" {
	stats 'v: 1' 'calls 12' 'taken 10' 'stock 2' 'pages 640' 'nmissed 0' 'fallback_vma_lock 2'
	run_mmopt stats
	assert_success
	refute_stderr
	assert_line --regexp '^madvise: MADV_COLD'
	assert_line --regexp '^  calls +12  calls that reached mmopt$'
	assert_line --regexp '^  fallback_vma_lock +2  a gap'
	run_mmopt -j stats madvise
	assert_success
	assert_json '.paths[0].counters | .calls == 12 and .taken == 10 and .fallback_vma_lock == 2'
	assert_json '.paths[0].v' 1
}

@test "every counter and fallback of the ABI has a meaning in the table" {
	local abi=$BATS_TEST_DIRNAME/../../include/mmopt/abi.h keys key list path paths=0

	# ids LIST: the identifiers of that X-macro.
	ids() {
		sed -n "/^#define MMOPT_$1(X)/,/^\$/s/^\tX(\([a-z_]*\),.*/\1/p" "$abi"
	}

	# shellcheck disable=SC2013
	for list in $(sed -n 's/^#define MMOPT_\([A-Z]*\)_FALLBACKS(X).*/\1/p' "$abi"); do
		path=${list,,}
		mapfile -t keys < <(ids COUNTERS; echo nmissed; ids "${list}_COUNTERS"
			ids "${list}_FALLBACKS" | sed s/^/fallback_/)
		[ "${#keys[@]}" -ge 7 ]
		tree_loaded
		tree_path "$path" on
		put "sys/kernel/debug/mmopt/$path/stats" 'v: 1' "${keys[@]/%/ 7}"
		run_mmopt stats "$path"
		assert_success
		assert_line --index 0 --regexp "^$path: [^ ]"
		for key in "${keys[@]}"; do
			assert_line --regexp "^  $key +7  [^ ]"
		done
		paths=$((paths + 1))
	done
	[ "$paths" -ge 1 ]
}

@test "percentiles are the upper bounds of their buckets" {
	# 100 calls: the 50th is in 1024..2047, the 99th in 8192..16383.
	stats 'v: 1' 'calls 100' 'taken_ns_512 49' 'taken_ns_1024 49' 'taken_ns_8192 1' \
		'taken_ns_1048576 1' 'stock_ns_1 1'
	run_mmopt -j stats
	assert_success
	assert_json '.paths[0].latency.taken | .count == 100 and .p50_below_ns == 2048 and .p99_below_ns == 16384'
	assert_json '.paths[0].latency.stock | .p50_below_ns == 2 and .p99_below_ns == 2'
	assert_json '.paths[0].latency.taken.buckets | map("\(.ns_min):\(.count)") | join(" ")' \
		'512:49 1024:49 8192:1 1048576:1'
	assert_json '.paths[0].counters | keys | join(" ")' calls
	run_mmopt stats
	assert_line --regexp '^  taken +100 +2.05 us +16.4 us$'
}

@test "the time of all calls" {
	stats 'v: 1' 'calls 3' 'taken_sum_ns 4096' 'stock_sum_ns 18446744073709551615'
	run_mmopt -j stats
	assert_success
	assert_json '.paths[0] | "\(.latency.taken.sum_ns) \(.counters | keys | join(" "))"' '4096 calls'
	case $output in
	*'"sum_ns":18446744073709551615'*) ;;
	*) fail "$output" ;;
	esac
}

@test "no calls, no percentiles" {
	stats 'v: 1' 'calls 0'
	run_mmopt stats
	assert_success
	assert_line --regexp '^  taken +0 +- +-$'
	run_mmopt -j stats
	assert_json '.paths[0].latency.taken | .count == 0 and .buckets == []'
}

@test "the largest numbers are shown, not wrapped" {
	stats 'v: 1' 'calls 18446744073709551615' 'taken_ns_9223372036854775808 18446744073709551615' \
		'taken_ns_1 18446744073709551615'
	run_mmopt stats
	assert_success
	assert_line --regexp '^  calls +18446744073709551615'
	run_mmopt -j stats
	assert_success
	case $output in
	*'"calls":18446744073709551615'*'"count":18446744073709551615'*) ;;
	*) fail "$output" ;;
	esac
}

@test "keys of a newer module are passed on, with a warning for a newer format" {
	stats 'v: 1' 'calls 3' 'teleported 9'
	run_mmopt -j stats
	assert_success
	assert_json '.paths[0].counters.teleported' 9
	assert_json 'has("warnings") | not'
	stats 'v: 2' 'calls 3'
	run_mmopt stats
	assert_success
	assert_line --regexp '^  calls +3'
	assert_stderr 'mmopt: warning: madvise: stats has format 2'
}

@test "garbage in stats is an error that names the line; the rest is shown" {
	local line

	for line in 'calls' 'calls ' 'calls x' 'calls -1' 'calls 1x' 'calls 0x10' 'calls  1' \
		'calls 18446744073709551616' ' 1' 'Calls 1' 'calls 1 2' 'taken_ns_ 1' \
		'taken_ns_3 1' 'taken_ns_0 1' 'stock_ns_18446744073709551616 1' 'stock_ns_x 1' \
		$'calls\t1' $'\xff\xfe 1' '%n 1' 'a"b 1'; do
		stats 'v: 1' "$line" 'pages 5'
		run_mmopt stats
		assert_failure 1
		assert_stderr 'mmopt: madvise: stats line 2 is not a key and a number; '
		assert_line --regexp '^  pages +5 '
		run_mmopt -j stats
		assert_failure 1
		assert_json '.paths[0].counters | keys | join(" ")' pages
		assert_json '.errors | length' 1
	done
}

@test "a NUL does not hide what follows it" {
	stats 'v: 1'
	printf 'calls 1\0 2\npages 5\n' >>"$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/stats"
	run_mmopt stats
	assert_failure 1
	assert_stderr 'stats line 2'
	assert_line --regexp '^  pages +5 '
}

@test "empty, truncated, random and endless stats" {
	local file=$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/stats

	stats
	: >"$file"
	run_mmopt stats
	assert_failure 1
	assert_stderr 'has no version line'
	assert_message_form
	printf 'v: 1\ncalls 12' >"$file"
	run_mmopt -j stats
	assert_success
	assert_json '.paths[0].counters.calls' 12
	head -c 300000 /dev/urandom >"$file"
	run_mmopt -j stats
	assert_failure 1
	assert_json '.errors | length' 1
	rm "$file"
	ln -s /dev/zero "$file"
	run_mmopt stats
	assert_failure 1
	assert_stderr 'cannot read stats: File too large'
}

@test "a path whose stats cannot be read does not hide the others" {
	stats 'v: 1' 'calls 4'
	tree_path zeta off
	rm "$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/stats"
	run_mmopt -j stats
	assert_failure 1
	assert_json '.errors[0].errno' ENOENT
	assert_json '[.paths[].path] | join(" ")' zeta
}

@test "stats of named paths only; an unknown one is exit 2" {
	stats 'v: 1' 'calls 4'
	tree_path zeta off
	run_mmopt -j stats zeta
	assert_success
	assert_json '[.paths[].path] | join(" ")' zeta
	run_mmopt stats nosuch
	assert_failure 2
	assert_output ''
	assert_stderr 'the paths are: madvise, zeta'
}

@test "stats without the module: exit 3" {
	run_mmopt stats
	assert_failure 3
	assert_message_form
}

@test "stats works under lockdown" {
	stats 'v: 1' 'calls 4'
	chmod 0444 "$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/stats"
	touch "$MMOPT_ROOT/.lockdown"
	run_mmopt stats
	assert_success
	assert_line --regexp '^  calls +4'
}
