#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, memory that moves is what it is with the path off, and the
# TLB is flushed once for a batch.

load helpers

MREMAP=$MMOPT/mremap
BATCH=67108864

setup_file()
{
	load helpers
	swap_on
	thp madvise
	# khugepaged would change what is compared
	KHUGEPAGED=/sys/kernel/mm/transparent_hugepage/khugepaged
	cat $KHUGEPAGED/max_ptes_none >"$BATS_FILE_TMPDIR/max_ptes_none"
	cat $KHUGEPAGED/scan_sleep_millisecs >"$BATS_FILE_TMPDIR/scan_sleep_millisecs"
	echo 0 >$KHUGEPAGED/max_ptes_none
	echo 4000000000 >$KHUGEPAGED/scan_sleep_millisecs
}

teardown_file()
{
	local name

	load helpers
	for name in max_ptes_none scan_sleep_millisecs; do
		cat "$BATS_FILE_TMPDIR/$name" >/sys/kernel/mm/transparent_hugepage/khugepaged/$name
	done
	swap_off
	thp always
}

setup()
{
	begin_test
	require_path mremap
}

teardown()
{
	echo $BATCH >"$MREMAP/batch_bytes"
	end_test
}

# The lines of a program with the path off, but observed, and on.
compare()
{
	echo 1 >"$MREMAP/observe"
	"$PROG/$1" "${@:2}" >"$BATS_TEST_TMPDIR/off"
	assert_equal "$(stat_of mremap taken)" 0
	assert_equal "$(stat_of mremap flushes)" 0
	SEEN=$(stat_of mremap calls)
	path_reset mremap

	path_enable mremap
	"$PROG/$1" "${@:2}" >"$BATS_TEST_TMPDIR/on"
	assert_equal "$(stat_of mremap calls)" "$SEEN"
	TAKEN=$(stat_of mremap taken)
	assert_equal "$(stat_of mremap stock)" $((SEEN - TAKEN))

	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	run grep -E 'DAMAGED|apart NO' "$BATS_TEST_TMPDIR/on"
	assert_failure
}

# How many lines of the comparison match; a comparison of nothing is none.
lines()
{
	grep -cE -- "$1" "$BATS_TEST_TMPDIR/on" || :
}

# All calls seen, and all of them taken.
all_taken()
{
	assert [ "$SEEN" -ge "$1" ]
	assert_equal "$TAKEN" "$SEEN"
}

# plain KIND MIB LAYOUT TIMES, checked for contents
plain()
{
	run "$PROG/mremap_moves" plain "$@"
	assert_success
	assert_output "contents intact"
}

# stats TAKEN STOCK FLUSHES
stats()
{
	assert_equal "$(stat_of mremap taken)" "$1"
	assert_equal "$(stat_of mremap stock)" "$2"
	assert_equal "$(stat_of mremap calls)" $(($1 + $2))
	assert_equal "$(stat_of mremap flushes)" "$3"
}

@test "on: every eligible move is taken, with one flush for 64 MiB" {
	local layout

	path_enable mremap
	for layout in aligned congruent unaligned; do
		path_reset mremap
		plain anon 64 $layout 6
		stats 6 0 6
	done
	path_reset mremap
	plain anon 192 aligned 2
	stats 2 0 6
	assert_equal "$(stat_of mremap pages)" $((2 * 192 * 256))
	path_reset mremap
	plain thp 64 aligned 2
	stats 2 0 2
}

@test "off but observed: every move is stock" {
	echo 1 >"$MREMAP/observe"
	plain anon 16 aligned 4
	plain anon 16 unaligned 4
	stats 0 8 0
	assert_equal "$(stat_of mremap pages)" 0
}

@test "off and not observed: nothing is counted" {
	plain anon 16 aligned 4
	stats 0 0 0
}

@test "moves of less than two page tables are none of ours" {
	path_enable mremap
	plain anon 2 aligned 4
	stats 0 0 0
	plain anon 4 aligned 4
	stats 4 0 4
}

@test "batch_bytes: what a batch covers, within bounds" {
	path_enable mremap
	assert_equal "$(cat "$MREMAP/batch_bytes")" $BATCH
	echo 2097152 >"$MREMAP/batch_bytes"
	plain anon 64 aligned 2
	stats 2 0 64
	path_reset mremap
	echo 1073741824 >"$MREMAP/batch_bytes"
	plain anon 192 aligned 2
	stats 2 0 2
	assert_equal "$(cat "$MREMAP/batch_bytes")" 1073741824
}

@test "batch_bytes: what it refuses leaves it as it was" {
	local bad

	for bad in 0 1 2097151 1073741825 18446744073709551615 18446744073709551616 \
		-1 '' ' ' 2M 2097152x many; do
		run poke "$MREMAP/batch_bytes" "$bad"
		refute_output ok
		assert_equal "$(cat "$MREMAP/batch_bytes")" $BATCH
	done
}

@test "kinds of memory, in all layouts" {
	compare mremap_moves kinds
	assert [ "$TAKEN" -ge 80 ]
	assert_equal "$(lines '^plain .* entries same')" 10
	assert_equal "$(lines '^swapped by half .* entries same.* Swap 5120 ')" 5
	assert_equal "$(lines '^thp (aligned|across).* AnonHugePages 10240 ')" 4
	assert_equal "$(lines '^collapse: ok$')" 8
	assert_equal "$(lines '^collapsed aligned.* AnonHugePages 10240 ')" 2
	assert_equal "$(lines '^shared file, collapsed aligned.* ShmemPmdMapped 10240 ')" 2
	assert_equal "$(lines '^locked .* Locked 10240 ')" 10
	assert_equal "$(lines 'contents intact$')" 150
}

