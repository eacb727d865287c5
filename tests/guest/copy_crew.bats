#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debian13-backports
# guest-cpus: 4
# guest-append: isolcpus=3
#
# Who helps whom with a fork, where there are several who could.

load helpers

COPY=$MMOPT/copy
declare -gA BEFORE

setup()
{
	local name

	begin_test
	require_path copy
	for name in min_bytes threads min_chunk_bytes; do
		BEFORE[$name]=$(<"$COPY/$name")
	done
	echo 8388608 >"$COPY/min_bytes"
	echo 2097152 >"$COPY/min_chunk_bytes"
	path_enable copy
}

teardown()
{
	local name

	for name in "${!BEFORE[@]}"; do
		echo "${BEFORE[$name]}" >"$COPY/$name"
	done
	end_test
}

# fork COMMAND...: forks by it, of a process that is alone; sets HELPED
fork()
{
	path_reset copy
	"$@" "$PROG/fork_race" depth 4 64
	assert_equal "$(stat_of copy taken)" 4
	HELPED=$(stat_of copy helped)
}

helped()
{
	fork "$@"
	[ "$HELPED" -gt 0 ]
}

# not_helped COMMAND...: often enough for help to have come
not_helped()
{
	local i

	for i in {1..5}; do
		fork "$@"
		assert_equal "$HELPED" 0
	done
}

# The nice value and the CPUs of a helper.
manner()
{
	local pid

	pid=$(pgrep -x "mmopt_crew/$1")
	echo "$(ps -o ni= -p "$pid" | tr -d ' ') $(taskset -pc "$pid" | sed 's/.*: //')"
}

@test "a helper is as nice as its caller, and runs where that may" {
	local other

	wait_until 60 helped taskset -c 0-2
	assert_equal "$(manner 0)" "0 0-2"
	other=$(manner 1)
	wait_until 60 helped taskset -c 1,2 nice -n 7
	assert_equal "$(manner 0)" "7 1,2"
	# one other CPU, one helper
	assert_equal "$(manner 1)" "$other"
}

@test "no help for who is scheduled by something else, or isolated, or limited" {
	local group=/sys/fs/cgroup/mmopt-crew

	not_helped chrt -i 0
	not_helped chrt -f 1
	not_helped chrt -r 1
	wait_until 60 helped chrt -b 0
	not_helped taskset -c 2,3
	not_helped taskset -c 1

	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group/inner
	echo "90000 100000" >$group/cpu.max
	not_helped sh -c "echo \$\$ >$group/inner/cgroup.procs && exec \"\$@\"" -
	echo max >$group/cpu.max
	wait_until 60 helped sh -c "echo \$\$ >$group/inner/cgroup.procs && exec \"\$@\"" -
	wait_until 10 rmdir $group/inner
	wait_until 10 rmdir $group
	echo -cpu >/sys/fs/cgroup/cgroup.subtree_control
}

@test "no more helpers than are allowed" {
	echo 2 >"$COPY/threads"
	wait_until 60 helped nice -n 3
	assert_regex "$(manner 0)" "^3 "
	refute_regex "$(manner 1)" "^3 "
	echo 1 >"$COPY/threads"
	not_helped
}

@test "many fork at once, and each of the crew helps one of them at a time" {
	local i pids=()

	for i in {1..6}; do
		"$PROG/fork_race" depth 8 64 >"$BATS_TEST_TMPDIR/$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for i in {1..6}; do
		assert_equal "$(<"$BATS_TEST_TMPDIR/$i")" "8 deep, all good"
	done
	assert_equal "$(stat_of copy taken)" 48
	assert [ "$(stat_of copy helped)" -gt 0 ]
	for i in {1..4}; do
		"$PROG/fork_race" race 30 32 >"$BATS_TEST_TMPDIR/$i" &
		pids[i]=$!
	done
	wait "${pids[@]:1:4}"
	for i in {1..4}; do
		assert_equal "$(<"$BATS_TEST_TMPDIR/$i")" "30 forks, all good"
	done
}
