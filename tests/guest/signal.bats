#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# A fatal signal in the middle of a long PAGEOUT ends the process, and leaves
# nothing behind.

load helpers

KILLS=5

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

swapped_kb()
{
	awk '/^SwapTotal/ { n += $2 } /^SwapFree/ { n -= $2 } END { print n }' /proc/meminfo
}

in_pageout()
{
	cat /proc/"$TALK_PROCESS"/task/*/stack | grep -q madvise_cold_or_pageout
}

hardly_swapped()
{
	[ "$(swapped_kb)" -lt 1024 ]
}

@test "kill -9 in the middle of PAGEOUT, $KILLS times" {
	local i pid rc

	path_enable madvise
	for ((i = 0; i < KILLS; i++)); do
		talk "$PROG/advise" -a pageout -w -t 2 -k 65536
		echo go >&"$TALK_TO"
		answer going
		wait_until 60 in_pageout
		pid=$TALK_PROCESS
		kill -KILL "$pid"
		rc=0
		wait "$pid" || rc=$?
		assert_equal $rc 137
		assert [ ! -e "/proc/$pid/exe" ]
		TALK_PROCESS=
	done
	assert [ "$(stat_of madvise taken)" -gt 0 ]
	counted_once
	# nobody is inside any more, or this would wait
	timeout 60 "$PROG/poke" "$ADVICE/enabled" 0
	wait_until 20 hardly_swapped
}
