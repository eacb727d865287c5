#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The guest is what the other tests take it for.

bats_load_library bats-support
bats_load_library bats-assert
load ../lib/klog
load ../lib/mmopt

setup()
{
	klog_mark
}

teardown()
{
	klog_assert_clean
}

@test "the kernel stops at the first warning" {
	run cat /proc/sys/kernel/panic_on_warn /proc/sys/kernel/panic_on_oops
	assert_output $'1\n1'
}

@test "the kernel is untainted or tainted by us alone" {
	# O: out of tree, E: unsigned, K: livepatch
	assert_equal $(($(cat /proc/sys/kernel/tainted) & ~(1 << 12 | 1 << 13 | 1 << 15))) 0
}

@test "the kernel is the distribution's own, or where asked for the one that debugs itself" {
	local function

	run cat /proc/version
	if [[ $MMOPT_GUEST == *-debug ]]; then
		assert_output --partial "-debug "
		assert_equal "$(awk '$1 == "debug_locks:" { print $2 }' /proc/lockdep_stats)" 1
		for function in kasan_report __page_table_check_pte_clear debug_object_init; do
			grep -q " T $function\$" /proc/kallsyms
		done
	else
		assert_output --partial "(debian-kernel@"
		assert [ ! -e /proc/lockdep_stats ]
	fi
}

@test "DKMS has built and installed the module for this kernel" {
	run dkms status mmopt -k "$(uname -r)"
	assert_success
	assert_output --partial ": installed"
	run modinfo -F vermagic mmopt
	assert_equal "${output%% *}" "$(uname -r)"
}

@test "the module loads and unloads" {
	mmopt_load
	assert [ -d "$MMOPT" ]
	run mmopt_paths
	refute_output ""
	mmopt_unload
	assert [ ! -d "$MMOPT" ]
	assert [ ! -d /sys/module/mmopt ]
}
