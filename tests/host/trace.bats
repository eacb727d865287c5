#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

# shellcheck disable=SC2016 # what the fake kernel shall expand
NOT_ALLOWED='on_mkdir() { return "$EACCES"; }' NOT_UNLOCKED='on_mkdir() { return "$EPERM"; }'
# shellcheck disable=SC2016
STAYS='on_rmdir() { return "$EBUSY"; }
	on_write() { return "$EIO"; }'

INSTANCES=sys/kernel/tracing/instances

host() {
	tree_loaded
	tree_path madvise on
	tree_path mremap off
	tree_tracefs
	# both ends, lest either wait for the other
	exec 7<>"$MMOPT_ROOT/.pipe"
}

teardown() {
	[ ! "${traced:-}" ] || kill -KILL "$traced" 2>/dev/null || :
}

# trace ARGUMENT...: in the background, until it waits for events.
trace() {
	TZ=UTC ASAN_OPTIONS=exitcode=99 LD_PRELOAD=$FAKE_KERNEL_LIB "$MMOPT" "$@" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- 7>&- &
	traced=$!
	instance=$INSTANCES/mmopt-$traced
	until_so grep -qx 1 "$MMOPT_ROOT/$instance/events/mmopt/enable"
}

until_so() {
	local end=$((SECONDS + 60))

	until "$@" 2>/dev/null; do
		((SECONDS < end)) || fail "still not so: $*; $(cat "$BATS_TEST_TMPDIR/err")"
		read -rt 0.05 <> <(:) || :
	done
}

# happens LINE...: in the kernel.
happens() {
	printf '%s\n' "$@" >&7
}

# shown N: so many lines have come.
shown() {
	until_so eval "[ \$(wc -l <'$BATS_TEST_TMPDIR/out') -ge $1 ]"
	run cat "$BATS_TEST_TMPDIR/out"
}

# ended STATUS: it ends by itself, so, and has left nothing.
ended() {
	local rc=0

	wait "$traced" || rc=$?
	assert_equal "$rc" "$1"
	run ls -A "$MMOPT_ROOT/$INSTANCES"
	assert_output ''
	run cat "$BATS_TEST_TMPDIR/err"
}

EVENTS=('            bash-77      [001]    12.000345: mmopt_state: path=madvise on'
	'  redis-server 2-1234567 [120] 99999.999999: mmopt_fallback: path=madvise vma_lock'
	' a] 1.2: mmopt_x-5       [000]     0.000001: mmopt_trip: path=mremap a lock: that is not ours')

@test "events are shown with their task, and what they mean" {
	host
	trace trace
	happens "${EVENTS[@]}"
	shown 3
	kill -INT "$traced"
	ended 0
	assert_output 'mmopt: waiting for trace events, ^C ends'
	run cat "$BATS_TEST_TMPDIR/out"
	assert_line --index 0 --regexp '^[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}  bash-77 +madvise state: on$'
	assert_line --index 1 --regexp '^[0-9:.]{15}  redis-server 2-1234567 +madvise fallback: vma_lock, a gap, or a VMA'
	assert_line --index 2 --regexp '^[0-9:.]{15}  a\] 1\.2: mmopt_x-5 +mremap trip: a lock: that is not ours$'
}

@test "as JSON: one object a line, with the time of day in UTC" {
	local now

	host
	trace -j trace
	now=$(awk '{ print int($1) }' /proc/uptime)
	happens "${EVENTS[@]:1:2}" "            bash-77      [001]    $now.000345: mmopt_state: path=madvise on"
	shown 3
	kill -TERM "$traced"
	ended 0
	assert_output ''
	run jq -r 'select(.event) | "\(.task) \(.pid) \(.cpu) \(.path) \(.event) \(.what)"' "$BATS_TEST_TMPDIR/out"
	assert_line --index 0 'redis-server 2 1234567 120 madvise fallback vma_lock'
	assert_line --index 1 'a] 1.2: mmopt_x 5 0 mremap trip a lock: that is not ours'
	run jq -sr '.[2].time | sub("[.][0-9]*Z"; "Z") | fromdate | (now - .) | fabs < 300' "$BATS_TEST_TMPDIR/out"
	assert_output true
	run jq -sr '.[2].time' "$BATS_TEST_TMPDIR/out"
	assert_output --regexp 'T[0-9:]{8}\.[0-9]{6}Z$'
}

@test "what is no event is shown as it is, without what steers a terminal" {
	host
	trace trace
	happens 'CPU:3 [LOST 34 EVENTS]' 'something' $'\033[2J%n' "$(printf '%0400d' 0)"
	printf '            bash-77 ' >&7
	until_so grep -q something "$BATS_TEST_TMPDIR/out"
	happens '     [001]    12.000345: mmopt_state: path=madvise off'
	shown 5
	kill -INT "$traced"
	ended 0
	run cat "$BATS_TEST_TMPDIR/out"
	assert_line --index 0 '34 events were lost on CPU 3'
	assert_line --index 1 something
	assert_line --index 2 '?[2J%n'
	assert_line --index 4 --partial 'bash-77               madvise state: off'
	# a line without an end
	trace -j trace
	head -c 50000 /dev/zero | tr '\0' x >&7
	happens '' "${EVENTS[0]}"
	until_so grep -q '"event":"state"' "$BATS_TEST_TMPDIR/out"
	kill -INT "$traced"
	ended 0
}

