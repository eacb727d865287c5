#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

STATS=sys/kernel/debug/mmopt/madvise/stats

# stats LINE...: of the path madvise, at once, as who reads them anew expects.
stats() {
	put "$STATS.new" 'v: 1' "$@"
	mv "$MMOPT_ROOT/$STATS.new" "$MMOPT_ROOT/$STATS"
}

host() {
	tree_loaded
	tree_path madvise on
	tree_path mremap off
	stats 'calls 100' 'taken 90' 'stock 10' 'fallback_vma_lock 10' 'taken_ns_1024 90'
}

teardown() {
	[ ! "${watched:-}" ] || kill -KILL "$watched" 2>/dev/null || :
}

# watch ARGUMENT...: goes on in the background, and writes to out and err.
watch() {
	: >"$BATS_TEST_TMPDIR/out"
	ASAN_OPTIONS=exitcode=99 LD_PRELOAD=$FAKE_KERNEL_LIB "$MMOPT" "$@" \
		>"${out:-$BATS_TEST_TMPDIR/out}" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	watched=$!
}

# ended STATUS: it ends by itself, so.
ended() {
	local rc=0

	wait "$watched" || rc=$?
	assert_equal "$rc" "$1"
	run cat "$BATS_TEST_TMPDIR/err"
}

# until_seen COMMAND...: asks what has been written until the command finds it.
until_seen() {
	local end=$((SECONDS + 60))

	until "$@" <"$BATS_TEST_TMPDIR/out" >/dev/null 2>&1; do
		((SECONDS < end)) || fail "not seen: $*, in $(cat "$BATS_TEST_TMPDIR/out")"
		kill -0 $watched
		read -rt 0.05 <> <(:) || :
	done
}

# totals FILTER VALUE: a sum over all intervals.
totals() {
	run jq -s "map(.paths[]? | select(.path == \"madvise\") | $1) | add" \
		"$BATS_TEST_TMPDIR/out"
	assert_output "$2"
}

@test "as many intervals as were asked for" {
	host
	run_mmopt -j watch 0.1 3
	assert_success
	refute_stderr
	assert_equal "${#lines[@]}" 3
	run jq -s 'map([.paths[].path] == ["madvise", "mremap"] and .interval_ms >= 50 and
		(.time | fromdate > 0) and .paths[0].state == "on" and
		.paths[0].counters.calls == 0 and (has("errors") | not)) | all' <<<"$output"
	assert_output true
	run_mmopt watch 0.1 2
	assert_success
	assert_equal "$(grep -c '^path ' <<<"$output")" 2
	refute_output --partial $'\033'
}

@test "what is counted meanwhile, and its latencies, and nothing else" {
	host
	watch -j watch 0.1
	until_seen grep -q .
	stats 'calls 1300' 'taken 1090' 'stock 210' 'fallback_vma_lock 205' \
		'fallback_userfaultfd 5' 'taken_ns_1024 1070' 'taken_ns_65536 20' 'stock_ns_4096 200'
	until_seen jq -se 'map(.paths[0].counters.calls) | add == 1200'
	kill -INT $watched
	ended 0
	assert_output ''
	totals .counters.taken 1000
	totals .counters.fallback_vma_lock 195
	totals .counters.fallback_userfaultfd 5
	totals .latency.taken.count 1000
	run jq -sc '[.[].paths[0] | select(.latency.taken.count > 0) |
		.latency.taken.p50_below_ns, .latency.taken.p99_below_ns,
		.latency.stock.p99_below_ns]' "$BATS_TEST_TMPDIR/out"
	assert_output '[2048,131072,8192]'
	# the rate is that of this very interval
	run jq -s '[.[] | .interval_ms as $ms | .paths[0] | select(.counters.calls > 0) |
		(.per_second.calls * $ms / 1000 - .counters.calls | fabs) < 0.01] | length > 0 and all' \
		"$BATS_TEST_TMPDIR/out"
	assert_output true
}

