#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debug
#
# Allocations that fail, one after the other. Distribution kernels cannot do that.

load helpers

FAULTS=/sys/kernel/debug
declare -gA BEFORE

setup()
{
	local what

	begin_test
	for what in failslab fail_page_alloc; do
		echo N >$FAULTS/$what/ignore-gfp-wait
		echo 0 >$FAULTS/$what/verbose
		echo -1 >$FAULTS/$what/times
	done
	echo N >$FAULTS/fail_page_alloc/ignore-gfp-highmem
	echo 0 >$FAULTS/fail_page_alloc/min-order
	for what in mremap/batch_bytes copy/min_chunk_bytes; do
		BEFORE[$what]=$(<"$MMOPT/$what")
	done
	# so that a move fails after some batches and goes back
	echo 4194304 >"$MMOPT/mremap/batch_bytes"
	# help for every page table
	echo 2097152 >"$MMOPT/copy/min_chunk_bytes"
	thp madvise
}

teardown()
{
	local what

	for what in "${!BEFORE[@]}"; do
		echo "${BEFORE[$what]}" >"$MMOPT/$what"
	done
	thp always
	end_test
}

@test "wherever a move runs out of memory, nothing is lost" {
	local kind layout

	require_path mremap
	path_enable mremap
	for kind in anon thp shared private; do
		for layout in aligned congruent unaligned; do
			run "$PROG/mremap_fail" $kind $layout
			remark "$output"
			assert_success
			assert_line intact
			assert_line --regexp 'refused [1-9]'
		done
	done
	assert [ "$(stat_of mremap taken)" -gt 0 ]
	assert_equal "$(stat_of mremap calls)" \
		$(($(stat_of mremap taken) + $(stat_of mremap stock)))
}

# What nothing points to any more, of what is older than a few seconds.
scan_leaks()
{
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	run cat /sys/kernel/debug/kmemleak
	assert_success
}

# Nobody is left in the cgroup: what it still pays for are no pages of theirs (16 MiB),
# on which a reference would be too many.
nothing_left()
{
	! grep -E '^(anon|pagetables|kernel_stack) [^0]' "$1/memory.stat" &&
		[ "$(<"$1/memory.current")" -lt 4194304 ]
}

@test "wherever a fork runs out of memory, nothing is lost, and nothing is left behind" {
	local group=/sys/fs/cgroup/mmopt-faults

	require_path copy
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	scan_leaks
	echo clear >/sys/kernel/debug/kmemleak
	path_enable copy
	# Without rseq, by which the kernel writes to the memory of threads at any time, and
	# kills who has no memory for that.
	run sh -c "echo \$\$ >$group/cgroup.procs &&
		GLIBC_TUNABLES=glibc.pthread.rseq=0 exec '$PROG/fork_race' fail 2000 16"
	remark "$output"
	assert_success
	assert_output --regexp '^refused [0-9]{3,}, rounds [1-9][0-9]*, all good'
	assert [ "$(stat_of copy taken)" -ge 100 ]
	assert [ "$(stat_of copy helped)" -ge 100 ]
	wait_until 30 nothing_left $group
	rmdir $group
	path_disable copy
	scan_leaks
	assert_output ""
	echo -memory >/sys/fs/cgroup/cgroup.subtree_control
}
