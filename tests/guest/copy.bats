#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, parent and child have after a fork what they have with the
# path off, page by page and to the counter.

load helpers

COPY=$MMOPT/copy
declare -gA BEFORE

setup_file()
{
	load helpers
	swap_on
	thp madvise
	# khugepaged and ksmd would change what is compared
	KHUGEPAGED=/sys/kernel/mm/transparent_hugepage/khugepaged
	cat $KHUGEPAGED/scan_sleep_millisecs >"$BATS_FILE_TMPDIR/scan_sleep_millisecs"
	echo 4000000000 >$KHUGEPAGED/scan_sleep_millisecs
	echo 10000 >/sys/kernel/mm/ksm/pages_to_scan
}

teardown_file()
{
	load helpers
	cat "$BATS_FILE_TMPDIR/scan_sleep_millisecs" \
		>/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs
	echo 100 >/sys/kernel/mm/ksm/pages_to_scan
	swap_off
	thp always
}

setup()
{
	begin_test
	require_path copy
	local name

	for name in min_bytes threads min_chunk_bytes; do
		BEFORE[$name]=$(<"$COPY/$name")
	done
	# the shells that run this fork too; none of them has so large a mapping
	echo 8388608 >"$COPY/min_bytes"
}

teardown()
{
	local name

	for name in "${!BEFORE[@]}"; do
		echo "${BEFORE[$name]}" >"$COPY/$name"
	done
	end_test
}

alone()
{
	echo 1 >"$COPY/threads"
}

# Help for every page table.
helped()
{
	echo 8 >"$COPY/threads"
	echo 2097152 >"$COPY/min_chunk_bytes"
}

# As ever at the same addresses: page tables are among what is counted.
fork()
{
	setarch -R "$PROG/fork" "$@"
}

# The lines of the program with the path off, but observed, and on, alone and
# with helpers.
compare()
{
	local how

	path_disable copy
	path_reset copy
	echo 1 >"$COPY/observe"
	fork "$@" >"$BATS_TEST_TMPDIR/off"
	assert_equal "$(stat_of copy taken)" 0
	SEEN=$(stat_of copy calls)

	path_enable copy
	for how in alone helped; do
		$how
		path_reset copy
		fork "$@" >"$BATS_TEST_TMPDIR/on"
		assert_equal "$(stat_of copy calls)" "$SEEN"
		TAKEN=$(stat_of copy taken)
		assert_equal "$(stat_of copy stock)" $((SEEN - TAKEN))
		diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
		run grep -c DAMAGED "$BATS_TEST_TMPDIR/on"
		assert_output 0
	done
}

# all_taken LEFT: with that many pages left to stock code on the way
all_taken()
{
	assert [ "$SEEN" -ge 1 ]
	assert_equal "$TAKEN" "$SEEN"
	assert_equal "$(stat_of copy left)" "$1"
	assert_equal "$(($(stat_of copy pages) + $1))" $((SEEN * 3072))
}

@test "written, never touched, and read" {
	compare anon
	all_taken 0
	compare holes
	assert [ "$TAKEN" -ge 1 ]
	assert_equal "$(stat_of copy left)" 0
}

@test "private mappings of a file" {
	compare shmem
	all_taken 0
	compare file
	assert [ "$TAKEN" -ge 1 ]
}

@test "swapped pages, huge pages, guard pages: they are left to stock, with what is near them" {
	local swapped

	compare swap
	assert [ "$TAKEN" -ge 1 ]
	swapped=$(($(sed -n 's/^swap before.* Swap \([0-9]*\).*/\1/p' "$BATS_TEST_TMPDIR/on") / 4))
	assert [ "$swapped" -ge 384 ]
	assert [ "$(stat_of copy left)" -ge "$swapped" ]
	assert [ "$(stat_of copy left)" -le $((3 * swapped)) ]
	compare thp
	assert [ "$TAKEN" -ge 1 ]
	assert [ "$(stat_of copy left)" -ge 1024 ]
	kernel_is 6 || compare guard
}

