#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

@test "status shows the state of every path" {
	tree_loaded
	tree_path madvise on
	run_mmopt status
	assert_success
	refute_stderr
	assert_line "mmopt 0.1.0 on Linux $RELEASE"
	assert_line "madvise    on"
}

@test "status gives the reason of an unavailable path" {
	tree_loaded
	tree_path madvise 'unavailable: no per-VMA lock (needs Linux 6.4)'
	run_mmopt status
	assert_success
	assert_line "madvise    unavailable: no per-VMA lock (needs Linux 6.4)"
	run_mmopt -j status
	assert_success
	assert_json '.paths[0] | .state == "unavailable" and .untested == false'
	assert_json '.paths[0].reason' 'no per-VMA lock (needs Linux 6.4)'
}

@test "status keeps a colon in the reason" {
	tree_loaded
	tree_path madvise 'tripped: record: 1 of 2'
	run_mmopt -j status
	assert_success
	assert_json '.paths[0].reason' 'record: 1 of 2'
}

@test "status tells that the kernel is untested" {
	tree_loaded
	tree_path madvise off
	put sys/kernel/debug/mmopt/status 'madvise off untested'
	run_mmopt status
	assert_success
	assert_line 'madvise    off, untested on this kernel'
	run_mmopt -j status
	assert_json '.paths[0] | .untested and .state == "off"'
	put sys/kernel/debug/mmopt/status 'madvise unavailable untested: no symbol'
	run_mmopt status
	assert_line 'madvise    unavailable, untested on this kernel: no symbol'
}

@test "status shows paths and states that this tool does not know" {
	tree_loaded
	put sys/kernel/debug/mmopt/status 'teleport pondering' 'madvise off'
	run_mmopt -j status
	assert_success
	assert_json '[.paths[].path] | join(" ")' 'teleport madvise'
	assert_json '.paths[0].state' pondering
}

@test "status warns of a module of another version" {
	tree_loaded
	tree_path madvise off
	put sys/kernel/debug/mmopt/version 0.0.9
	run_mmopt status
	assert_success
	assert_stderr 'mmopt: warning: mmopt: the module is version 0.0.9, this tool is version 0.1.0'
	run_mmopt -j status
	assert_json '.warnings | length' 1
	refute_stderr
}

@test "status without the module: exit 3, and what to do" {
	tree_module
	run_mmopt status
	assert_failure 3
	assert_output ''
	assert_stderr "mmopt: mmopt: the module is not loaded; run 'mmopt load' as root"
	assert_message_form
	run_mmopt -j status
	assert_failure 3
	assert_json '.errors[0] | .rc == 3 and .where == "mmopt" and (.hint | length > 0)'
	refute_stderr
}

@test "status without the module and without headers names the package" {
	rm -r "${MMOPT_ROOT:?}/lib"
	run_mmopt status
	assert_failure 3
	assert_stderr "apt install linux-headers-amd64"
	for flavour in cloud rt; do
		put proc/sys/kernel/osrelease "6.12.118+deb13-$flavour-amd64"
		run_mmopt status
		assert_failure 3
		assert_stderr "apt install linux-headers-$flavour-amd64"
	done
	put proc/sys/kernel/osrelease 6.18.1-arch1
	run_mmopt status
	assert_failure 3
	assert_stderr 'linux-headers-6.18.1-arch1'
}

@test "status with a module that DKMS has not built yet" {
	mkdir -p "$MMOPT_ROOT/var/lib/dkms/mmopt/0.1.0"
	run_mmopt status
	assert_failure 3
	assert_stderr "dkms autoinstall -k $RELEASE"
	rm -r "${MMOPT_ROOT:?}/var"
	run_mmopt status
	assert_failure 3
	assert_stderr 'install mmopt with DKMS first'
}

@test "status with a module that the kernel would reject names the key" {
	tree_module
	put sys/module/module/parameters/sig_enforce Y
	run_mmopt status
	assert_failure 3
	assert_stderr 'mokutil --import /var/lib/dkms/mok.pub'
	assert_message_form
}

@test "status without debugfs: exit 8, and how to mount it" {
	tree_loaded
	put proc/mounts 'sysfs /sys sysfs rw 0 0'
	run_mmopt status
	assert_failure 8
	assert_stderr 'mount -t debugfs'
	assert_message_form
}

@test "status finds debugfs where it is mounted" {
	tree_loaded
	tree_path madvise off
	mkdir "$MMOPT_ROOT/debug files"
	mv "$MMOPT_ROOT/sys/kernel/debug/mmopt" "$MMOPT_ROOT/debug files"
	put proc/mounts 'debugfs /debug\040files debugfs rw 0 0'
	run_mmopt status
	assert_success
	assert_line 'madvise    off'
}

@test "status without the module's files: exit 1" {
	tree_loaded
	rm -r "$MMOPT_ROOT/sys/kernel/debug/mmopt"
	run_mmopt status
	assert_failure 1
	assert_stderr 'its files are not here'
	put proc/cmdline 'ro nommopt quiet'
	run_mmopt status
	assert_failure 1
	assert_stderr 'nommopt'
	assert_message_form
}

@test "status of somebody who may not read debugfs: exit 4" {
	tree_loaded
	tree_path madvise off
	chmod -R a+rX "$MMOPT_ROOT"
	chmod 0700 "$MMOPT_ROOT/sys/kernel/debug"
	[ "$(id -u)" -eq 0 ] || chmod 0 "$MMOPT_ROOT/sys/kernel/debug"
	run_mmopt_as_user status
	assert_failure 4
	assert_stderr 'run mmopt as root'
	assert_message_form
	run_mmopt_as_user -j status
	assert_failure 4
	assert_json '.errors[0].errno' EACCES
	chmod 0700 "$MMOPT_ROOT/sys/kernel/debug"
}

@test "status works under lockdown" {
	tree_loaded
	tree_path madvise on
	touch "$MMOPT_ROOT/.lockdown"
	chmod 0444 "$MMOPT_ROOT/sys/kernel/debug/mmopt/version"
	run_mmopt status
	assert_success
	refute_stderr
	assert_line 'madvise    on'
}

@test "garbage in the status file is an error, whatever it is" {
	tree_loaded
	local file=$MMOPT_ROOT/sys/kernel/debug/mmopt/status
	for text in 'madvise' ' ' '../evil off' 'MADVISE off' 'madvise :' 'madvise off\0x' \
		'\xff\xfe off' 'madvise \xff' '%s%n off'; do
		printf '%b\n' "$text" >"$file"
		run_mmopt status
		assert_failure 1
		assert_stderr 'line 1 is not'
		assert_message_form
		run_mmopt -j status
		assert_failure 1
		assert_json '.errors | length' 1
	done
	head -c 100000 /dev/urandom >"$file"
	run_mmopt -j status
	assert_failure 1
	assert_json '.errors | length' 1
	rm "$file"
	mkdir "$file"
	run_mmopt status
	assert_failure 1
	assert_stderr 'cannot read status: Is a directory'
}

@test "a reason cannot steer the terminal" {
	tree_loaded
	printf 'madvise tripped: \033[2Jgone\xc3\x28\n' >"$MMOPT_ROOT/sys/kernel/debug/mmopt/status"
	run_mmopt status
	assert_success
	assert_line 'madvise    tripped: ?[2Jgone?('
	run_mmopt -j status
	assert_json '.paths[0].reason' '?[2Jgone?('
}

@test "an empty list of paths is no error" {
	tree_loaded
	run_mmopt -j status
	assert_success
	assert_json '.paths | length' 0
}
