#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Memory that is paged out at once is out, and comes back as it was.

load helpers

ROUNDS=5

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

# Half of what is free, but no more than 256 MiB.
size_mib()
{
	awk '/^MemAvailable/ { n = int($2 / 2048); print (n > 256 ? 256 : n) }' /proc/meminfo
}

@test "PAGEOUT empties memory, $ROUNDS times over" {
	path_enable madvise
	run "$PROG/swapback" "$(size_mib)" $ROUNDS
	remark "$output"
	assert_success
	assert_equal "$(grep -c ' intact$' <<<"$output")" $ROUNDS
	while read -r _ _ _ percent _; do
		assert [ "$percent" -ge 90 ]
	done <<<"$output"
	assert_equal "$(stat_of madvise taken)" $ROUNDS
}
