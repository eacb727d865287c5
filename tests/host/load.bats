#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

KO=/lib/modules/$RELEASE/updates/dkms/mmopt.ko

# The kernel answers the insertion with an errno.
refuse() {
	behave <<-END
		on_insert() { return $1; }
	END
}

@test "load inserts the module of the running kernel" {
	tree_module
	run_mmopt load
	assert_success
	refute_stderr
	assert_output 'mmopt 0.1.0 is loaded'
	run asked
	assert_output "insert $KO"
}

@test "load hands parameters on" {
	tree_module
	run_mmopt -j load --allow-untested enable=madvise
	assert_success
	assert_json '.already == false and .version == "0.1.0"'
	run asked
	assert_output "insert $KO allow_untested=1 enable=madvise"
}

@test "load uses the options of modprobe.d" {
	tree_module
	put etc/modprobe.d/mmopt.conf 'options mmopt enable=all'
	run_mmopt load
	assert_success
	run asked
	assert_output "insert $KO enable=all"
}

@test "a mistyped parameter: exit 2, nothing is loaded" {
	tree_module
	for arg in enabel=madvise ena=1 enabled=1 =1 '' 'enable=a b' $'enable=a\nb' 'enable="a"'; do
		run_mmopt load "$arg"
		assert_failure 2
		assert_message_form
	done
	run asked
	assert_output ''
}

@test "load of what is loaded is no error, and says so" {
	tree_loaded
	run_mmopt load
	assert_success
	refute_stderr
	assert_output 'mmopt 0.1.0 is loaded, and was before'
	run_mmopt -j load enable=madvise
	assert_success
	assert_json '.already and (.warnings | length == 1)'
	run asked
	assert_output ''
}

@test "load warns if nommopt keeps the module inert" {
	tree_module
	put proc/cmdline 'quiet nommopt'
	run_mmopt load
	assert_success
	assert_stderr 'mmopt: warning: load: inert'
}

@test "no module for this kernel: the hint fits what is missing" {
	run_mmopt load
	assert_failure 7
	assert_stderr 'install mmopt with DKMS first'
	mkdir -p "$MMOPT_ROOT/var/lib/dkms/mmopt/0.1.0"
	run_mmopt load
	assert_failure 7
	assert_stderr "dkms autoinstall -k $RELEASE"
	rm -r "$MMOPT_ROOT/lib/modules/$RELEASE/build"
	run_mmopt load
	assert_failure 7
	assert_stderr 'apt install linux-headers-amd64'
	assert_message_form
	run_mmopt -j load
	assert_failure 7
	assert_json '.errors[0] | .errno == "ENOENT" and (.hint | contains("linux-headers-amd64"))'
}

@test "a module file that is no module" {
	tree_module
	printf 'not an ELF file' >"$MMOPT_ROOT$KO"
	run_mmopt load
	assert_failure 7
	assert_stderr 'cannot be read'
	assert_message_form
}

@test "wrong vermagic or symbols: build it again" {
	tree_module
	for err in "$ENOEXEC" "$ENOENT"; do
		refuse "$err"
		run_mmopt load
		assert_failure 7
		assert_stderr "was not built for kernel $RELEASE"
		assert_stderr 'dkms install mmopt/0.1.0'
		assert_message_form
	done
}

@test "a rejected key: exit 6, names the key and mokutil" {
	tree_module
	for err in "$EKEYREJECTED" "$ENOKEY"; do
		refuse "$err"
		run_mmopt load
		assert_failure 6
		assert_stderr '/var/lib/dkms/mok.pub'
		assert_stderr 'mokutil --import'
		assert_message_form
	done
	run_mmopt -j load
	assert_failure 6
	assert_json '.errors[0].errno' ENOKEY
}

@test "EPERM: lockdown, modules_disabled and a container are told apart" {
	[ "$(id -u)" -eq 0 ] || skip 'root is what these are about'
	tree_module
	refuse "$EPERM"
	run_mmopt load
	assert_failure 4
	assert_stderr 'CAP_SYS_MODULE'
	put proc/sys/kernel/modules_disabled 1
	run_mmopt load
	assert_failure 4
	assert_stderr 'modules_disabled'
	put sys/kernel/security/lockdown 'none [integrity] confidentiality'
	run_mmopt load
	assert_failure 5
	assert_stderr 'mokutil --import'
	assert_message_form
}

@test "not root: exit 4" {
	tree_module
	refuse "$EPERM"
	chmod -R a+rX "$MMOPT_ROOT"
	run_mmopt_as_user load
	assert_failure 4
	assert_stderr 'run mmopt as root'
	assert_message_form
}

@test "any other failure points to the kernel log" {
	tree_module
	for err in "$EINVAL" "$EBUSY" 12; do
		refuse "$err"
		run_mmopt load
		assert_failure 1
		assert_stderr dmesg
		assert_message_form
	done
}
