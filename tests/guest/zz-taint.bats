#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# After all other tests: the kernel is tainted by nothing but what mmopt is.

load helpers

@test "the kernel is tainted out-of-tree and unsigned, and nothing else" {
	local taint allowed=0

	modprobe mmopt
	taint=$(</proc/sys/kernel/tainted)
	# another livepatch, that a test loads
	[ ! -e /run/mmopt-test-livepatch ] || allowed=$((1 << 15))
	assert_equal $((taint & ~allowed)) $((1 << 12 | 1 << 13))
	# lockdep gives up after the first complaint, or out of room
	[ ! -e /proc/lockdep_stats ] || grep 'debug_locks: *1$' /proc/lockdep_stats
}

@test "the kernel says so of the module" {
	run cat /sys/module/mmopt/taint
	assert_output OE
}
