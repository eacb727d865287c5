#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Others who patch or probe the functions that a path goes around: who owns a
# function keeps it, and tracing goes on.

load helpers

setup()
{
	begin_test
	require_path madvise
}

teardown()
{
	foreign_end
	end_test
}

# Another livepatch of a function. It stays until foreign_end.
foreign_livepatch()
{
	# 6.x is tainted by this; the last test wants to know
	: >/run/mmopt-test-livepatch
	insmod "$BATS_TEST_DIRNAME/mod-livepatch/mmopt_test_livepatch.ko" function="$1"
	wait_until 60 grep -qx 0 /sys/kernel/livepatch/mmopt_test_livepatch/transition
}

foreign_end()
{
	local patch=/sys/kernel/livepatch/mmopt_test_livepatch

	if [ -d $patch ]; then
		[ "$(<$patch/enabled)" = 0 ] || echo 0 >$patch/enabled
		wait_until 60 test ! -d $patch
	fi
	[ ! -d /sys/module/mmopt_test_livepatch ] || rmmod mmopt_test_livepatch
	[ ! -d /sys/module/mmopt_test_probe ] || rmmod mmopt_test_probe
	[ ! -d "$TRACING/events/kprobes" ] || echo 0 >"$TRACING/events/kprobes/enable"
	echo >"$TRACING/kprobe_events"
}

# What the path goes around, on this kernel.
bypassed()
{
	echo do_madvise
	if kernel_is 7; then
		echo vector_madvise madvise_cold madvise_pageout
	fi
}

# More of that, on which a livepatch would be felt by everybody.
bypassed_too()
{
	if kernel_is 7; then
		echo madvise_lock madvise_unlock madvise_do_behavior madvise_vma_behavior
	else
		echo walk_page_range __walk_page_range walk_pgd_range
	fi
}

# Probes of the tracing kind: probe TYPE:NAME FUNCTION, on from here on.
probe()
{
	echo "$1 $2" >>"$TRACING/kprobe_events"
	echo 1 >"$TRACING/events/kprobes/${1#*:}/enable"
}

probe_end()
{
	echo 0 >"$TRACING/events/kprobes/$1/enable"
	echo "-:$1" >>"$TRACING/kprobe_events"
}

hits()
{
	awk -v name="$1" '$1 == name { print $2 }' "$TRACING/kprobe_profile"
}

# A call that the path turns, as function+offset: mmopt keeps it reserved.
turned_in()
{
	awk -v f="$1+" 'index($3, f) == 1 { print $3; exit }' /sys/kernel/debug/kprobes/list
}

advise()
{
	"$PROG/advise" "$@" >/dev/null
}

@test "a livepatch that was there first keeps the path off, which says why" {
	local function

	for function in $(bypassed); do
		foreign_livepatch "$function"
		run poke "$ADVICE/enabled" 1
		assert_output EBUSY
		run path_state madvise
		assert_output --regexp "^off: .*\b$function\b"
		run poke "$ADVICE/observe" 1
		assert_output EBUSY
		run mmopt enable madvise
		assert_failure 10
		assert_output --partial "$function"
		run mmopt check
		assert_output --partial "$function"
		foreign_end
		path_enable madvise
		advise <<<"run 3"
		assert_equal "$(stat_of madvise taken)" 3
		path_disable madvise
		path_reset madvise
	done
}

@test "a livepatch that comes later trips the path, and then has the calls" {
	path_enable madvise
	foreign_livepatch do_madvise
	wait_until 20 grep -q '^tripped: .*\bdo_madvise\b' "$ADVICE/state"
	assert_equal "$(<"$ADVICE/enabled")" 0
	# the livepatch says EAGAIN
	run advise <<<"run 1"
	assert_failure
	assert_output --partial EAGAIN
	run poke "$ADVICE/enabled" 1
	assert_output EIO
	path_disable madvise
	run poke "$ADVICE/enabled" 1
	assert_output EBUSY
	foreign_end
	path_enable madvise
	advise <<<"run 3"
	counted_once
}

@test "who comes while the path is only observed keeps it off as well" {
	echo 1 >"$ADVICE/observe"
	insmod "$BATS_TEST_DIRNAME/mod-probe/mmopt_test_probe.ko" function=do_madvise
	run poke "$ADVICE/enabled" 1
	assert_output EBUSY
	run path_state madvise
	assert_output --regexp '^off: .*\bdo_madvise\b'
	rmmod mmopt_test_probe
	path_enable madvise

	foreign_livepatch do_madvise
	wait_until 20 grep -q '^tripped: ' "$ADVICE/state"
	path_disable madvise
	run poke "$ADVICE/enabled" 1
	assert_output EBUSY
	foreign_end
	path_enable madvise
}

