#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debian13-backports
#
# mmopt ab on a real kernel: an adviser beside threads that map and unmap. That the
# path is faster there is beyond doubt; by how much is for the A/B measurement.

bats_require_minimum_version 1.5.0
load helpers

setup()
{
	begin_test
	require_path madvise
	thp never
	talk "$PROG/advise" -a cold -c 16
	tell go going
}

teardown()
{
	end_test
	thp always
}

ab()
{
	run --separate-stderr mmopt -j ab --window 0.5 "$@" madvise
	# shellcheck disable=SC2154 # of run
	remark "$(jq -r '.paths[0] | "\(.verdict), ratio \(.ratio) (\(.ratio_low) to \(.ratio_high)), " +
		"\(.pairs) pairs, p50 \(.off.p50_ns) and \(.on.p50_ns) ns"' <<<"$output")" "$stderr"
	assert_success
}

verdict_is()
{
	assert_equal "$(jq -r '.paths[0].verdict' <<<"$output")" "$1"
}

@test "a churning load: the path is faster, and is left as it was" {
	local before

	ab --seconds 30
	verdict_is faster
	assert_equal "$(path_state madvise)" off
	assert_equal "$(<"$ADVICE/observe")" 0
	before=$(stat_of madvise calls)
	tell churned "churned *"
	assert_equal "$(stat_of madvise calls)" "$before"
	talk_close
	grep -x intact <<<"$WORDS"
}

# One run of a hundred may claim a difference, so it takes two in a row to fail.
@test "the same load with the path off in both states: no difference seen" {
	ab --seconds 10 --aa
	assert_equal "$(stat_of madvise taken)" 0
	[ "$(jq -r '.paths[0].verdict' <<<"$output")" = "no difference seen" ] ||
		ab --seconds 10 --aa
	verdict_is "no difference seen"
}

@test "a signal leaves the path on and observed, as it was" {
	local pid rc

	path_enable madvise
	echo 1 >"$ADVICE/observe"
	mmopt -j ab --window 0.2 madvise >"$BATS_TEST_TMPDIR/out" 3>&- &
	pid=$!
	wait_until 30 grep -q '^off' "$ADVICE/state"
	# nobody else switches meanwhile
	run mmopt unload
	assert_failure 1
	assert_output --partial "'mmopt ab' is at work"
	kill -INT $pid
	wait $pid && rc=0 || rc=$?
	assert_equal "$rc" 1
	jq -e '.complete == false and .errors[0].errno == "EINTR"' "$BATS_TEST_TMPDIR/out"
	assert_equal "$(path_state madvise)" on
	assert_equal "$(<"$ADVICE/observe")" 1
}
