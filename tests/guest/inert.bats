#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debian13-backports
# guest-append: nommopt
#
# "nommopt" on the kernel command line: the module loads and keeps its hands off.

load helpers

setup()
{
	klog_mark
	mmopt_load
}

teardown()
{
	mmopt_unload
	klog_assert_clean
}

@test "every path is unavailable, and says that it was told so" {
	local path

	assert grep -qw nommopt /proc/cmdline
	for path in $(mmopt_paths); do
		run path_state "$path"
		assert_output "unavailable: nommopt is on the kernel command line"
		run poke "$MMOPT/$path/enabled" 1
		assert_output EOPNOTSUPP
		run poke "$MMOPT/$path/observe" 1
		assert_output EOPNOTSUPP
	done
	run poke "$MMOPT_PARAMETERS/enable" all
	assert_output ok
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" none
}

@test "no livepatch and no probe is there" {
	echo all >"$MMOPT_PARAMETERS/enable"
	run cat /sys/kernel/debug/kprobes/list
	assert_output ""
	assert [ -z "$(ls -A /sys/kernel/livepatch 2>/dev/null)" ]
}

@test "the command line says so" {
	run mmopt status
	assert_output --partial nommopt
	run mmopt enable madvise
	assert_failure 9
	assert_output --partial nommopt
	run mmopt check
	assert_output --partial nommopt
}
