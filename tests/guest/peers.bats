#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Programs that others have written, and that move memory, do with the path on
# what they do with it off: the kernel's own tests of mremap, and CRIU.

load helpers

MREMAP=$MMOPT/mremap
SELFTESTS=$BATS_TEST_DIRNAME/selftests

setup_file()
{
	load helpers
	swap_on
	thp madvise
}

teardown_file()
{
	load helpers
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
	end_test
}

# How a test of the kernel went, without what differs from run to run: addresses
# and times. Always at the same ones: mremap_test fails where its places happen to
# be taken.
result()
{
	local status=0

	setarch -R "$SELFTESTS/$1" "${@:2}" >"$BATS_TEST_TMPDIR/raw" 2>&1 || status=$?
	sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/ *[0-9]+ns$/ TIME/' "$BATS_TEST_TMPDIR/raw"
	echo "status $status"
}

# The same test with the path off, but observed, and on: it passes, and says the
# same. Leaves the counters as the second run did; how many moves are large enough
# to be counted is the test's own business.
compare()
{
	local seen

	path_reset mremap
	path_disable mremap
	echo 1 >"$MREMAP/observe"
	result "$@" >"$BATS_TEST_TMPDIR/off"
	seen=$(stat_of mremap calls)
	assert_equal "$(stat_of mremap taken)" 0

	path_reset mremap
	path_enable mremap
	result "$@" >"$BATS_TEST_TMPDIR/on"
	remark "$1: $(grep -E '^(not ok|# Totals|status )' "$BATS_TEST_TMPDIR/on" | paste -sd ' ')," \
		"moves $seen, then $(stat_of mremap calls), taken $(stat_of mremap taken)"
	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	grep -qx 'status 0' "$BATS_TEST_TMPDIR/on"
}

@test "the kernel's mremap_test" {
	compare mremap_test -p 1
	assert [ "$(stat_of mremap taken)" -gt 0 ]
}

# They move a few pages, or a folio: that is none of ours. The second one is in
# the kernel's source since 6.14.
@test "the kernel's mremap_dontunmap and uffd-wp-mremap" {
	compare mremap_dontunmap
	kernel_is 6 || compare uffd-wp-mremap
}

# Renamed in 7.x; before 6.2 it takes a file.
@test "the kernel's hugepage-mremap" {
	local name=hugepage-mremap file=()

	kernel_is 6 || name=hugetlb-mremap
	sysctl -q vm.nr_hugepages=5
	if kernel_is 6.1; then
		mkdir "$BATS_TEST_TMPDIR/huge"
		mount -t hugetlbfs huge "$BATS_TEST_TMPDIR/huge"
		file=("$BATS_TEST_TMPDIR/huge/file")
	fi
	compare $name "${file[@]}"
	[ ${#file[@]} = 0 ] || umount "$BATS_TEST_TMPDIR/huge"
	sysctl -q vm.nr_hugepages=0
	assert [ "$(stat_of mremap calls)" -gt 0 ]
	assert_equal "$(stat_of mremap fallback_special)" "$(stat_of mremap calls)"
}

# last_two LINES: when both processes have said that many in all, the child's last
# line and the parent's.
last_two()
{
	wait_until 60 awk -v n="$1" 'END { exit NR < n }' "$BATS_TEST_TMPDIR/out"
	tail -n 2 "$BATS_TEST_TMPDIR/out" | sort
}

# criu_do ACTION OPTION...
criu_do()
{
	criu "$1" -D "$IMAGES" -o "$1.log" "${@:2}" || {
		tail -n 30 "$IMAGES/$1.log"
		return 1
	}
}

# It makes the memory that the two share somewhere else, and moves it into place.
@test "CRIU restores a process and its child" {
	local when parent child before begin

	# it asks what the kernel can do by connecting to itself
	ip link set lo up
	echo 1 >"$MREMAP/observe"
	for when in off on; do
		IMAGES=/var/tmp/criu-$when
		mkdir "$IMAGES"
		setsid "$PROG/hold" 128 </dev/null >"$BATS_TEST_TMPDIR/out" 2>&1 &
		read -r _ child _ parent < <(last_two 2 | paste -sd ' ')
		kill -USR1 "$parent" "$child"
		before=$(last_two 4)
		assert_equal "$(grep -c ' holds [0-9a-f]*$' <<<"$before")" 2
		criu_do dump -t "$parent"

		path_reset mremap
		[ $when = off ] || path_enable mremap
		begin=${EPOCHREALTIME/./}
		criu_do restore -d
		remark "$when: restored in $(((${EPOCHREALTIME/./} - begin) / 1000)) ms," \
			"moves $(stat_of mremap calls), taken $(stat_of mremap taken)"
		assert [ "$(stat_of mremap calls)" -ge 2 ]
		kill -USR1 "$parent" "$child"
		assert_equal "$(last_two 6)" "$before"
		kill "$parent" "$child"
	done
	assert [ "$(stat_of mremap taken)" -ge 2 ]
}
