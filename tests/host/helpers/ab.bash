# SPDX-License-Identifier: GPL-2.0
# What the tests of mmopt ab share.
# shellcheck shell=bash disable=SC2034 # some of it each

DIR=/sys/kernel/debug/mmopt
SHORT=(--window 0.1 --seed 1)

# at_work STOCK_NS TAKEN_NS [STATE]: madvise, with calls that take about so long.
at_work() {
	tree_loaded
	tree_path madvise "${3:-off}"
	echo "$1 $2" >"$MMOPT_ROOT/.live"
}

# runs_for PAIRS [STATUS]: in LOAD, a command that ends when the windows of so many
# pairs are over: statistics are read four times for each, with 100 calls between.
runs_for() {
	cat >"$BATS_TEST_TMPDIR/load" <<-END
		#!/bin/sh
		until [ "\$(sed -n 's/^calls //p' "$MMOPT_ROOT$DIR/madvise/stats")" -ge $(($1 * 400)) ]; do
			sleep 0.05
		done
		exit ${2:-0}
	END
	chmod +x "$BATS_TEST_TMPDIR/load"
	LOAD=(-- env -u LD_PRELOAD "$BATS_TEST_TMPDIR/load")
}

# is_gone PID: the process ends soon, if it has not; nobody may have asked how.
is_gone() {
	local i

	for ((i = 0; i < 100; i++)); do
		grep -q '^State:.[^ZX]' "/proc/$1/status" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

# left_as STATE OBSERVE [PATH]: how the path was left.
left_as() {
	assert_equal "$(cat "$MMOPT_ROOT$DIR/${3:-madvise}/state")" "$1"
	assert_equal "$(cat "$MMOPT_ROOT$DIR/${3:-madvise}/observe")" "$2"
}

# refuses STATUS TEXT ARGUMENT...: nothing is done.
refuses() {
	local status_=$1 text=$2

	shift 2
	run_mmopt ab "$@"
	assert_failure "$status_"
	assert_output ''
	assert_stderr "$text"
	assert_message_form
	run asked
	assert_output ''
}
