#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-append: guest=lockdown
#
# Lockdown comes while mmopt is loaded. It cannot be undone, so that these tests
# have a guest of their own: the option above, which nobody reads, makes it one.

load helpers

LOCKDOWN=/sys/kernel/security/lockdown

setup()
{
	klog_mark
	mmopt_is_loaded || mmopt_load
	grep -q '\[integrity\]' $LOCKDOWN || echo integrity >$LOCKDOWN
}

teardown()
{
	klog_assert_clean
}

@test "lockdown closes the switches in debugfs" {
	run poke "$ADVICE/enabled" 1
	assert_output "open: EPERM"
	run cat "$ADVICE/enabled"
	assert_failure
}

@test "state, status, statistics and version can be read" {
	run cat "$ADVICE/state" "$ADVICE/stats" "$MMOPT/status" "$MMOPT/version"
	assert_success
	run mmopt status
	assert_success
	assert_output --partial madvise
	run mmopt stats
	assert_success
	run mmopt check
	assert_output --partial lockdown
}

@test "enable goes by the module parameter, and says so" {
	local path

	for path in $(mmopt_paths); do
		path_is_available "$path" || continue
		run mmopt enable "$path"
		assert_success
		assert_output --partial parameter
		assert_equal "$(path_state "$path")" on
		run mmopt disable "$path"
		assert_success
		assert_equal "$(path_state "$path")" off
	done
	if ! path_is_available madvise; then
		run mmopt enable madvise
		assert_failure
	fi
}

@test "the log is not filled" {
	local before after

	before=$(dmesg | grep -ci lockdown || :)
	mmopt enable all >/dev/null || :
	mmopt status >/dev/null
	mmopt stats >/dev/null
	mmopt disable all >/dev/null || :
	after=$(dmesg | grep -ci lockdown || :)
	# at most one line for each path and command: no file is tried again
	assert [ $((after - before)) -le $((2 * $(mmopt_paths | wc -w))) ]
}

@test "unload works, and no module comes back" {
	run mmopt unload
	assert_success
	refute mmopt_is_loaded
	run mmopt load
	assert_failure 5
	assert_output --partial mok.pub
	refute mmopt_is_loaded
}
