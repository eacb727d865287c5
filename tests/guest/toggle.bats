#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# On and off, and in and out, under load: no call is lost or counted twice.

load helpers

ROUNDS=${MMOPT_ROUNDS:-25}
CALLERS=3
CHURNERS=16

setup()
{
	begin_test
	require_path madvise
	thp never
}

teardown()
{
	end_test
	thp always
}

# The counts since the last reset are those of the callers' own.
settle()
{
	tell pause "calls *"
	assert_equal "$(stat_of madvise calls)" "$(calls)"
	counted_once
	CALLS=$((CALLS + $(calls)))
	TAKEN=$((TAKEN + $(stat_of madvise taken)))
}

# Callers stand still: from here on every call counts.
resume()
{
	echo 1 >"$ADVICE/observe"
	path_reset madvise
	tell go going
}

@test "$ROUNDS rounds under $CHURNERS churners: every call is counted exactly once" {
	local round

	CALLS=0 TAKEN=0
	talk "$PROG/advise" -a both -t $CALLERS -c $CHURNERS -k 64 -v 4
	resume
	for ((round = 1; round <= ROUNDS; round++)); do
		path_enable madvise
		path_disable madvise
		((round % 5)) || {
			settle
			# uncounted, but under the same load
			tell go going
			mmopt unload
			refute mmopt_is_loaded
			mmopt load
			tell pause "calls *"
			resume
		}
	done
	settle
	remark "$CALLS calls, $TAKEN of them taken"
	assert [ "$TAKEN" -gt 0 ]
	assert [ "$CALLS" -gt "$TAKEN" ]
	talk_close
	grep -x intact <<<"$WORDS"
}

@test "the same without observation: the kernel's text is turned under fire" {
	local round

	talk "$PROG/advise" -a both -t $CALLERS -c $CHURNERS -k 64
	tell go going
	for ((round = 1; round <= ROUNDS; round += 2)); do
		path_enable madvise
		path_disable madvise
	done
	tell pause "calls *"
	counted_once
	assert [ "$(stat_of madvise calls)" -le "$(calls)" ]
	talk_close
	grep -x intact <<<"$WORDS"
}
