#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debian13-backports
# guest-append: module.sig_enforce=1
#
# A host that takes signed modules only, as under Secure Boot, and one whose
# lockdown closes debugfs to writers.

load helpers

setup()
{
	klog_mark
}

teardown()
{
	klog_assert_clean
}

@test "load says which key to enrol, and how" {
	assert_equal "$(</sys/module/module/parameters/sig_enforce)" Y
	run mmopt load
	assert_failure 6
	assert_output --partial /var/lib/dkms/mok.pub
	assert_output --partial "mokutil --import"
	refute mmopt_is_loaded
	run mmopt status
	assert_failure 3
	run mmopt enable madvise
	assert_failure 3
}

@test "check says so before anything is loaded" {
	run mmopt check
	assert_failure
	assert_output --partial /var/lib/dkms/mok.pub
}

@test "the host is not affected" {
	run modprobe mmopt
	assert_failure
	refute mmopt_is_loaded
	assert [ ! -e "$MMOPT" ]
	# the kernel's own modules are signed
	modprobe zram
	run "$PROG/advise" <<<"run 5"
	assert_line intact
}