@test "pages that KSM has merged" {
	compare ksm
	all_taken 0
}

@test "pinned pages stay with the parent" {
	compare pinned
	assert [ "$TAKEN" -ge 1 ]
	assert [ "$(stat_of copy left)" -ge 18 ]
	assert [ "$(stat_of copy left)" -lt 512 ]
	# of 18 pinned pages, none moves
	assert grep -q '^pinned parent: 3054 moved' "$BATS_TEST_TMPDIR/on"
}

@test "userfaultfd's marks are the parent's" {
	compare uffd
	assert_equal "$TAKEN" 0
	assert_equal "$(stat_of copy fallback_userfaultfd)" "$SEEN"
}

@test "locked, forbidden, wiped memory, and soft-dirty bits" {
	compare locked none cleared
	assert [ "$TAKEN" -ge 3 ]
	compare wiped
	assert_equal "$SEEN" 0
}

@test "small mappings pass uncounted, whatever is small" {
	path_enable copy
	fork anon >/dev/null
	assert_equal "$(stat_of copy calls)" 1
	path_reset copy
	echo $((12 * 1048576 + 4096)) >"$COPY/min_bytes"
	fork anon >/dev/null
	assert_equal "$(stat_of copy calls)" 0
	echo 4096 >"$COPY/min_bytes"
	fork anon >"$BATS_TEST_TMPDIR/on"
	assert [ "$(stat_of copy calls)" -gt 3 ]
	assert_equal "$(stat_of copy stock)" 0
	run grep -c DAMAGED "$BATS_TEST_TMPDIR/on"
	assert_output 0
}

# race FORKS MIB
race()
{
	run "$PROG/fork_race" race "$@"
	assert_success
	assert_output "$1 forks, all good"
	assert_equal "$(stat_of copy stock)" 0
	assert [ "$(stat_of copy taken)" -ge "$1" ]
}

@test "threads that write meanwhile: the child's memory stands still, the parent's does not go back" {
	path_enable copy
	alone
	race 60 32
	helped
	path_reset copy
	race 200 32
	assert [ "$(stat_of copy helped)" -gt 0 ]
}

# On 6.1 reads around the page cache do not pin, and may be lost in a fork.
@test "what the disk writes into pinned pages meanwhile arrives" {
	path_enable copy
	kernel_is 6.1 && skip "6.1 does not pin for O_DIRECT"
	helped
	run "$PROG/fork_race" direct 300 32
	assert_success
	assert_output "many reads, all good"
	assert [ "$(stat_of copy taken)" -ge 300 ]
	assert [ "$(stat_of copy left)" -gt 0 ]
}

@test "while memory is compacted, and the numbers change" {
	local pid i=0

	path_enable copy
	"$PROG/fork_race" race 100 32 >"$BATS_TEST_TMPDIR/race" &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		i=$((i + 1))
		echo $((i % 3 + 1)) >"$COPY/threads"
		echo $((2097152 * (i % 5 + 1))) >"$COPY/min_chunk_bytes"
		echo 1 >/proc/sys/vm/compact_memory
	done
	wait $pid
	assert_equal "$(<"$BATS_TEST_TMPDIR/race")" "100 forks, all good"
	assert [ "$(stat_of copy taken)" -ge 100 ]
}

# Help came, in forks of a process that is alone on the machine.
help_comes()
{
	"$PROG/fork_race" depth 1 64 >/dev/null
	[ "$(stat_of copy helped)" -gt 0 ]
}

@test "helpers take part where there are CPUs for them" {
	path_enable copy
	alone
	"$PROG/fork_race" depth 4 64
	assert_equal "$(stat_of copy helped)" 0
	helped
	wait_until 60 help_comes
}

