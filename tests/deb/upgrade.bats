#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The packages on a running kernel, in a guest that began with the old version
# installed, before the headers of this kernel were. The next version was built
# beforehand, see view. One test goes on from the other.

load helpers
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

# The first path that this kernel has; each kernel has one.
a_path()
{
	local path

	for path in $(mmopt_paths); do
		! path_is_available "$path" || { echo "$path"; return; }
	done
	return 1
}

loaded_version()
{
	cat /sys/module/mmopt/version
}

@test "a kernel that came after the packages: the module is there, and apply switches paths on" {
	assert_equal "$(dkms_versions)" "$(version_in old)"
	refute mmopt_is_loaded
	echo 'enable = all' >/etc/mmopt.conf
	mmopt apply
	assert_equal "$(loaded_version)" "$(version_in old)"
	assert_equal "$(path_state "$(a_path)")" on
}

@test "upgraded with paths on: what is loaded goes on, and the operator is told" {
	local path

	path=$(a_path)
	install_debs new
	rm -r /usr/share/mmopt-dkms
	assert_output --partial "the loaded module stays as it is until it is loaded anew"
	assert_equal "$(dkms_versions)" "$(version_in new)"
	assert_equal "$(modinfo -F version mmopt)" "$(version_in new)"
	assert_equal "$(loaded_version)" "$(version_in old)"
	assert_equal "$(path_state "$path")" on
	run mmopt version
	assert_output "mmopt $(version_in new), module $(version_in old)"
	run mmopt -j apply
	assert_success
	assert_output --partial '"result":"unchanged"'
	assert_equal "$(cat /etc/mmopt.conf)" 'enable = all'
}

@test "loaded anew, it is the new version" {
	mmopt unload
	mmopt apply
	assert_equal "$(loaded_version)" "$(version_in new)"
	assert_equal "$(path_state "$(a_path)")" on
}

@test "removed with paths on: what is loaded goes on, and can be unloaded without the tool" {
	run dpkg -r mmopt mmopt-dkms
	assert_success
	assert_output --partial "the loaded module stays until"
	assert_equal "$(path_state "$(a_path)")" on
	assert_equal "$(dkms status mmopt)" ''
	run modprobe -n mmopt
	assert_failure
	echo none >"$MMOPT_PARAMETERS/enable"
	rmmod mmopt
}

@test "purged: nothing is left" {
	run dpkg -P mmopt mmopt-dkms
	assert_success
	assert_equal "$(traces)" ''
	refute mmopt_is_loaded
}