@test "the instance: its own clock, options and filter, and no one else's" {
	host
	mkdir -p "$MMOPT_ROOT/$INSTANCES/other" "$MMOPT_ROOT/$INSTANCES/mmopt-x" "$MMOPT_ROOT/proc/1"
	tree_instance "/$INSTANCES/mmopt-1"
	tree_instance "/$INSTANCES/mmopt-4194305"	# killed
	trace trace madvise mremap
	run cat "$MMOPT_ROOT/$instance"/{trace_clock,buffer_percent,events/mmopt/filter}
	assert_output $'mono\n0\npath == "madvise" || path == "mremap"'
	run cat "$MMOPT_ROOT/$instance"/options/{bin,irq-info,context-info}
	assert_output $'0\n0\n1'
	kill -HUP "$traced"
	wait "$traced"
	run ls "$MMOPT_ROOT/$INSTANCES"
	assert_output $'mmopt-1\nmmopt-x\nother'
	run grep -v "$instance\|mmopt-4194305" "$MMOPT_ROOT/.log"
	assert_output ''
	rm -r "${MMOPT_ROOT:?}/$INSTANCES"/*
	trace trace
	assert_equal "$(cat "$MMOPT_ROOT/$instance/events/mmopt/filter")" none
	kill -INT "$traced"
	ended 0
}

@test "the module is unloaded meanwhile: says so, exit 3" {
	host
	trace trace
	rm -r "$MMOPT_ROOT/sys/kernel/debug/mmopt" "$MMOPT_ROOT/sys/module/mmopt"
	ended 3
	assert_output --partial 'mmopt: mmopt: the module was unloaded meanwhile; '
}

@test "nobody reads any more: ends, with exit 1" {
	local fifo=$BATS_TEST_TMPDIR/fifo

	host
	mkfifo "$fifo"
	ASAN_OPTIONS=exitcode=99 LD_PRELOAD=$FAKE_KERNEL_LIB "$MMOPT" trace \
		>"$fifo" 2>"$BATS_TEST_TMPDIR/err" 3>&- 7>&- &
	traced=$!
	: <"$fifo"
	ended 1
	assert_output --partial 'stdout: cannot write: Broken pipe'
}

@test "no tracefs: what to do" {
	host
	put proc/mounts 'debugfs /sys/kernel/debug debugfs rw,nosuid 0 0'
	run_mmopt trace
	assert_failure 1
	assert_message_form
	assert_stderr "mmopt: tracefs: not mounted; run 'mount -t tracefs none /sys/kernel/tracing' as root"
	rm -r "$MMOPT_ROOT/sys/kernel/tracing"
	run_mmopt -j trace
	assert_failure 1
	assert_json '.errors[0].hint | contains("CONFIG_TRACING")'
}

@test "the tracefs within debugfs will do" {
	host
	put proc/mounts 'debugfs /sys/kernel/debug debugfs rw,nosuid 0 0'
	mkdir -p "$MMOPT_ROOT"/sys/kernel/debug/tracing
	mv "$MMOPT_ROOT"/sys/kernel/tracing/* "$MMOPT_ROOT/sys/kernel/debug/tracing"
	mkdir -p "$MMOPT_ROOT/$INSTANCES"
	ASAN_OPTIONS=exitcode=99 LD_PRELOAD=$FAKE_KERNEL_LIB "$MMOPT" trace >"$BATS_TEST_TMPDIR/out" \
		2>"$BATS_TEST_TMPDIR/err" 3>&- 7>&- &
	traced=$!
	until_so grep -qx 1 "$MMOPT_ROOT/sys/kernel/debug/tracing/instances/mmopt-$traced/events/mmopt/enable"
	kill -INT "$traced"
	ended 0
}

@test "not permitted: exit 4; under lockdown exit 5" {
	host
	behave <<<"$NOT_ALLOWED"
	run_mmopt trace
	assert_failure 4
	assert_stderr 'tracefs: cannot make an instance: Permission denied; run mmopt as root'
	behave <<<"$NOT_UNLOCKED"
	put sys/kernel/security/lockdown 'none integrity [confidentiality]'
	run_mmopt trace
	assert_failure 5
	assert_message_form
	assert_stderr 'lockdown is confidentiality and forbids tracing'
}

@test "an instance that cannot be set up is removed; one that stays is told of" {
	local file

	host
	for file in trace_clock buffer_percent events/mmopt/filter events/mmopt/enable; do
		behave <<<"on_write() { case \$1 in */$file) return \"\$EINVAL\" ;; esac; default_write \"\$@\"; }"
		run_mmopt trace madvise
		assert_failure 1
		assert_message_form
		assert_stderr 'cannot set the instance up: Invalid argument'
		assert_equal "$(ls -A "$MMOPT_ROOT/$INSTANCES")" ''
	done
	behave <<<"$STAYS"
	run_mmopt trace
	assert_failure 1
	assert_stderr 'mmopt: warning: /sys/kernel/tracing/instances/mmopt-'
	assert_stderr 'cannot be removed: Device or resource busy'
}

@test "trace without the module, and of an unknown path" {
	run_mmopt trace
	assert_failure 3
	host
	run_mmopt trace nosuch
	assert_failure 2
	assert_equal "$(ls -A "$MMOPT_ROOT/$INSTANCES")" ''
}
