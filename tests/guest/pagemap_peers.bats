#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Programs that others have written, and that scan, do with the path on what they do
# with it off: the kernel's own test of PAGEMAP_SCAN, and CRIU.

load helpers

PAGEMAP=$MMOPT/pagemap
SELFTESTS=$BATS_TEST_DIRNAME/selftests

setup_file()
{
	load helpers
	thp madvise
}

teardown_file()
{
	load helpers
	thp always
}

setup()
{
	begin_test
	require_path pagemap
	PIDS=()
}

teardown()
{
	[ ${#PIDS[@]} = 0 ] || kill -KILL "${PIDS[@]}" 2>/dev/null || :
	sysctl -q vm.nr_hugepages=0
	end_test
}

# What the kernel's test says, without what differs from run to run.
result()
{
	local status=0

	"$SELFTESTS/pagemap_ioctl" >"$BATS_TEST_TMPDIR/raw" 2>&1 || status=$?
	sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/(Extra pages) .*/\1 SOME/' "$BATS_TEST_TMPDIR/raw"
	echo "status $status"
}

@test "the kernel's pagemap_ioctl" {
	sysctl -q vm.nr_hugepages=16
	echo 1 >"$PAGEMAP/observe"
	result >"$BATS_TEST_TMPDIR/off"
	assert_equal "$(stat_of pagemap taken)" 0
	assert [ "$(stat_of pagemap calls)" -gt 0 ]

	path_reset pagemap
	path_enable pagemap
	result >"$BATS_TEST_TMPDIR/on"
	remark "$(grep -E '^(not ok|# Totals|status )' "$BATS_TEST_TMPDIR/on" | paste -sd ' ')," \
		"walks $(stat_of pagemap calls), taken $(stat_of pagemap taken)"
	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	run cat "$BATS_TEST_TMPDIR/on"
	assert_line 'status 0'
	assert [ "$(stat_of pagemap taken)" -gt 0 ]
}

# criu_do ACTION OPTION...
criu_do()
{
	criu "$1" -o "$1.log" "${@:2}" || {
		tail -n 30 "$IMAGES"/*/"$1.log"
		return 1
	}
}

# said LINES: when both processes have said that many in all, the last of each.
said()
{
	wait_until 60 awk -v n="$1" 'END { exit NR < n }' "$BATS_TEST_TMPDIR/out"
	tail -n 2 "$BATS_TEST_TMPDIR/out" | sort
}

# It saves all memory while the process goes on, and then what was written since:
# 2048 pages of each of the two, and what they need to run.
@test "CRIU saves a running process in two steps, and restores it" {
	local when parent child before pages

	ip link set lo up
	for when in off on; do
		IMAGES=/var/tmp/criu-scan-$when
		mkdir -p "$IMAGES/first" "$IMAGES/second"
		setsid "$PROG/hold" 128 </dev/null >"$BATS_TEST_TMPDIR/out" 2>&1 &
		read -r _ child _ parent < <(said 2 | paste -sd ' ')
		PIDS=("$parent" "$child")
		path_reset pagemap
		echo 1 >"$PAGEMAP/observe"
		[ $when = off ] || path_enable pagemap

		criu_do pre-dump -D "$IMAGES/first" -t "$parent" --track-mem
		pages=$(($(cat "$IMAGES"/first/pages-*.img | wc -c) / 4096))
		assert [ "$pages" -gt 32768 ]
		kill -USR2 "$parent" "$child"
		said 4
		kill -USR1 "$parent" "$child"
		before=$(said 6)
		assert_equal "$(grep -c ' holds [0-9a-f]*$' <<<"$before")" 2
		criu_do dump -D "$IMAGES/second" --prev-images-dir ../first -t "$parent" --track-mem
		pages=$(($(cat "$IMAGES"/second/pages-*.img | wc -c) / 4096))
		remark "$when: $pages pages in the second step, walks $(stat_of pagemap calls)," \
			"taken $(stat_of pagemap taken)"
		assert [ "$pages" -ge 4096 ]
		assert [ "$pages" -lt 5000 ]
		assert [ "$(stat_of pagemap calls)" -gt 0 ]

		criu_do restore -D "$IMAGES/second" -d
		kill -USR1 "$parent" "$child"
		assert_equal "$(said 8)" "$before"
		kill "$parent" "$child"
		PIDS=()
	done
	assert_equal "$(stat_of pagemap taken)" "$(stat_of pagemap calls)"
}
