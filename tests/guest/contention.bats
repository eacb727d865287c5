#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, advice does not touch mmap_lock, however much the other
# threads of the process use it. Times are told, not judged: the A/B does that.

load helpers

CALLS=100

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

# Times that an adviser asks for mmap_lock in CALLS calls.
locked()
{
	trace_begin 'comm == "adviser"' mmap_lock/mmap_lock_start_locking
	tell "run $CALLS" "calls $CALLS"
	echo 0 >"$TRACING/tracing_on"
	LOCKED=$(traced mmap_lock_start_locking)
	trace_end
}

@test "COLD and PAGEOUT with 16 churners take no mmap_lock" {
	local options

	for options in "-a cold" "-a pageout" "-a both -v 64"; do
		# shellcheck disable=SC2086 # words
		talk "$PROG/advise" -c 16 $options
		# first faults of the thread's own stack and of its program
		tell "run 2" "calls 2"

		locked
		remark "$options, off: $CALLS calls asked for mmap_lock $LOCKED times"
		assert [ "$LOCKED" -ge "$CALLS" ]

		path_enable madvise
		path_reset madvise
		locked
		assert_equal "$LOCKED" 0
		assert_equal "$(stat_of madvise taken)" "$CALLS"
		assert_equal "$(stat_of madvise stock)" 0
		talk_close
		grep -x intact <<<"$WORDS"
		path_disable madvise
	done
}

@test "a large adviser leaves mmap_lock to those who map, unmap and ask" {
	local state

	CALLS=6
	for state in off on; do
		[ $state = off ] || path_enable madvise
		path_reset madvise
		talk "$PROG/advise" -a both -k 262144 -l 2
		tell "run 1" "calls 1"
		locked
		talk_close
		remark "$state:" $'\n'"$WORDS"
		if [ $state = on ]; then
			assert_equal "$LOCKED" 0
			assert_equal "$(stat_of madvise taken)" $((CALLS + 1))
		else
			assert [ "$LOCKED" -ge $CALLS ]
		fi
		grep -x intact <<<"$WORDS"
	done
}