@test "the table: rates, fallbacks by reason, other counters, in 80 columns" {
	local i many=()

	host
	for i in {10..40}; do
		many+=("fallback_reason_$i 1000000")
	done
	watch watch 0.1
	until_seen grep -q .
	stats 'calls 18446744073709551615' 'taken 5000000000' 'stock 210' 'pages 640' \
		'fallback_vma_lock 11' "${many[@]}" 'taken_ns_1024 5000000' \
		'stock_ns_2199023255552 7'
	until_seen grep -q 'vma_lock'
	kill -TERM $watched
	ended 0
	assert_output ''
	run cat "$BATS_TEST_TMPDIR/out"
	assert_equal "$(awk 'length > 80' <<<"$output")" ''
	assert_line --regexp '^  fallback/s  vma_lock [0-9.]+  reason_10 '
	assert_line --regexp '^  fallback/s  .*reason_40 [0-9]+k?$'
	assert_line --regexp '^  other/s     pages [0-9]+$'
	assert_line --regexp '^madvise  on +[0-9]+P +[0-9]+M    2.05 us   2.05 us  '
	assert_line --regexp '^mremap   off  +0 +0  +- +-  +- +-$'
}

@test "a path that is off but observed is shown as such" {
	host
	put sys/kernel/debug/mmopt/mremap/observe 1
	run_mmopt watch 0.1 1
	assert_line --regexp '^mremap   observed +0'
	run_mmopt -j watch 0.1 1
	assert_json '.paths[1] | .state == "off" and .observed'
}

@test "a reset is counted from zero, and never below" {
	host
	watch -j watch 0.1
	until_seen grep -q .
	stats 'calls 7' 'taken 7' 'stock 0' 'fallback_vma_lock 0' 'taken_ns_1024 7'
	until_seen jq -se 'map(.paths[0].counters.calls) | add == 7'
	kill -INT $watched
	ended 0
	totals .latency.taken.count 7
	totals .counters.fallback_vma_lock 0
}

@test "on a terminal it is drawn in place" {
	host
	run env TERM=xterm script -qec "LD_PRELOAD=$FAKE_KERNEL_LIB $MMOPT watch 0.1 3" /dev/null </dev/null
	assert_success
	assert_equal "$(grep -c $'^\033\\[H\033\\[J[0-9]' <<<"$output")" 3
	run env TERM=dumb script -qec "LD_PRELOAD=$FAKE_KERNEL_LIB $MMOPT watch 0.1 1" /dev/null </dev/null
	assert_success
	refute_output --partial $'\033'
}

@test "the module is unloaded meanwhile: says so, exit 3" {
	host
	for form in '' -j; do
		host
		watch $form watch 0.1
		until_seen grep -q madvise
		rm -r "$MMOPT_ROOT/sys/kernel/debug/mmopt" "$MMOPT_ROOT/sys/module/mmopt"
		ended 3
		[ $form ] || assert_output "mmopt: mmopt: the module was unloaded meanwhile; run 'mmopt load' as root, and start again"
	done
	run jq -s '.[-1].errors[0].rc' "$BATS_TEST_TMPDIR/out"
	assert_output 3
}

@test "statistics that cannot be read any more, the module being there: exit 1" {
	host
	watch watch 0.1
	until_seen grep -q madvise
	echo garbage >"$MMOPT_ROOT/$STATS"
	ended 1
	assert_output --partial 'stats line 1 is not a key and a number'
}

@test "a warning is given once" {
	host
	stats 'calls 100'
	sed -i 's/v: 1/v: 2/' "$MMOPT_ROOT/$STATS"
	run_mmopt watch 0.1 3
	assert_success
	# shellcheck disable=SC2154
	assert_equal "$(wc -l <<<"$stderr")" 1
	assert_stderr 'stats has format 2'
}

@test "nobody reads any more: ends, with exit 1" {
	local fifo=$BATS_TEST_TMPDIR/fifo

	host
	mkfifo "$fifo"
	out=$fifo watch watch 86400
	: <"$fifo"
	ended 1
	assert_output --partial 'stdout: cannot write: Broken pipe'
	out=$fifo watch watch 0.1
	head -n 1 <"$fifo" >/dev/null
	ended 1
	assert_output --partial 'stdout: cannot write: Broken pipe'
	full() { mmopt watch 0.1 >/dev/full; }
	run --separate-stderr full
	assert_failure 1
	assert_stderr 'No space left on device'
}

@test "watch without the module, and as a user" {
	run_mmopt watch
	assert_failure 3
	assert_message_form
	host
	chmod 0700 "$MMOPT_ROOT/sys/kernel/debug"
	run_mmopt_as_user watch
	assert_failure 4
}
