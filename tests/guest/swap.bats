#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Memory that is paged out at once is out, and comes back as it was.

load helpers

ROUNDS=5
MIB=${MMOPT_SWAP_MIB:-128}

setup()
{
	begin_test
	require_path madvise
	swap_on
}

teardown()
{
	swap_off
	end_test
}

@test "PAGEOUT empties $MIB MiB, $ROUNDS times over" {
	path_enable madvise
	run "$PROG/swapback" "$MIB" $ROUNDS
	remark "$output"
	assert_success
	assert_equal "$(grep -c ' intact$' <<<"$output")" $ROUNDS
	while read -r _ _ _ percent _; do
		assert [ "$percent" -ge 90 ]
	done <<<"$output"
	assert_equal "$(stat_of madvise taken)" $ROUNDS
}
