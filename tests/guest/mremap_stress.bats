#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Attempts to catch a translation that outlives its page, or to lose one, while
# memory moves with the path on. MMOPT_SECONDS is for how long each of them runs.

load helpers

SECONDS_EACH=${MMOPT_SECONDS:-2}

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
	path_enable mremap
}

teardown()
{
	echo 67108864 >"$MMOPT/mremap/batch_bytes"
	end_test
}

# race ADVERSARY KIND LAYOUT MIB
race()
{
	run "$PROG/mremap_race" "$@" "$SECONDS_EACH"
	remark "$* s: $output"
	assert_success
	assert_line intact
}

# Moves were taken, and none lost its way between on and off.
took()
{
	assert [ "$(stat_of mremap taken)" -gt 0 ]
	assert_equal "$(stat_of mremap calls)" \
		$(($(stat_of mremap taken) + $(stat_of mremap stock)))
}

@test "writers at both places" {
	race none anon aligned 8
	race none anon unaligned 8
	race none shared congruent 8
	took
	assert_equal "$(stat_of mremap stock)" 0
}

@test "writers at both places, and a batch for each page table" {
	echo 2097152 >"$MMOPT/mremap/batch_bytes"
	race none anon aligned 8
	race none anon unaligned 8
	took
	assert [ "$(stat_of mremap flushes)" -ge $((4 * $(stat_of mremap taken))) ]
}

@test "writers at both places, huge pages" {
	race none thp aligned 8
	race none thp unaligned 8
	took
}

@test "writers, and another process has the pages swapped out" {
	race reclaim anon aligned 4
	race reclaim anon unaligned 4
	race reclaim thp aligned 4
	race reclaim thp unaligned 4
	race reclaim shared aligned 4
	took
}

@test "writers, and the kernel migrates pages" {
	local before after

	before=$(awk '/^pgmigrate_success/ { print $2 }' /proc/vmstat)
	race compact anon aligned 16
	race compact anon unaligned 16
	took
	after=$(awk '/^pgmigrate_success/ { print $2 }' /proc/vmstat)
	remark "pages migrated: $((after - before))"
	grep -q '^compact_isolated [1-9]' /proc/vmstat
}

@test "writers, and the file is truncated" {
	race truncate shared aligned 8
	race truncate shared unaligned 8
	took
}

@test "page tables of a file are retracted under a move" {
	race retract shared odd 8
	race retract shared aligned 8
	took
}

@test "the path is switched on and off under moves" {
	local pid end

	"$PROG/mremap_race" none anon aligned 8 "$SECONDS_EACH" >"$BATS_TEST_TMPDIR/out" &
	pid=$!
	end=$((SECONDS + SECONDS_EACH - 1))
	while ((SECONDS < end)); do
		path_disable mremap
		path_enable mremap
	done
	wait $pid
	grep -qx intact "$BATS_TEST_TMPDIR/out"
	took
}

@test "huge pages move with their spare page tables, and the process ends" {
	local how

	for how in whole swapped collapsed; do
		run "$PROG/mremap_mem" deposit $how 200
		assert_success
		assert_output intact
	done
}

@test "a collector moves pages away from mutators, with userfaultfd" {
	run "$PROG/mremap_uffd" missing "$SECONDS_EACH"
	remark "$output"
	assert_success
	assert_line intact
	run "$PROG/mremap_uffd" missing "$SECONDS_EACH" event
	remark "$output"
	assert_success
	assert_line intact
	assert_equal "$(stat_of mremap taken)" 0
	assert_equal "$(stat_of mremap fallback_userfaultfd)" "$(stat_of mremap calls)"
}

@test "UFFDIO_MOVE between the same page tables" {
	! kernel_is 6.1 || skip "UFFDIO_MOVE came with Linux 6.8"
	run "$PROG/mremap_uffd" move "$SECONDS_EACH"
	remark "$output"
	assert_success
	assert_line intact
	took
}
