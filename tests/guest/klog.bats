#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The gate on the kernel log closes when it should. Runs in a guest of its own,
# without panic_on_warn, and leaves a log that the runner must find dirty.

bats_load_library bats-support
bats_load_library bats-assert
load ../lib/klog

WARNMOD=$BATS_TEST_DIRNAME/warnmod/warnmod.ko

setup()
{
	klog_mark
}

teardown()
{
	if grep -q '^warnmod ' /proc/modules; then
		rmmod warnmod
	fi
}

@test "a clean log passes" {
	insmod "$WARNMOD" how=none
	run klog_assert_clean
	assert_success
}

@test "a WARN in a module fails" {
	insmod "$WARNMOD" how=warn
	run klog_assert_clean
	assert_failure
	assert_output --partial "WARNING: "
	assert_output --partial "Call Trace"
}

@test "scheduling while atomic fails" {
	insmod "$WARNMOD" how=atomic
	run klog_assert_clean
	assert_failure
	assert_output --partial "BUG: scheduling while atomic"
}

@test "what went wrong before the marker is not held against a test" {
	echo "BUG: of an earlier test" >/dev/kmsg
	klog_mark
	run klog_assert_clean
	assert_success
}

@test "the trace in a report of the OOM killer passes, and no other" {
	local report="x invoked oom-killer: gfp_mask=0xdc0(GFP_KERNEL), order=0"

	printf '%s\n' "$report" "Call Trace:" >/dev/kmsg
	run klog_assert_clean
	assert_success
	printf '%s\n' "$report" "Call Trace:" "Call Trace:" >/dev/kmsg
	run klog_assert_clean
	assert_failure
	klog_mark
	printf '%s\n' "$report" "WARNING: x" "Call Trace:" >/dev/kmsg
	run klog_assert_clean
	assert_failure
}

@test "a log that lost the marker fails" {
	# shellcheck disable=SC2034 # klog_assert_clean looks for it
	KLOG_MARKER="mmopt: a marker that the log has overwritten"
	run klog_assert_clean
	assert_failure
	assert_output --partial "lost its marker"
}

@test "each complaint of the kernel fails" {
	local complaint

	for complaint in \
		"BUG: Bad rss-counter state mm:0000000000000000 type:MM_ANONPAGES val:1" \
		"BUG: non-zero pgtables_bytes on freeing mm: 4096" \
		"BUG: Bad page state in process x  pfn:00000" \
		"Oops: general protection fault, probably for non-canonical address" \
		"WARNING: possible recursive locking detected" \
		"WARNING: suspicious RCU usage" \
		"INFO: task x:1 blocked for more than 120 seconds." \
		"WARNING: bad unlock balance detected!" \
		"traps: Missing ENDBR: x+0x0/0x10" \
		"------------[ ftrace bug ]------------ ftrace_bug"; do
		klog_mark
		echo "$complaint" >/dev/kmsg
		run klog_assert_clean
		assert_failure
		assert_output --partial "$complaint"
	done
}
