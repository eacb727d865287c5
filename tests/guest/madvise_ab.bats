#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, the fast way takes every call; off, stock code has them all.

load helpers

setup()
{
	begin_test
	require_path madvise
}

teardown()
{
	end_test
}

teardown_file()
{
	swap_off
}

# counters TAKEN STOCK: exactly these, and no fallback
counters()
{
	assert_equal "$(stat_of madvise taken)" "$1"
	assert_equal "$(stat_of madvise stock)" "$2"
	assert_equal "$(stat_of madvise calls)" $(($1 + $2))
	run awk '/^fallback_/ && $2 != 0' "$ADVICE/stats"
	assert_output ""
}

# Sum of a histogram: all that was timed.
timed()
{
	awk -v prefix="$1_ns_" 'index($1, prefix) == 1 { n += $2 } END { print n + 0 }' \
		"$ADVICE/stats"
}

@test "on: every call is taken, and every page counted" {
	path_enable madvise
	run "$PROG/advise" -k 256 <<<"run 300"
	assert_line "calls 300"
	assert_line intact
	counters 300 0
	assert_equal "$(stat_of madvise pages)" $((300 * 64))
	assert_equal "$(timed taken)" 300
	assert_equal "$(timed stock)" 0

	# a range of many VMAs is one call
	path_reset madvise
	run "$PROG/advise" -k 256 -v 16 <<<"run 50"
	assert_line "calls 50"
	assert_line intact
	counters 50 0
	assert_equal "$(stat_of madvise pages)" $((50 * 64))

	# advice that is not ours is not counted
	path_reset madvise
	run "$PROG/advise" -a other <<<"run 100"
	assert_line "calls 100"
	counters 0 0
}

@test "off: every call is stock, and counted while observed" {
	run "$PROG/advise" <<<"run 50"
	assert_line "calls 50"
	counters 0 0

	echo 1 >"$ADVICE/observe"
	run "$PROG/advise" -k 256 -v 4 <<<"run 300"
	assert_line "calls 300"
	assert_line intact
	counters 0 300
	assert_equal "$(stat_of madvise pages)" 0
	assert_equal "$(timed stock)" 300
	assert_equal "$(timed taken)" 0
}

@test "observe survives on and off, and off survives observe" {
	echo 1 >"$ADVICE/observe"
	path_enable madvise
	"$PROG/advise" <<<"run 10" >/dev/null
	path_disable madvise
	assert_equal "$(<"$ADVICE/observe")" 1
	"$PROG/advise" <<<"run 20" >/dev/null
	counters 10 20
	echo 0 >"$ADVICE/observe"
	"$PROG/advise" <<<"run 40" >/dev/null
	counters 10 20
}

@test "each reason for a fallback, once provoked, is counted once and traced" {
	local reason expected

	path_enable madvise
	for reason in remote_mm vma_lock userfaultfd; do
		path_reset madvise
		trace_begin 'path == "madvise"' mmopt/mmopt_fallback
		run "$PROG/fallback" $reason
		assert_success
		expected=$output
		echo 0 >"$TRACING/tracing_on"
		assert_equal "$(traced mmopt_fallback)" "$expected"
		grep -q "mmopt_fallback: path=madvise $reason" "$TRACING/trace"
		assert_equal "$(stat_of madvise fallback_$reason)" "$expected"
		assert_equal "$(stat_of madvise stock)" "$expected"
		assert_equal "$(stat_of madvise taken)" 0
		assert_equal "$(awk '/^fallback_/ { n += $2 } END { print n }' "$ADVICE/stats")" \
			"$expected"
	done
}
