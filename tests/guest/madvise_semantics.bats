#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, advice has the same results as without, case by case.

load helpers

setup_file()
{
	swap_on
	thp madvise
}

teardown_file()
{
	swap_off
	thp always
}

setup()
{
	begin_test
	require_path madvise
}

teardown()
{
	end_test
}

# The lines of a group with the path off and on; then how many calls mmopt saw.
compare()
{
	echo 1 >"$ADVICE/observe"
	"$PROG/semantics" "$1" >"$BATS_TEST_TMPDIR/off"
	assert_equal "$(stat_of madvise taken)" 0
	SEEN=$(stat_of madvise calls)
	assert [ "$SEEN" -gt 0 ]
	path_reset madvise

	path_enable madvise
	"$PROG/semantics" "$1" >"$BATS_TEST_TMPDIR/on"
	TAKEN=$(stat_of madvise taken)
	assert [ "$TAKEN" -gt 0 ]
	assert_equal "$(stat_of madvise calls)" "$SEEN"
	assert_equal "$(stat_of madvise stock)" $((SEEN - TAKEN))

	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	run grep DAMAGED "$BATS_TEST_TMPDIR/on"
	assert_failure
}

# Lines that must be there, or the comparison is of nothing.
has()
{
	grep -Fx -- "$1" "$BATS_TEST_TMPDIR/on" || {
		echo "missing: $1"
		grep "^${1%%:*}" "$BATS_TEST_TMPDIR/on"
		return 1
	}
}

@test "ranges and kinds of memory" {
	compare ranges
	has "plain COLD: ok pages pppppppp referenced 0 kB swapped 0 kB contents yyyyyyyy"
	has "plain PAGEOUT: ok pages ssssssss referenced 0 kB swapped 32 kB contents yyyyyyyy"
	has "unaligned PAGEOUT: EINVAL pages pppppppp referenced 32 kB swapped 0 kB contents yyyyyyyy"
	has "gap_in_the_middle PAGEOUT: ENOMEM pages sss..sss referenced 0 kB swapped 24 kB contents yyy..yyy"
	has "length_rounds_up PAGEOUT: ok pages pssssppp referenced 16 kB swapped 16 kB contents yyyyyyyy"
	has "length_rounds_to_none COLD: EINVAL pages pppppppp referenced 32 kB swapped 0 kB contents yyyyyyyy"
	has "wraps COLD: EINVAL pages pppppppp referenced 32 kB swapped 0 kB contents yyyyyyyy"
	has "locked_last PAGEOUT: EINVAL pages sssssspp referenced 8 kB swapped 24 kB contents yyyyyyyy"
	has "eight_vmas PAGEOUT: ok pages ssssssss referenced 0 kB swapped 32 kB contents yyyyyyyy"
	has "userfault_in_the_middle PAGEOUT: ok pages ssssssss referenced 0 kB swapped 32 kB contents yyyyyyyy"
	has "shared_by_fork PAGEOUT: ok pages pppppppp referenced 32 kB swapped 0 kB contents yyyyyyyy"
	has "vvar COLD: EINVAL"
	has "kernel COLD: ENOMEM"
}

@test "mapped files, of root and of others" {
	compare files
	has "shared, of root, by root PAGEOUT: ok pages pppp........pppp referenced 32 kB swapped 0 kB cached rrrr--------rrrr intact"
	grep -F "shared, of nobody, by nobody PAGEOUT: ok" "$BATS_TEST_TMPDIR/on" |
		grep -F "cached rrrr--------rrrr intact"
	grep -F "shared, of root, by nobody PAGEOUT: ok" "$BATS_TEST_TMPDIR/on" |
		grep -F "cached rrrrrrrrrrrrrrrr intact"
	grep -F "shared, writable, of root, by nobody PAGEOUT: ok" "$BATS_TEST_TMPDIR/on" |
		grep -F "cached rrrr--------rrrr intact"
	grep -F "private and written, of root, by nobody PAGEOUT: ok" "$BATS_TEST_TMPDIR/on" |
		grep -F "swapped 16 kB"
}

@test "huge pages, and folios of 64 KiB" {
	local sizes=/sys/kernel/mm/transparent_hugepage

	sysctl -q vm.nr_hugepages=2
	compare huge
	has "whole PAGEOUT, before: huge 2048 kB, rss 2048 kB, referenced 2048 kB, swap 0 kB"
	has "whole PAGEOUT, after: huge 0 kB, rss 0 kB, referenced 0 kB, swap 2048 kB"
	has "middle COLD, after: huge 0 kB, rss 2048 kB, referenced 1248 kB, swap 0 kB"
	has "hugetlb COLD: EINVAL"

	path_disable madvise
	path_reset madvise
	echo never >$sizes/hugepages-2048kB/enabled
	echo madvise >$sizes/hugepages-64kB/enabled
	compare huge
	echo never >$sizes/hugepages-64kB/enabled
	echo inherit >$sizes/hugepages-2048kB/enabled
	has "whole PAGEOUT, before: huge 0 kB, rss 2048 kB, referenced 2048 kB, swap 0 kB"
	sysctl -q vm.nr_hugepages=0
}

@test "process_madvise on ourselves and on another process" {
	compare vector
	has "self four segments PAGEOUT: 36864"
	has "  pages sspspsspssss.ppp"
	has "self an empty one amid COLD: 16384"
	has "self a gap first COLD: ENOMEM"
	has "self a gap amid COLD: 8192"
	has "other no segment COLD: ok"
	has "other COLD: intact"
	has "gone one segment PAGEOUT: ESRCH"
}

@test "io_uring, and system calls of 32-bit code" {
	compare uring
	has "uring PAGEOUT: ok pages ssssssss intact"
	has "uring over a gap PAGEOUT: -ENOMEM pages ppppppss intact"
	path_disable madvise
	path_reset madvise
	compare compat
	has "compat PAGEOUT: ok pages ssssssss intact"
	has "compat unaligned COLD: -EINVAL pages pppppppp intact"
}

@test "fork, exec, exit and SIGKILL race with advice" {
	path_enable madvise
	run "$PROG/race" 10
	assert_success
	remark "$output"
	assert_line intact
	counted_once
}
