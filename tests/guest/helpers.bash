# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What every test in the guest begins with.

# The libraries ask dirname for each of their files, for each test anew: under
# emulation, processes are what a test's time goes to.
dirname()
{
	echo "${1%/*}"
}
bats_load_library bats-support
bats_load_library bats-assert
unset -f dirname
load ../lib/klog
load ../lib/mmopt

PROG=$BATS_TEST_DIRNAME/prog
TRACING=/sys/kernel/tracing
ADVICE=$MMOPT/madvise
TRACED=()

# Module loaded, everything off, counters at zero. For setup().
begin_test()
{
	local dir

	klog_mark
	mmopt_is_loaded || mmopt_load
	mmopt_all_off
	for dir in "$MMOPT"/*/; do
		echo 1 >"${dir}reset"
	done
}

# For teardown(): the log is clean, and what is left is as at the beginning.
end_test()
{
	local rc=0

	talk_end
	trace_end
	mmopt_is_loaded && mmopt_all_off
	klog_assert_clean || rc=1
	return $rc
}

mmopt_all_off()
{
	local dir

	for dir in "$MMOPT"/*/; do
		echo 0 >"${dir}observe"
		echo 0 >"${dir}enabled"
	done
}

# Skips a test whose path this kernel does not have, with the module's reason.
require_path()
{
	mmopt_is_loaded || mmopt_load
	path_is_available "$1" || skip "$1: $(path_state "$1")"
}

kernel_is()
{
	[[ $(uname -r) == "$1".* ]]
}

# poke FILE DATA...: a write each; "ok" or the name of the error for each.
poke()
{
	"$PROG/poke" "$@"
}

# Compressed memory to swap to.
swap_on()
{
	modprobe zram num_devices=1
	echo "${1:-512M}" >/sys/block/zram0/disksize
	mkswap /dev/zram0 >/dev/null
	swapon /dev/zram0
}

swap_off()
{
	[ -b /dev/zram0 ] || return 0
	swapoff /dev/zram0
	echo 1 >/sys/block/zram0/reset
}

# For comparisons between runs: no help by khugepaged, one size of huge page.
thp()
{
	echo "$1" >/sys/kernel/mm/transparent_hugepage/enabled
}

# talk COMMAND...: starts a program that takes commands, see prog/advise.c
talk()
{
	coproc TALK { exec "$@" 2>&1; }
	TALK_PROCESS=$TALK_PID
	# the shell closes its own descriptors when the program ends
	exec {TALK_FROM}<&"${TALK[0]}" {TALK_TO}>&"${TALK[1]}"
	answer "ready *"
}

# answer PATTERN: waits for a line; it is left in ANSWER
answer()
{
	if ! read -rt 300 -u "$TALK_FROM" ANSWER; then
		echo "no answer; expected: $1"
		return 1
	fi
	# shellcheck disable=SC2053 # a pattern
	if [[ $ANSWER != $1 ]]; then
		echo "expected: $1"
		echo "answer:   $ANSWER"
		return 1
	fi
}

# tell COMMAND PATTERN
tell()
{
	echo "$1" >&"$TALK_TO"
	answer "$2"
}

# The number of calls in the last answer.
calls()
{
	echo "${ANSWER#calls }"
}

# Ends the program; its last words are left in WORDS.
talk_close()
{
	echo end >&"$TALK_TO"
	WORDS=$(timeout 300 cat <&"$TALK_FROM")
	exec {TALK_FROM}<&- {TALK_TO}>&-
	wait "$TALK_PROCESS"
	TALK_PROCESS=
}

talk_end()
{
	[ -n "${TALK_PROCESS:-}" ] || return 0
	kill -KILL "$TALK_PROCESS" 2>/dev/null
	wait "$TALK_PROCESS" 2>/dev/null
	TALK_PROCESS=
}

# trace_begin FILTER EVENT...
trace_begin()
{
	local filter=$1 event

	shift
	TRACED=("$@")
	echo 0 >"$TRACING/tracing_on"
	echo >"$TRACING/trace"
	for event; do
		echo "$filter" >"$TRACING/events/$event/filter"
		echo 1 >"$TRACING/events/$event/enable"
	done
	echo 1 >"$TRACING/tracing_on"
}

trace_end()
{
	local event

	for event in "${TRACED[@]}"; do
		echo 0 >"$TRACING/events/$event/enable"
		echo 0 >"$TRACING/events/$event/filter"
	done
	TRACED=()
	echo 1 >"$TRACING/tracing_on"
}

# How many times the trace holds an event; lost ones are an error.
traced()
{
	if grep -q 'LOST' "$TRACING/trace"; then
		echo "the trace has lost events" >&2
		return 1
	fi
	grep -c " $1: " "$TRACING/trace" || :
}

# counted_once: every call was taken or left to stock code, none twice.
counted_once()
{
	awk '{ n[$1] = $2 } END {
		if (n["calls"] != n["taken"] + n["stock"]) {
			print "calls " n["calls"] ", taken " n["taken"] ", stock " n["stock"]
			exit 1
		}
	}' "$ADVICE/stats"
}

# Something for the reader of the results, not a verdict.
remark()
{
	# shellcheck disable=SC2001 # every line of it
	sed 's/^/# /' <<<"$*" >&3
}
