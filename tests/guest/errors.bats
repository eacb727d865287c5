#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# What goes wrong on a host, and what mmopt then says: docs/errors.md. Lockdown,
# signatures and nommopt have files of their own, as they need another boot.

load helpers

setup()
{
	begin_test
}

teardown()
{
	mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	end_test
}

@test "not root" {
	run setpriv --reuid=65534 --regid=65534 --clear-groups mmopt status
	assert_failure 4
	assert_output --partial 'run mmopt as root'
	mmopt_unload
	run setpriv --reuid=65534 --regid=65534 --clear-groups mmopt load
	assert_failure 4
	assert_output --partial 'run mmopt as root'
	refute mmopt_is_loaded
}

@test "debugfs not mounted" {
	umount -l /sys/kernel/debug
	run mmopt status
	assert_failure 8
	assert_output --partial 'mount -t debugfs none /sys/kernel/debug'
	run mmopt -j enable all
	assert_failure 8
	assert_output --partial '"rc":8'
	mount -t debugfs debugfs /sys/kernel/debug
	run mmopt status
	assert_success
}

@test "module not loaded" {
	mmopt_unload
	run mmopt enable all
	assert_failure 3
	assert_output --partial "run 'mmopt load' as root"
}

@test "a module that was built for another kernel" {
	local file keep=$BATS_TEST_TMPDIR/keep

	file=$(modinfo -n mmopt)
	mmopt_unload
	cp "$file" "$keep"
	case $file in
	*.xz) xz -dc "$keep" ;;
	*) cat "$keep" ;;
	# not the release: with symbol versions the kernel does not look at that
	esac | sed 's/\(vermagic=[^ ]* SMP .*\)mod_unload/\1mod_unloax/' >"$file.new"
	case $file in
	*.xz) xz --check=crc32 -c "$file.new" >"$file" ;;
	*) cat "$file.new" >"$file" ;;
	esac
	rm "$file.new"
	run mmopt load
	cp "$keep" "$file"
	assert_failure 7
	assert_output --partial "was not built for kernel $(uname -r)"
	assert_output --partial 'dkms install mmopt/'
	refute mmopt_is_loaded
	# the kernel says that the magic differs, and nothing else
	dmesg | tail -n 20 | grep 'version magic'
	mmopt load
}

@test "no module at all" {
	local none=$BATS_TEST_TMPDIR/none modules

	modules=/lib/modules/$(uname -r)
	mmopt_unload
	mkdir -p "$none$modules"
	touch "$none$modules"/modules.{order,builtin}
	depmod -b "$none"
	mount --bind "$none$modules" "$modules"
	run mmopt load
	umount "$modules"
	assert_failure 7
	assert_output --partial 'there is no module to load'
}

@test "a configuration file is applied, as often as one likes, or not at all" {
	local path on=

	echo 'enable = all' >"$BATS_TEST_TMPDIR/conf"
	run mmopt apply "$BATS_TEST_TMPDIR/conf"
	assert_success
	for path in $(mmopt_paths); do
		! path_is_available "$path" || on+=$(path_state "$path")
	done
	[[ $on =~ ^(on)+$ ]]
	run mmopt -j apply "$BATS_TEST_TMPDIR/conf"
	assert_success
	refute_output --partial '"result":"on"'

	printf 'enable = mremap\nmremap.batch_bytes = 4194304\n' >"$BATS_TEST_TMPDIR/conf"
	run mmopt apply "$BATS_TEST_TMPDIR/conf"
	assert_success
	assert_equal "$(cat "$MMOPT/mremap/batch_bytes")" 4194304
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" mremap

	printf 'enable = none\nmremap.batch_bytes = 1\n' >"$BATS_TEST_TMPDIR/wrong"
	run mmopt apply "$BATS_TEST_TMPDIR/wrong"
	assert_failure 2
	assert_output --partial "$BATS_TEST_TMPDIR/wrong:2: "
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" mremap
	printf 'enable = none\nmremap.batch_bytes = 67108864\n' >"$BATS_TEST_TMPDIR/conf"
	run mmopt apply "$BATS_TEST_TMPDIR/conf"
	assert_success
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" none
}

@test "apply loads the module, and what modprobe.d enables is not on" {
	mmopt_unload
	mkdir -p /etc/modprobe.d
	echo 'options mmopt enable=all' >/etc/modprobe.d/mmopt-test.conf
	echo 'enable = mremap' >"$BATS_TEST_TMPDIR/conf"
	run mmopt apply "$BATS_TEST_TMPDIR/conf"
	rm /etc/modprobe.d/mmopt-test.conf
	assert_success
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" mremap
}
