#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debian13-backports
#
# The kernel's own test of copying on write, with pins of all kinds, says with the path
# on what it says with it off.

load helpers

COPY=$MMOPT/copy

setup()
{
	begin_test
	require_path copy
	BEFORE=$(<"$COPY/min_bytes")
	echo 4096 >"$COPY/min_bytes"
	sysctl -q vm.nr_hugepages=8
	swap_on
}

teardown()
{
	swap_off
	sysctl -q vm.nr_hugepages=0
	echo "$BEFORE" >"$COPY/min_bytes"
	end_test
}

result()
{
	local status=0

	"$BATS_TEST_DIRNAME/selftests/cow" >"$BATS_TEST_TMPDIR/raw" 2>&1 || status=$?
	sed -E 's/0x[0-9a-f]+/ADDRESS/g' "$BATS_TEST_TMPDIR/raw"
	echo "status $status"
}

# Not in the source of 6.1.
@test "the kernel's cow" {
	echo 1 >"$COPY/observe"
	result >"$BATS_TEST_TMPDIR/off"
	assert_equal "$(stat_of copy taken)" 0
	assert [ "$(stat_of copy calls)" -gt 0 ]

	path_reset copy
	path_enable copy
	result >"$BATS_TEST_TMPDIR/on"
	remark "$(grep -E '^(not ok|# Totals|status )' "$BATS_TEST_TMPDIR/on" | paste -sd ' ')," \
		"mappings $(stat_of copy calls), taken $(stat_of copy taken)"
	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	assert [ "$(stat_of copy taken)" -gt 100 ]
}
