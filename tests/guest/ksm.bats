#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# With the path on, ksmd finds and merges what it does with the path off, and
# takes no mmap_lock for it.

load helpers

KSM=$MMOPT/ksm
SYSFS=/sys/kernel/mm/ksm
# the advisor first: with it on, pages_to_scan cannot be set
SAVED="advisor_mode sleep_millisecs pages_to_scan smart_scan use_zero_pages
	max_page_sharing merge_across_nodes"

setup_file()
{
	local name

	load helpers
	swap_on
	thp madvise
	for name in $SAVED; do
		# 6.1 has not all of them
		[ ! -e "$SYSFS/$name" ] ||
			sed 's/.*\[\(.*\)\].*/\1/' "$SYSFS/$name" >"$BATS_FILE_TMPDIR/$name"
	done
	# khugepaged would change what is compared
	KHUGEPAGED=/sys/kernel/mm/transparent_hugepage/khugepaged
	cat $KHUGEPAGED/max_ptes_none >"$BATS_FILE_TMPDIR/max_ptes_none"
	echo 0 >$KHUGEPAGED/max_ptes_none
}

# As the kernel starts with, nothing merged.
ksm_as_it_was()
{
	local name

	echo 2 >$SYSFS/run
	for name in $SAVED; do
		[ ! -e "$SYSFS/$name" ] || cat "$BATS_FILE_TMPDIR/$name" >"$SYSFS/$name"
	done
	echo 0 >$SYSFS/run
}

teardown_file()
{
	load helpers
	cat "$BATS_FILE_TMPDIR/max_ptes_none" \
		>/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none
	ksm_as_it_was
	swap_off
	thp always
}

setup()
{
	begin_test
	require_path ksm
	ksm_as_it_was
	echo none >$SYSFS/advisor_mode
	echo 0 >$SYSFS/smart_scan
	KILL=()
}

