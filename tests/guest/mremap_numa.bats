#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-append: numa=fake=2
#
# Pages change their node, and with it their place, while the memory that they
# are in moves with the path on.

load helpers

SECONDS_EACH=${MMOPT_SECONDS:-2}

setup()
{
	begin_test
	require_path mremap
	thp madvise
	path_enable mremap
}

teardown()
{
	thp always
	end_test
}

migrated()
{
	awk '/^pgmigrate_success/ { print $2 }' /proc/vmstat
}

# race KIND LAYOUT
race()
{
	local before after

	before=$(migrated)
	run "$PROG/mremap_race" migrate "$@" 8 "$SECONDS_EACH"
	after=$(migrated)
	remark "$* migrated $((after - before)): $output"
	assert_success
	assert_line intact
	assert [ "$after" -gt "$before" ]
	assert [ "$(stat_of mremap taken)" -gt 0 ]
}

@test "move_pages and writers, small pages" {
	race anon aligned
	race anon unaligned
}

@test "move_pages and writers, huge pages" {
	race thp aligned
	race thp unaligned
}

@test "move_pages and writers, a shared file" {
	race shared aligned
	race shared unaligned
}
