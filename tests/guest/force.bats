#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-append: guest=force
#
# What leaves marks on the kernel, in a guest of its own: the option above, which
# nobody reads, makes it one.

load helpers

setup()
{
	begin_test
}

teardown()
{
	klog_assert_clean
}

# Both operations work, whoever does them.
both_work()
{
	run "$PROG/mremap_moves" plain anon 16 aligned 4
	assert_success
	assert_output "contents intact"
	run "$PROG/advise" <<<"run 3"
	assert_line "calls 3"
}

@test "rmmod --force takes the hooks out of an armed module" {
	echo all >"$MMOPT_PARAMETERS/enable"
	both_work
	rmmod --force mmopt
	both_work
	mmopt_load
	echo all >"$MMOPT_PARAMETERS/enable"
	both_work
	assert [ "$(stat_of mremap taken)" -gt 0 ]
}

@test "a hook that a dead ftrace keeps holds the module, which says so" {
	path_enable mremap
	insmod "$BATS_TEST_DIRNAME/mod-kill/mmopt_test_kill.ko"
	run poke "$MMOPT/mremap/enabled" 0
	assert_output ENODEV
	assert_regex "$(path_state mremap)" '^draining: ftrace has shut itself down'
	assert_equal "$(<"$MMOPT/mremap/enabled")" 0
	path_reset mremap
	both_work
	assert_equal "$(stat_of mremap taken)" 0
	assert [ "$(stat_of mremap stock)" -gt 0 ]
	run poke "$MMOPT/mremap/enabled" 1
	assert_output ENODEV
	run poke "$MMOPT/mremap/enabled" 0
	assert_output ENODEV
	run rmmod mmopt
	assert_failure
	both_work
}