teardown()
{
	[ ${#KILL[@]} = 0 ] || kill -KILL "${KILL[@]}" 2>/dev/null || :
	wait
	echo >"$TRACING/kprobe_events"
	end_test
}

# ksmd scans on its own.
ksmd_runs()
{
	echo 2000 >$SYSFS/pages_to_scan
	echo 1 >$SYSFS/sleep_millisecs
	echo 1 >$SYSFS/run
}

# So that no count is in flight.
ksmd_stops()
{
	echo 0 >$SYSFS/run
}

# The lines of a scenario with the path off, but observed, and on.
compare()
{
	echo 1 >"$KSM/observe"
	"$PROG/ksm_same" "$1" >"$BATS_TEST_TMPDIR/off"
	ksm_as_it_was
	assert_equal "$(stat_of ksm taken)" 0
	assert_equal "$(stat_of ksm stock)" "$(stat_of ksm calls)"
	SEEN=$(stat_of ksm scanned)
	echo none >$SYSFS/advisor_mode
	echo 0 >$SYSFS/smart_scan

	path_reset ksm
	path_enable ksm
	"$PROG/ksm_same" "$1" >"$BATS_TEST_TMPDIR/on"
	ksmd_stops
	assert_equal "$(path_state ksm)" on
	remark "$1: off $SEEN pages scanned, on $(stat_of ksm scanned), $(stat_of ksm mmap_locks) mmap_locks"
	assert_equal "$(stat_of ksm calls)" $(($(stat_of ksm taken) + $(stat_of ksm stock)))
	((SEEN > 0 && $(stat_of ksm pages) > 0))
	((100 * $(stat_of ksm mmap_locks) <= $(stat_of ksm scanned)))

	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	run grep DAMAGED "$BATS_TEST_TMPDIR/on"
	assert_failure
}

# A test of the kernel's own, without the times that it tells. One calls itself. What
# ksm_tests finds after so many scans depends, in stock too, on where ksmd was at the
# beginning: one that fails is tried again.
selftest()
{
	local status try

	for try in {1..10}; do
		status=0
		(cd "$BATS_TEST_DIRNAME/selftests" && exec "./$1" "${@:2}") \
			>"$BATS_TEST_TMPDIR/raw" 2>&1 || status=$?
		[[ $1 = ksm_tests && $status -eq 1 ]] || break
		remark "$* failed, try $try"
	done
	sed -E 's/^# (Total time|Average speed): .*/# \1/' "$BATS_TEST_TMPDIR/raw"
	echo "$* status $status"
}

# The same tests with the path off, but observed, and on.
compare_selftests()
{
	local when args

	for when in off on; do
		ksm_as_it_was
		echo 2000 >$SYSFS/pages_to_scan
		echo 1 >$SYSFS/sleep_millisecs
		path_reset ksm
		if [ $when = on ]; then
			path_enable ksm
		else
			echo 1 >"$KSM/observe"
		fi
		for args; do
			# shellcheck disable=SC2086 # words
			selftest $args
		done >"$BATS_TEST_TMPDIR/$when"
		remark "$when: $(grep -c '^ok' "$BATS_TEST_TMPDIR/$when") ok," \
			"taken $(stat_of ksm taken), stock $(stat_of ksm stock)"
	done
	diff -u "$BATS_TEST_TMPDIR/off" "$BATS_TEST_TMPDIR/on"
	assert [ "$(stat_of ksm taken)" -gt 0 ]
	# not all of them pass on every stock kernel
	assert [ "$(grep -c '^ok' "$BATS_TEST_TMPDIR/on")" -gt 5 ]
}

# The result has a line that says so, or the comparison was of nothing.
found()
{
	grep -qx "$1" "$BATS_TEST_TMPDIR/on" || {
		cat "$BATS_TEST_TMPDIR/on"
		return 1
	}
}

@test "the same pages are merged, and merged again when they were written" {
	compare basic
	found '	pages_shared 258'
	found '	pages_sharing 766'
	found '	pages_unshared 512'
}

@test "the same memory may be merged" {
	echo 4 >/proc/sys/vm/nr_hugepages
	compare eligible
	echo 0 >/proc/sys/vm/nr_hugepages
	found '	private: 512 pages of KSM'
	found '	shared anonymous: 0 pages of KSM'
	found '	hugetlb: 0 pages of KSM'
	found '	not advised: 0 pages of KSM'
}

@test "huge pages are split and merged, the huge zero page is left alone" {
	compare huge
	found 'huge: 6144 kB'
	found 'after: huge: 0 kB, 768 shared, 768 sharing'
	found 'contents right'
}

@test "zero pages become the kernel's zero page, if wanted" {
	compare zero
	found '	ksm_zero_pages 512'
	found '	ksm_zero_pages 256'
}

@test "no page is shared more often than allowed" {
	compare sharing
	found '64 shared, 960 sharing, 1 chains, 64 dups'
	found 'contents right'
}

@test "memory is unmerged by MADV_UNMERGEABLE and by run=2, and merged again" {
	compare unmerge
	found 'unmerging: ok'
	found '	identical: 0 pages of KSM'
}

@test "smart scan skips the same pages" {
	compare smart
	run grep -cE 'pages_skipped [1-9]' "$BATS_TEST_TMPDIR/on"
	assert_success
}

@test "a process that wants all its memory merged gets that, its children too" {
	compare all
	found '512 pages of KSM'
	found 'child: 512 and 512 pages of KSM, contents right'
	found '0 pages of KSM, contents right'
}

@test "parent and child keep their own contents" {
	compare forked
	found '	pairs: 256 pages of KSM'
}

@test "what was swapped out, migrated or moved is merged as before" {
	compare moved
	found 'moved:'
}

@test "threads that map and unmap do not make ksmd take mmap_lock" {
	local merged='2048 pages of KSM, then 0, contents right'

	ksmd_runs
	echo 1 >"$KSM/observe"
	run "$PROG/ksm_race" busy 3
	assert_output "$merged"
	ksmd_stops
	remark "off: $(stat_of ksm mmap_locks) mmap_locks, $(stat_of ksm scanned) pages"
	(($(stat_of ksm mmap_locks) >= $(stat_of ksm scanned)))

	path_reset ksm
	path_enable ksm
	ksmd_runs
	run "$PROG/ksm_race" busy 3
	assert_output "$merged"
	ksmd_stops
	remark "on: $(stat_of ksm mmap_locks) mmap_locks, $(stat_of ksm scanned) pages"
	(($(stat_of ksm scanned) > 4096))
	((100 * $(stat_of ksm mmap_locks) <= $(stat_of ksm scanned)))
}

# As on a host whose ksmd burns a CPU.
@test "processes come and go while ksmd never rests" {
	local when before

	for when in off on; do
		ksm_as_it_was
		echo 20000 >$SYSFS/pages_to_scan
		echo 0 >$SYSFS/sleep_millisecs
		echo 1 >$SYSFS/run
		[ $when = off ] || path_enable ksm
		before=$(cat $SYSFS/pages_scanned)
		run "$PROG/ksm_race" comers 6
		assert_line '6 gone, contents right'
		remark "$when: $((($(cat $SYSFS/pages_scanned) - before) / 1000)) thousand pages, ${lines[1]}"
	done
	ksmd_stops
	assert_equal "$(path_state ksm)" on
	assert [ "$(stat_of ksm taken)" -gt 0 ]
}

@test "full scans go on while mergeable memory comes and goes" {
	path_enable ksm
	ksmd_runs
	run "$PROG/ksm_race" progress 10
	assert_success
	assert_output '10 full scans, contents right'
}

# KSM forgets a process only when nothing of it is mergeable: it enters once.
@test "a process stays with KSM while its only mergeable memory changes place" {
	path_enable ksm
	ksmd_runs
	echo 0 >$SYSFS/sleep_millisecs
	trace_begin 0 ksm/ksm_enter
	run "$PROG/ksm_race" flip 5
	assert_output --regexp '^[1-9][0-9]+ flips$'
	ksmd_stops
	remark "$output, $(cat $SYSFS/full_scans) scans, vma_lock $(stat_of ksm fallback_vma_lock)"
	assert_equal "$(traced ksm_enter)" 1
}

@test "the advisor works" {
	path_enable ksm
	ksmd_runs
	echo scan-time >$SYSFS/advisor_mode
	run "$PROG/ksm_race" busy 3
	assert_output --partial 'contents right'
	ksmd_stops
	assert_equal "$(path_state ksm)" on
	(($(stat_of ksm taken) > 0))
}

# Replaced pages stay in TLBs for a while: unchanged, and nobody else gets them.
@test "what is read of memory while it is merged is never out of date" {
	path_enable ksm
	ksmd_runs
	echo 0 >$SYSFS/sleep_millisecs
	run "$PROG/ksm_seen" 5
	assert_output --regexp '^0 of [1-9][0-9]+ wrong$'
	assert_success
	ksmd_stops
	remark "$output, $(stat_of ksm flushes_put_off) flushes put off"
	(($(stat_of ksm flushes_put_off) > 100))
}

# Half of those killed are reaped at once, as the OOM killer's victims are.
@test "processes are killed, fork, exec and change their memory while it is merged" {
	path_enable ksm
	ksmd_runs
	run "$PROG/ksm_race" 15
	assert_output --regexp '^[1-9][0-9]* killed, 0 bad, [1-9]'
	assert_success
	ksmd_stops
	assert_equal "$(path_state ksm)" on
	assert_equal "$(stat_of ksm calls)" $(($(stat_of ksm taken) + $(stat_of ksm stock)))
	(($(stat_of ksm taken) > $(stat_of ksm stock)))
	remark "$output; taken $(stat_of ksm taken), exiting $(stat_of ksm fallback_exiting), \
vma_lock $(stat_of ksm fallback_vma_lock), nothing $(stat_of ksm fallback_nothing)"
	echo 2 >$SYSFS/run
	assert_equal "$(cat $SYSFS/pages_shared)" 0
}

# race_begin; race_end: the same until told to end, and it has seen nothing bad.
race_begin()
{
	"$PROG/ksm_race" 600 >"$BATS_TEST_TMPDIR/race" &
	KILL=($!)
}

race_end()
{
	kill -TERM "${KILL[0]}"
	wait "${KILL[0]}"
	KILL=()
	cat "$BATS_TEST_TMPDIR/race"
}

taken_more()
{
	(($(stat_of ksm taken) > $1))
}

@test "the path is switched while memory is merged" {
	local i taken

	ksmd_runs
	echo 200 >$SYSFS/pages_to_scan
	race_begin
	# each switch waits for ksmd's batch
	for ((i = 0; i < 6; i++)); do
		taken=$(stat_of ksm taken)
		path_enable ksm
		wait_until 60 taken_more "$taken"
		path_disable ksm
	done
	race_end
	assert_equal "$(path_state ksm)" off
}

@test "the module is taken out while memory is merged" {
	ksmd_runs
	path_enable ksm
	race_begin
	wait_until 60 taken_more 0
	# takes seconds: it waits until every task has slept once
	mmopt_unload
	race_end
}

# Those of a machine with more than one node say that they are skipped.
@test "the kernel's ksm_tests and ksm_functional_tests" {
	compare_selftests 'ksm_tests -M -p 10' 'ksm_tests -U' 'ksm_tests -Z -p 10 -z 0' \
		'ksm_tests -Z -p 10 -z 1' 'ksm_tests -N -m 1' 'ksm_tests -N -m 0' \
		'ksm_tests -P -s 20' 'ksm_tests -H -s 20' 'ksm_tests -D -s 20' 'ksm_tests -C' \
		ksm_functional_tests
}

# The sites, where ours reserve them: "ksm_scan_thread+0x148".
turned_calls()
{
	awk '$3 ~ /^(ksm_scan_thread|try_to_merge_with_ksm_page)\+/ { print $3 }' \
		/sys/kernel/debug/kprobes/list
}

# probes WHAT: a probe event on every call that the path turns.
probes_define()
{
	local site n=0

	for site in $(turned_calls); do
		echo "p:mmopt_test/site$((n++)) $site" >>"$TRACING/kprobe_events"
	done
	((n >= 12))
}

probes_hit()
{
	awk '$1 ~ /^site/ { n += $2 } END { print n + 0 }' "$TRACING/kprobe_profile"
}

@test "a probe on a turned call sees it and leaves it turned" {
	path_enable ksm
	probes_define
	echo 1 >"$TRACING/events/mmopt_test/enable"
	run "$PROG/ksm_same" sharing
	assert_output --partial 'contents right'
	(($(probes_hit) > 1000))
	assert_equal "$(stat_of ksm mmap_locks)" 0

	# the path cannot go while the breakpoints are there, and works on
	run path_disable ksm
	assert_failure
	assert_regex "$(path_state ksm)" '^draining: remove what sits on a call'
	run "$PROG/ksm_same" sharing
	assert_output --partial 'contents right'
	echo 0 >"$TRACING/events/mmopt_test/enable"
	path_disable ksm
	assert_equal "$(path_state ksm)" off

	# the probes are still defined: now they see stock calls
	path_reset ksm
	echo 1 >"$TRACING/events/mmopt_test/enable"
	run path_enable ksm
	assert_failure
	run "$PROG/ksm_same" sharing
	assert_output --partial 'contents right'
	assert_equal "$(stat_of ksm calls)" 0
	echo 0 >"$TRACING/events/mmopt_test/enable"
	ksmd_stops
}

@test "a probe that was defined before the path was on does not undo it" {
	probes_define
	path_enable ksm
	echo 1 >"$TRACING/events/mmopt_test/enable"
	run "$PROG/ksm_same" basic
	assert_output --partial '	pages_sharing 766'
	refute_output --partial DAMAGED
	(($(stat_of ksm taken) > 0))
	assert_equal "$(stat_of ksm mmap_locks)" 0
	echo 0 >"$TRACING/events/mmopt_test/enable"
	ksmd_stops
}