@test "the path mremap stays off for what its batches go around" {
	insmod "$BATS_TEST_DIRNAME/mod-probe/mmopt_test_probe.ko" function=move_huge_pmd
	run poke "$MMOPT/mremap/enabled" 1
	assert_output EBUSY
	assert_regex "$(path_state mremap)" '^off: .*\bmove_huge_pmd\b'
	rmmod mmopt_test_probe
	path_enable mremap
}

@test "the path copy stays off for what it goes around" {
	insmod "$BATS_TEST_DIRNAME/mod-probe/mmopt_test_probe.ko" function=copy_page_range
	run poke "$MMOPT/copy/enabled" 1
	assert_output EBUSY
	assert_regex "$(path_state copy)" '^off: .*\bcopy_page_range\b'
	rmmod mmopt_test_probe
	path_enable copy
}

@test "a probe that claims a function keeps the path off, in either order" {
	local function

	for function in $(bypassed) $(bypassed_too); do
		insmod "$BATS_TEST_DIRNAME/mod-probe/mmopt_test_probe.ko" function="$function"
		run poke "$ADVICE/enabled" 1
		assert_output EBUSY
		run path_state madvise
		assert_output --regexp "^off: .*\b$function\b"
		rmmod mmopt_test_probe
	done
	path_enable madvise
	insmod "$BATS_TEST_DIRNAME/mod-probe/mmopt_test_probe.ko" function=do_madvise
	advise <<<"run 3"
	rmmod mmopt_test_probe
	advise <<<"run 3"
	path_disable madvise
}

@test "probes of tracing before and after the path, removed in each order" {
	local first

	for first in probe path; do
		for last in probe path; do
			[ $first = probe ] || path_enable madvise
			probe p:mmopt_in do_madvise
			probe r:mmopt_out do_madvise
			[ $first = path ] || path_enable madvise
			advise -a cold <<<"run 5"
			[ $last = probe ] || path_disable madvise
			probe_end mmopt_in
			probe_end mmopt_out
			[ $last = path ] || path_disable madvise
			assert_equal "$(path_state madvise)" off
		done
	done
	assert_equal "$(stat_of madvise taken)" 20
	# and anew, on records that must still be right
	probe p:mmopt_in do_madvise
	advise <<<"run 5"
	assert [ "$(hits mmopt_in)" -ge 5 ]
	probe_end mmopt_in
}

@test "probes of tracing see stock calls, with the path off and on" {
	local before

	probe p:mmopt_in do_madvise
	probe r:mmopt_out do_madvise
	advise -a other <<<"run 50"
	assert [ "$(hits mmopt_in)" -ge 50 ]
	assert_equal "$(hits mmopt_out)" "$(hits mmopt_in)"
	path_enable madvise
	before=$(hits mmopt_in)
	advise -a other <<<"run 50"
	assert [ "$(hits mmopt_in)" -ge $((before + 50)) ]
	assert_equal "$(hits mmopt_out)" "$(hits mmopt_in)"
	# calls that fall back go through the function as well
	before=$(hits mmopt_in)
	run "$PROG/fallback" vma_lock
	assert [ "$(hits mmopt_in)" -ge $((before + output)) ]
}

@test "probes on the calls that the path turns, before and after" {
	local function

	for function in __x64_sys_madvise __x64_sys_process_madvise; do
		probe p:mmopt_in $function
		path_enable madvise
		advise <<<"run 5"
		path_disable madvise
		probe_end mmopt_in
		path_enable madvise
		probe p:mmopt_in $function
		advise <<<"run 5"
		probe_end mmopt_in
		path_disable madvise
	done
	assert_equal "$(stat_of madvise taken)" 20
}

@test "a probe on the very call that the path turns: whoever is there first stays" {
	local at

	at=$(turned_in __x64_sys_madvise)
	assert [ -n "$at" ]
	probe p:mmopt_call "$at"
	run poke "$ADVICE/enabled" 1
	assert_output EBUSY
	run path_state madvise
	assert_output --regexp '^off: .*__x64_sys_madvise'
	advise <<<"run 3"
	probe_end mmopt_call
	path_enable madvise
	advise <<<"run 3"
	assert_equal "$(stat_of madvise taken)" 3

	# the other order: the path cannot take its call back before the probe goes
	probe p:mmopt_call "$at"
	advise <<<"run 3"
	run poke "$ADVICE/enabled" 0
	assert_output EBUSY
	run path_state madvise
	assert_output --regexp '^draining: .*__x64_sys_madvise'
	run rmmod mmopt
	assert_failure
	probe_end mmopt_call
	path_disable madvise
	assert_equal "$(path_state madvise)" off
	advise <<<"run 3"
	mmopt_unload
	advise <<<"run 3"
}
