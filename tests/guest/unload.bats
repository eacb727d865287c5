#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Unloading while everything that the paths have to do with is at work: it
# comes to an end, and the workloads notice nothing.

load helpers

SECONDS_ALL=${MMOPT_SECONDS:-20}
LIMIT=60

setup()
{
	begin_test
	require_path madvise
	swap_on
}

teardown()
{
	jobs -p | xargs -r kill -KILL 2>/dev/null
	wait
	swap_off
	end_test
}

# A long PAGEOUT that is killed in the middle, over and over.
victims()
{
	while :; do
		timeout -s KILL 0.7 "$PROG/advise" -a pageout -w -t 2 -k 32768 < <(
			echo "run 1000"
			read -rt 5 <> <(:) || :
		)
	done >/dev/null 2>&1
}

@test "load, enable, unload under full load" {
	local end=$((SECONDS + SECONDS_ALL)) loaded=0 workload=()

	victims 3>&- &
	"$PROG/vmalock" "$SECONDS_ALL" $LIMIT >"$BATS_TEST_TMPDIR/vmalock" 3>&- &
	workload+=($!)
	"$PROG/race" "$SECONDS_ALL" >"$BATS_TEST_TMPDIR/race" 3>&- &
	workload+=($!)
	talk "$PROG/advise" -a both -t 2 -c 16 -k 256 -v 4
	tell go going
	while ((SECONDS < end)); do
		echo all >"$MMOPT_PARAMETERS/enable"
		read -rt "0.$((RANDOM % 9))" <> <(:) || :
		timeout $LIMIT mmopt unload >/dev/null
		refute mmopt_is_loaded
		mmopt load >/dev/null
		loaded=$((loaded + 1))
	done
	remark "loaded and unloaded $loaded times"
	tell pause "calls *"
	talk_close
	grep -x intact <<<"$WORDS"
	wait "${workload[@]}"
	grep '^advised ' "$BATS_TEST_TMPDIR/vmalock"
	grep -x intact "$BATS_TEST_TMPDIR/race"
}

@test "rmmod of a path in use is refused and changes nothing" {
	path_enable madvise
	talk "$PROG/advise" -a both -c 4
	tell go going
	run rmmod mmopt
	assert_failure
	assert_equal "$(path_state madvise)" on
	tell pause "calls *"
	assert_equal "$(stat_of madvise taken)" "$(calls)"
}