@test "children of children while pages are shared, wherever the memory is" {
	local what

	path_enable copy
	helped
	sysctl -q vm.mmap_min_addr=0
	for what in depth low; do
		path_reset copy
		run "$PROG/fork_race" $what 8 64
		assert_success
		assert_output "8 deep, all good"
		assert_equal "$(stat_of copy taken)" 8
		assert [ "$(stat_of copy helped)" -gt 0 ]
	done
	sysctl -q vm.mmap_min_addr=65536
}

@test "switched on and off all the time" {
	local pid

	helped
	"$PROG/fork_race" race 150 16 >"$BATS_TEST_TMPDIR/race" &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		path_enable copy
		path_disable copy
	done
	wait $pid
	assert_equal "$(<"$BATS_TEST_TMPDIR/race")" "150 forks, all good"
	assert [ "$(stat_of copy taken)" -gt 0 ]
	run pgrep -c mmopt_crew
	assert_output 0
}

@test "who may run on one CPU, or has little CPU time, gets no help" {
	local group=/sys/fs/cgroup/mmopt-copy

	path_enable copy
	helped
	taskset -c 0 "$PROG/fork_race" race 20 32
	assert [ "$(stat_of copy taken)" -ge 20 ]
	assert_equal "$(stat_of copy helped)" 0

	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	echo "90000 100000" >$group/cpu.max
	path_reset copy
	sh -c "echo \$\$ >$group/cgroup.procs && exec '$PROG/fork_race' race 20 32"
	# 6.1 tells no difference between a limit and a cgroup that had one to its end
	echo max >$group/cpu.max
	wait_until 10 rmdir $group
	echo -cpu >/sys/fs/cgroup/cgroup.subtree_control
	assert [ "$(stat_of copy taken)" -ge 20 ]
	assert_equal "$(stat_of copy helped)" 0
	wait_until 60 help_comes
}

@test "page tables are charged to the cgroup of who forks" {
	local group=/sys/fs/cgroup/mmopt-copy how got

	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	for how in off alone helped; do
		[ $how = off ] || { path_enable copy && $how; }
		got[${#got[@]}]=$(sh -c "echo \$\$ >$group/cgroup.procs &&
			exec setarch -R '$PROG/fork_race' pagetables $group 64")
	done
	assert_equal "${#got[@]}" 3
	assert_equal "${got[1]}" "${got[0]}"
	assert_equal "${got[2]}" "${got[0]}"
	assert [ "${got[0]}" -ge 131072 ]
	wait_until 10 rmdir $group
	echo -memory >/sys/fs/cgroup/cgroup.subtree_control
}

# too_many CHILDREN: they do not fit into 10 MiB more than their parent has, if their page
# tables count; what else each has in the kernel is not much
too_many()
{
	local group

	group=$(mktemp -d /sys/fs/cgroup/mmopt.XXXXXX)
	echo 0 >"$group/memory.swap.max"
	echo $((74 << 20)) >"$group/memory.max"
	echo 1 >"$group/memory.oom.group"
	run sh -c "echo \$\$ >$group/cgroup.procs && exec '$PROG/fork_race' children $1 64"
	KILLS=$(sed -n 's/^oom_kill //p' "$group/memory.events")
	wait_until 10 rmdir "$group"
}

@test "the memory limit of a cgroup holds for page tables" {
	local how

	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	for how in off alone helped; do
		[ $how = off ] || { path_enable copy && $how; }
		too_many 15
		assert_output "15 all good"
		assert_equal "$KILLS" 0
		too_many 150
		assert_equal "$status" 137
		assert [ "$KILLS" -gt 0 ]
	done
	echo -memory >/sys/fs/cgroup/cgroup.subtree_control
}

@test "fork and exec of all kinds, with every mapping taken" {
	path_enable copy
	helped
	echo 4096 >"$COPY/min_bytes"
	stress-ng --fork 1 --forkheavy 1 --forkheavy-procs 32 --vforkmany 1 --exec 1 \
		--timeout 6 --verify --quiet
	assert [ "$(stat_of copy taken)" -ge 500 ]
	assert_equal "$(stat_of copy stock)" 0
}
