#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# A call that lasts, as it does when the swap device is slow: who waits for it,
# who does not, and what mmopt says meanwhile.

load helpers

HOLD=/sys/module/mmopt_test_hold/parameters

setup()
{
	begin_test
	require_path madvise
	swap_on
	insmod "$BATS_TEST_DIRNAME/mod-hold/mmopt_test_hold.ko"
}

teardown()
{
	echo 0 >$HOLD/hold
	jobs -p | xargs -r kill -KILL 2>/dev/null
	talk_end
	rmmod mmopt_test_hold
	swap_off
	end_test
}

# An adviser of whose calls one is under way and stays so.
hold_one()
{
	talk "$PROG/advise" -a pageout -w "$@"
	tell go going
	wait_until 30 grep -qx 1 $HOLD/held
}

release()
{
	echo 0 >$HOLD/hold
	wait_until 30 grep -qx 0 $HOLD/held
	tell pause "calls *"
}

churned()
{
	tell churned "churned *"
	echo "${ANSWER#churned }"
}

@test "a call that lasts does not keep the process from mapping and unmapping" {
	local before

	path_enable madvise
	hold_one -c 2
	before=$(churned)
	sleep 1
	assert [ "$(churned)" -gt "$before" ]
	assert_equal "$(<$HOLD/held)" 1
	release
	path_disable madvise

	# stock code does: it sleeps with mmap_lock held
	echo 1 >$HOLD/hold
	tell go going
	wait_until 30 grep -qx 1 $HOLD/held
	sleep 1
	before=$(churned)
	sleep 1
	assert_equal "$(churned)" "$before"
	release
}

@test "switching off waits for the call; the wait can be given up, and taken up again" {
	local pid

	path_enable madvise
	hold_one
	poke "$ADVICE/enabled" 0 >"$BATS_TEST_TMPDIR/out" 3>&- &
	pid=$!
	wait_until 30 grep -q '^draining' "$ADVICE/state"
	sleep 1
	assert [ -d /proc/$pid ]

	# all but the call under way are stock already
	path_reset madvise
	"$PROG/advise" -a cold <<<"run 3" >/dev/null
	assert_equal "$(stat_of madvise taken)" 0

	pkill -INT -P $pid -x poke || kill -INT $pid
	wait_until 10 test ! -d /proc/$pid
	run path_state madvise
	assert_output --regexp '^draining: .*under way'
	assert_equal "$(<"$ADVICE/enabled")" 0

	run rmmod mmopt
	assert_failure
	run timeout 60 mmopt disable --timeout 2 madvise
	assert_failure 11
	assert_output --partial "under way"
	assert_output --partial "adviser ("
	run timeout 60 mmopt unload --timeout 2
	assert_failure 11
	assert_output --partial "under way"
	assert mmopt_is_loaded

	release
	path_disable madvise
	assert_equal "$(path_state madvise)" off
	mmopt_unload
	mmopt_load
}

@test "a path that is still draining is off until it is on again" {
	path_enable madvise
	hold_one
	run timeout -s INT 2 "$PROG/poke" "$ADVICE/enabled" 0
	run path_state madvise
	assert_output --regexp '^draining: .*under way'

	run poke "$ADVICE/enabled" 1
	path_reset madvise
	"$PROG/advise" -a cold <<<"run 3" >/dev/null
	if [ "$output" = ok ]; then
		assert_equal "$(path_state madvise)" on
		assert_equal "$(stat_of madvise taken)" 3
	else
		assert_equal "$output" EBUSY
		assert_equal "$(<"$ADVICE/enabled")" 0
	fi
	release
}

@test "observing while draining counts what it says" {
	path_enable madvise
	hold_one
	run timeout -s INT 2 "$PROG/poke" "$ADVICE/enabled" 0
	run poke "$ADVICE/observe" 1
	path_reset madvise
	"$PROG/advise" -a cold <<<"run 3" >/dev/null
	if [ "$output" = ok ]; then
		assert_equal "$(stat_of madvise stock)" 3
	else
		assert_equal "$(<"$ADVICE/observe")" 0
	fi
	release
}

@test "the second of two who switch waits for the first, and both come to an end" {
	local first second

	path_enable madvise
	hold_one
	poke "$ADVICE/enabled" 0 >"$BATS_TEST_TMPDIR/first" 3>&- &
	first=$!
	wait_until 30 grep -q '^draining' "$ADVICE/state"
	poke "$ADVICE/enabled" 1 >"$BATS_TEST_TMPDIR/second" 3>&- &
	second=$!
	sleep 1
	assert [ -d /proc/$first ]
	assert [ -d /proc/$second ]
	# reading waits for nobody
	timeout 10 cat "$ADVICE/state" "$ADVICE/stats" "$ADVICE/enabled" "$MMOPT/status" >/dev/null
	release
	wait $first $second
	assert_equal "$(cat "$BATS_TEST_TMPDIR"/{first,second})" $'ok\nok'
	assert_equal "$(path_state madvise)" on
}

@test "observing ends like the path does: the wait can be given up, and taken up again" {
	echo 1 >"$ADVICE/observe"
	hold_one
	run timeout -s INT 2 "$PROG/poke" "$ADVICE/observe" 0
	assert_equal "$(<"$ADVICE/observe")" 0
	run path_state madvise
	assert_output --regexp '^draining: .*under way'
	release
	echo 0 >"$ADVICE/observe"
	assert_equal "$(path_state madvise)" off
	mmopt_unload
	mmopt_load
}

@test "the module parameter: a wait can be given up, and blocks no reader" {
	local enable=$MMOPT_PARAMETERS/enable pid

	echo madvise >"$enable"
	hold_one
	"$PROG/poke" "$enable" none >"$BATS_TEST_TMPDIR/out" 3>&- &
	pid=$!
	wait_until 30 grep -q '^draining' "$ADVICE/state"
	run timeout 10 cat "$enable"
	assert_output none
	# and a second writer can give up too
	run timeout -s INT 2 "$PROG/poke" "$enable" none
	assert [ -d /proc/$pid ]
	release
	wait $pid
	assert_equal "$(<"$BATS_TEST_TMPDIR/out")" ok
	assert_equal "$(path_state madvise)" off
}