@test "odd heads and tails" {
	compare mremap_moves offsets
	all_taken 64
	assert_equal "$(lines 'contents intact$')" 64
}

@test "whole GiB whose head stock rounds down, if it does, are left to it" {
	local rounds=1

	compare mremap_moves head
	! kernel_is 6.1 || rounds=0
	assert_equal "$SEEN" 1
	assert_equal "$TAKEN" $((1 - rounds))
	assert_equal "$(lines 'contents intact$')" 1
	assert_equal "$(stat_of mremap fallback_unbatched)" $rounds
}

@test "DONTUNMAP, FIXED, growing, shrinking and moving a part" {
	compare mremap_moves flags
	all_taken 25
	assert_equal "$(lines 'keeps the old mapping: new intact, old mapped \., .* apart yes$')" 5
	assert_equal "$(lines 'onto a mapping: intact, source unmapped$')" 5
	assert_equal "$(lines 'grows: intact, then \., source unmapped$')" 5
	assert_equal "$(lines 'shrinks: intact, then unmapped, source unmapped$')" 5
	assert_equal "$(lines 'moves its middle: intact intact intact, hole unmapped$')" 5
}

@test "several VMAs at once" {
	compare mremap_moves vmas
	if kernel_is 7; then
		all_taken 10
		assert_equal "$(lines ': ok, intact intact$')" 5
	else
		assert_equal "$(lines ': EFAULT, intact intact$')" 5
	fi
}

@test "pages shared with a child" {
	compare mremap_moves forks
	assert [ "$TAKEN" -ge 15 ]
	assert_equal "$(lines 'child intact$')" 10
	assert_equal "$(lines 'parent intact$')" 10
}

@test "soft-dirty bits" {
	compare mremap_moves softdirty
	assert_equal "$(lines '^anon aligned: before 640, after 640 ')" 1
	assert_equal "$(lines '^anon unaligned: before 640, after 2560 ')" 1
}

@test "device memory and hugetlb pages are left to stock code" {
	sysctl -q vm.nr_hugepages=5
	compare mremap_moves special
	sysctl -q vm.nr_hugepages=0
	assert_equal "$(lines '^hugetlb: intact$')" 1
	assert_equal "$SEEN" 2
	assert_equal "$TAKEN" 0
	assert_equal "$(stat_of mremap fallback_special)" 2
}

@test "userfaultfd: write-protection across moves" {
	compare mremap_uffd wp
	assert_equal "$TAKEN" 0
	assert_equal "$(stat_of mremap fallback_userfaultfd)" "$SEEN"
	assert_equal "$(lines 'events 1 .* protected ([1-9][0-9]*) then \1 ')" 6
	assert_equal "$(lines 'events 0 .* then 0 ')" 6
}

@test "exec with 5 MiB of arguments" {
	compare mremap_mem exec 5
	assert_equal "$(lines '^arguments of 50.. KiB$')" 1
	assert_equal "$SEEN" 0
}

# A client: three threads, each of which appends to a buffer. Every move of theirs
# is seen, and with the path on, taken.
@test "threads double their buffers to 128 MiB by realloc" {
	local when

	echo 1 >"$MREMAP/observe"
	for when in off on; do
		path_reset mremap
		[ $when = off ] || path_enable mremap
		run "$PROG/mremap_mem" realloc 27 3
		remark "$when: $output"
		assert_success
		assert_line intact
		assert [ "$(stat_of mremap calls)" -ge 3 ]
		assert_line "moves $(stat_of mremap calls)"
	done
	assert_equal "$(stat_of mremap taken)" "$(stat_of mremap calls)"
}

# nomem SHIFT: in a cgroup of its own, where nobody may be killed, so that the
# allocation fails
nomem()
{
	local cgroup

	cgroup=$(mktemp -d /sys/fs/cgroup/mmopt.XXXXXX)
	echo 0 >"$cgroup/memory.swap.max"
	run sh -c "echo -1000 >/proc/self/oom_score_adj &&
		echo \$\$ >$cgroup/cgroup.procs &&
		exec '$PROG/mremap_mem' nomem $cgroup $1"
	assert_success
	wait_until 10 rmdir "$cgroup"
}

oom_kills()
{
	dmesg | sed -n "/$KLOG_MARKER/,\$p" | grep -c 'invoked oom-killer'
}

@test "memory too short for page tables: the call fails, nothing is lost" {
	local mode

	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	for mode in 0 1; do
		echo $mode >"$MREMAP/enabled"
		nomem 0
		assert_output "ok, intact, then intact"
		nomem 1
		assert_output "ENOMEM, intact, then intact"
		# stock asks once and charges more than once for it; 21 were seen when
		# the module went on asking
		assert [ "$(oom_kills)" -ge $((mode + 1)) ]
		assert [ "$(oom_kills)" -le $((4 * (mode + 1))) ]
	done
	assert [ "$(stat_of mremap taken)" -gt 0 ]
}
