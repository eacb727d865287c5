#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, PAGEMAP_SCAN gives the answers that it gives with the path off,
# and holds up nobody meanwhile.

load helpers

PAGEMAP=$MMOPT/pagemap
DEFAULT=8388608
# From which size on a VMA is walked under its own lock: none is, some are, all are.
NONE=1073741824 SOME=131072 ALL=4096

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
	require_path pagemap
	sysctl -q vm.unprivileged_userfaultfd=1
	large $DEFAULT
}

teardown()
{
	large $DEFAULT
	sysctl -q vm.nr_hugepages=0
	[ ! -d /sys/module/mmopt_test_notify ] || rmmod mmopt_test_notify
	end_test
}

large()
{
	echo "$1" >"$PAGEMAP/large_bytes"
}

# Every walk was taken or left to stock code, none twice.
counted()
{
	assert_equal "$(stat_of pagemap calls)" \
		$(($(stat_of pagemap taken) + $(stat_of pagemap stock)))
}

# compare SCENARIO [COMMAND]: its lines with the path off, but observed, and on; COMMAND
# looks at the counters.
compare()
{
	local seen size

	echo 1 >"$PAGEMAP/observe"
	"$PROG/pagemap_same" "$1" >"$BATS_TEST_TMPDIR/off"
	counted
	seen=$(stat_of pagemap calls)
	assert [ "$seen" -gt 0 ]
	assert_equal "$(stat_of pagemap taken)" 0

	path_enable pagemap
	for size in $NONE $ALL; do
		path_reset pagemap
		large "$size"
		"$PROG/pagemap_same" "$1" >"$BATS_TEST_TMPDIR/on"
		assert_equal "$(path_state pagemap)" on
		counted
		remark "$1: walks $seen, taken $(stat_of pagemap taken), VMAs" \
			"$(stat_of pagemap vmas), holds $(stat_of pagemap batches)"
		diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
		assert_equal "$(stat_of pagemap calls)" "$seen"
		"${@:2}"
	done
}

# No walk was left to stock code, and the locks are those for that size.
all_taken()
{
	assert_equal "$(stat_of pagemap taken)" "$(stat_of pagemap calls)"
	assert [ "$(stat_of pagemap pages)" -gt 0 ]
	if [ "$size" = $ALL ]; then
		assert [ "$(stat_of pagemap vmas)" -gt 0 ]
		assert_equal "$(stat_of pagemap batches)" 0
	else
		assert_equal "$(stat_of pagemap vmas)" 0
		assert [ "$(stat_of pagemap batches)" -gt 0 ]
	fi
}

compare_taken()
{
	compare "$1" all_taken
}

# The result has a line that says so, or the comparison was of nothing.
found()
{
	grep -qx "$1" "$BATS_TEST_TMPDIR/on" || {
		cat "$BATS_TEST_TMPDIR/on"
		return 1
	}
}

@test "what stock refuses, and with which error" {
	compare_taken errors
	found 'unknown flag: EINVAL.*'
	found 'protect what cannot be: EPERM.*'
}

@test "what is written, zero, of a file, swapped; CRIU's choice" {
	compare_taken categories
	found 'CRIU, private file: 1 ranges, 1 pages.*'
}

@test "short vectors, and scans that are resumed" {
	compare_taken resume
	found 'vector of 32: 200 pages in 7 calls'
}

@test "answers of more than one buffer end where stock says" {
	compare_taken ends
	found '700 wanted, 700 found, .*'
}

@test "written, protected, written again; holes and huge pages" {
	compare_taken protect
	found 'dense, three written, two read: 2 ranges, 3 pages.*'
	found 'dense, nothing written: 0 ranges, 0 pages.*'
	assert [ "$(stat_of pagemap flushes)" -gt 0 ]
	assert [ "$(stat_of pagemap deferred)" -gt "$(stat_of pagemap flushes)" ]
}

@test "VMAs of many kinds, and gaps, in one scan" {
	compare_taken mixed
	found 'checked: EPERM.*'
}

@test "hugetlbfs goes by mmap_lock" {
	sysctl -q vm.nr_hugepages=4
	compare hugetlb
	assert_equal "$(stat_of pagemap taken)" 0
	assert [ "$(stat_of pagemap fallback_hugetlb)" -ge "$(stat_of pagemap calls)" ]
}

@test "another process, and one that is gone" {
	compare remote
	found 'no child: ESRCH, no end'
}

# race NAME ROUNDS SIZE...
race()
{
	local size

	path_enable pagemap
	for size in "${@:3}"; do
		large "$size"
		path_reset pagemap
		"$PROG/pagemap_race" "$1" "$2" >"$BATS_TEST_TMPDIR/out"
		remark "$(cat "$BATS_TEST_TMPDIR/out"); taken $(stat_of pagemap taken) of $(stat_of pagemap calls), VMAs" \
			"$(stat_of pagemap vmas), busy ones $(stat_of pagemap fallback_vma_lock)," \
			"holds $(stat_of pagemap batches)"
		counted
		assert [ "$(stat_of pagemap taken)" -gt 0 ]
		"$1_right"
	done
}

writes_right()
{
	grep -q ', lost 0, invented 0$' "$BATS_TEST_TMPDIR/out"
}

@test "no write is lost while mappings come and go" {
	race writes 350 $NONE $SOME $ALL
}

unregister_right()
{
	grep -q ', left protected 0, ' "$BATS_TEST_TMPDIR/out"
}

@test "what leaves userfaultfd leaves no protection behind" {
	race unregister 250 $NONE $ALL
}

notify_right()
{
	local turns

	turns=$(cat /sys/module/mmopt_test_notify/parameters/turns)
	remark "$turns"
	grep -qx 'told [1-9][0-9]*, unbalanced 0' <<<"$turns"
}

@test "mmu notifiers are told of starts and ends alike" {
	grep -q ' mmu_notifier_register$' /proc/kallsyms || skip "this kernel has no mmu notifiers"
	insmod "$BATS_TEST_DIRNAME/mod-notify/mmopt_test_notify.ko"
	race notify 150 $NONE $ALL
	rmmod mmopt_test_notify
}

@test "the path goes on and off under scans" {
	local i

	large $SOME
	echo 1 >"$PAGEMAP/observe"
	"$PROG/pagemap_race" writes 1000 >"$BATS_TEST_TMPDIR/out" &
	for ((i = 0; i < 50; i++)); do
		path_enable pagemap
		echo $((i % 2)) >"$PAGEMAP/observe"
		path_disable pagemap
	done
	wait $!
	grep -q ', lost 0, invented 0$' "$BATS_TEST_TMPDIR/out"
	counted
}
