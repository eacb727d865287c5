#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# No VMA lock is leaked: whoever changes a VMA that is being advised gets on, and
# those who read the process's memory map do too.

load helpers

SECONDS_ALL=${MMOPT_SECONDS:-30}
STALL=20
KSM=/sys/kernel/mm/ksm

setup()
{
	begin_test
	require_path madvise
	swap_on
	HUNG=$(</proc/sys/kernel/hung_task_timeout_secs)
	echo $STALL >/proc/sys/kernel/hung_task_timeout_secs
}

teardown()
{
	echo 0 >$KSM/run
	jobs -p | xargs -r kill -KILL 2>/dev/null
	wait
	swap_off
	echo "$HUNG" >/proc/sys/kernel/hung_task_timeout_secs
	end_test
}

@test "advisers, writers of VMAs, ksmd and readers of the map, while the path goes on and off" {
	local pid

	echo 1000 >$KSM/pages_to_scan
	echo 1 >$KSM/run
	path_enable madvise
	"$PROG/vmalock" "$SECONDS_ALL" $STALL >"$BATS_TEST_TMPDIR/out" 3>&- &
	pid=$!
	(
		while read -r line; do
			: "$line"
			[ -e "/proc/$pid" ] || break
			cat "/proc/$pid/smaps_rollup" "/proc/$pid/maps" >/dev/null
		done < <(yes)
	) 3>&- 2>/dev/null &
	while [ -e "/proc/$pid/exe" ]; do
		path_disable madvise
		path_enable madvise
		read -rt 1 <> <(:) || :
	done
	wait $pid || {
		cat "$BATS_TEST_TMPDIR/out"
		return 1
	}
	remark "$(<"$BATS_TEST_TMPDIR/out")"
	assert [ "$(stat_of madvise taken)" -gt 0 ]
	counted_once
	timeout 10 ps aux >/dev/null
}
