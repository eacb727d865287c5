#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

# expect CHECK RESULT [WORDS]: the check has that result, and its line or advice the words.
expect() {
	run_mmopt -j check
	case $2 in
	problem) assert_failure 1 ;;
	*) assert_success ;;
	esac
	refute_stderr
	assert_json "[.checks[] | select(.check == \"$1\") | .result] | any(. == \"$2\")"
	[ $# -lt 3 ] || assert_json "[.checks[] | select(.check == \"$1\") |
		.found + \" \" + (.advice // \"\")] | join(\" \") | contains(\"$3\")"
	[ "$2" != problem ] || assert_json ".problems >= 1 and (.fits | not)"
}

@test "a host that fits" {
	tree_module
	run_mmopt check
	assert_success
	refute_stderr
	refute_line --regexp '^(note|problem)'
	assert_line "Linux $RELEASE on this host fits"
	run_mmopt -j check
	assert_success
	assert_json '.fits and .problems == 0 and ([.checks[].result] | unique == ["ok"])'
}

@test "every problem has advice" {
	rm -r "$MMOPT_ROOT/sys/kernel/btf" "${MMOPT_ROOT:?}/lib"
	put "boot/config-$RELEASE" '# empty'
	put proc/mounts
	put proc/sys/kernel/ftrace_enabled 0
	put proc/sys/kernel/arch riscv64
	put proc/cmdline nommopt
	put sys/kernel/debug/kprobes/enabled 0
	put sys/module/module/parameters/sig_enforce Y
	run_mmopt -j check
	assert_failure 1
	assert_json '.problems >= 14'
	assert_json '[.checks[] | select(.result == "problem" and ((.advice // "") == ""))] | length' 0
	run_mmopt check
	assert_failure 1
	assert_line --regexp '^problem +architecture +riscv64$'
	assert_line --regexp '^Linux .* on this host: [0-9]+ problems$'
}

@test "each kernel option is looked for as a whole line" {
	local option

	tree_module
	for option in MODULES KPROBES KALLSYMS_ALL DYNAMIC_FTRACE_WITH_REGS HAVE_STATIC_CALL_INLINE \
		DEBUG_INFO_BTF DEBUG_FS; do
		tree_host
		sed -i "s/^CONFIG_$option=y/# CONFIG_$option is not set/" "$MMOPT_ROOT/boot/config-$RELEASE"
		expect "config $option" problem
		sed -i "s/^# CONFIG_$option is.*/XCONFIG_$option=y/" "$MMOPT_ROOT/boot/config-$RELEASE"
		expect "config $option" problem
		sed -i "s/^XCONFIG_$option=y/CONFIG_$option=yes/" "$MMOPT_ROOT/boot/config-$RELEASE"
		expect "config $option" problem
	done
}

@test "what DKMS demands of a kernel is checked here too" {
	local option options

	# shellcheck source=dkms.conf
	options=$(. "$BATS_TEST_DIRNAME/../../dkms.conf" && echo "$BUILD_EXCLUSIVE_CONFIG")
	[ -n "$options" ]
	run_mmopt -j check
	for option in $options; do
		assert_json "[.checks[].check] | index(\"config ${option#CONFIG_}\") != null"
	done
}

@test "the functions that the paths bypass are checked for rivals" {
	local name names=0

	tree_module
	# The lists in the path files: symbols, and what is bypassed.
	for name in $(awk '/bypassed\[\]/ { on = 1 } on || /\.symbol =/; /NULL/ { on = 0 }' \
		"$BATS_TEST_DIRNAME"/../../module/paths/*.c | grep -o '"[a-z_]*"' | tr -d '"'); do
		tree_host
		mkdir -p "$MMOPT_ROOT/sys/kernel/livepatch/hotfix/vmlinux/$name,1"
		expect livepatches problem "hotfix owns $name,"
		rm -r "$MMOPT_ROOT/sys/kernel/livepatch/hotfix"
		names=$((names + 1))
	done
	[ "$names" -ge 2 ]
}

@test "a kernel without per-VMA locks or KSM only lacks the paths" {
	tree_module
	sed -i /PER_VMA/d "$MMOPT_ROOT/boot/config-$RELEASE"
	expect 'config PER_VMA_LOCK' note 'madvise, ksm and pagemap'
	sed -i /CONFIG_KSM=/d "$MMOPT_ROOT/boot/config-$RELEASE"
	expect 'config KSM' note ksm
}

@test "the kernel config is found in its other places, or said to be missing" {
	tree_module
	mv "$MMOPT_ROOT/boot/config-$RELEASE" "$MMOPT_ROOT/lib/modules/$RELEASE/config"
	expect 'config KALLSYMS_ALL' ok
	mv "$MMOPT_ROOT/lib/modules/$RELEASE/config" "$MMOPT_ROOT/lib/modules/$RELEASE/build/.config"
	expect 'config KALLSYMS_ALL' ok
	rm "$MMOPT_ROOT/lib/modules/$RELEASE/build/.config"
	expect 'kernel config' note "$RELEASE"
}

@test "BTF, debugfs, ftrace, kprobes" {
	tree_module
	put proc/mounts 'proc /proc proc rw 0 0'
	expect debugfs problem 'mount -t debugfs'
	tree_host
	put proc/sys/kernel/ftrace_enabled 0
	expect ftrace problem 'sysctl kernel.ftrace_enabled=1'
	rm "$MMOPT_ROOT/proc/sys/kernel/ftrace_enabled"
	expect ftrace problem reboot
	tree_host
	put sys/kernel/debug/kprobes/enabled 0
	expect kprobes problem kprobes/enabled
	rm "$MMOPT_ROOT/sys/kernel/debug/kprobes/enabled"
	expect kprobes note
	tree_host
	rm "$MMOPT_ROOT/sys/kernel/btf/vmlinux"
	expect BTF problem DEBUG_INFO_BTF
}

@test "no module: headers, DKMS or installation is named" {
	expect module problem 'install mmopt with DKMS first'
	mkdir -p "$MMOPT_ROOT/var/lib/dkms/mmopt"
	expect module problem "dkms autoinstall -k $RELEASE"
	rm -r "${MMOPT_ROOT:?}/lib"
	expect module problem 'apt install linux-headers-amd64'
	assert_json '[.checks[] | select(.check == "kernel headers") | .result] == ["note"]'
}

@test "a module of another kernel" {
	tree_module 6.1.0-1-amd64
	expect module problem 'is for kernel 6.1.0-1-amd64'
}

@test "signature enforcement: unsigned is a problem, signed a note" {
	tree_module
	put sys/module/module/parameters/sig_enforce Y
	expect 'module signature' problem /var/lib/dkms/mok.pub
	tree_sign
	expect 'module signature' note mokutil
	tree_module
	tree_host
	put sys/kernel/security/lockdown 'none [integrity] confidentiality'
	expect 'module signature' problem 'mokutil --import'
	tree_sign
	expect lockdown note integrity
}

@test "Secure Boot is read from the UEFI variable" {
	local var=sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c

	tree_module
	expect 'Secure Boot' ok 'not there'
	put "$var"
	printf '\6\0\0\0\1' >"$MMOPT_ROOT/$var"
	expect 'Secure Boot' ok on
	printf '\6\0\0\0\0' >"$MMOPT_ROOT/$var"
	expect 'Secure Boot' ok off
	printf '\6\0' >"$MMOPT_ROOT/$var"
	expect 'Secure Boot' ok 'not there'
}

@test "nommopt as a word of the kernel command line" {
	tree_module
	put proc/cmdline 'nommopt quiet'
	expect 'kernel command line' problem 'boot without'
	put proc/cmdline 'xnommopt nommopt=1 foo.nommopt'
	expect 'kernel command line' ok
}

@test "another livepatch: a problem only on our functions" {
	tree_module
	mkdir -p "$MMOPT_ROOT/sys/kernel/livepatch/hotfix/vmlinux/do_exit,0"
	expect livepatches ok 'hotfix, of other functions'
	mkdir "$MMOPT_ROOT/sys/kernel/livepatch/hotfix/vmlinux/do_madvise_other,0"
	expect livepatches ok
	mkdir "$MMOPT_ROOT/sys/kernel/livepatch/hotfix/vmlinux/madvise_cold,1"
	expect livepatches problem 'hotfix owns madvise_cold, used by madvise'
	rm -r "$MMOPT_ROOT/sys/kernel/livepatch/hotfix/vmlinux/madvise_cold,1"
	put sys/kernel/livepatch/hotfix/transition 1
	expect livepatches note 'in transition'
}

@test "probes on our functions are noted" {
	tree_module
	put sys/kernel/debug/kprobes/list \
		'ffffffff81000010  k  do_exit+0x0    [FTRACE]' \
		'ffffffff81000020  k  do_madvise_x+0x0    [FTRACE]'
	expect probes ok
	put sys/kernel/debug/kprobes/list \
		'ffffffff81000010  k  do_madvise+0x0    [FTRACE]' \
		'ffffffff81000020  r  madvise_pageout+0x4  [DISABLED]' 'garbage' ''
	expect probes note 'a probe on do_madvise+0x0'
	expect probes note 'a return probe on madvise_pageout'
	rm "$MMOPT_ROOT/sys/kernel/debug/kprobes/list"
	expect probes note 'No such file'
	# Those by which the module reserves its sites are no rivals.
	put sys/kernel/debug/kprobes/list 'ffffffff81000010  k  io_madvise+0x2b    [DISABLED]'
	expect probes note io_madvise
	tree_loaded
	expect probes ok
}

@test "check without rights tells what it could not see" {
	tree_module
	chmod -R a+rX "$MMOPT_ROOT"
	chmod 0600 "$MMOPT_ROOT/sys/kernel/debug/kprobes"/*
	[ "$(id -u)" -eq 0 ] || chmod 0 "$MMOPT_ROOT/sys/kernel/debug/kprobes"/*
	run_mmopt_as_user -j check
	assert_success
	assert_json '[.checks[] | select(.check == "probes" or .check == "kprobes") |
		.result + " " + .advice] | unique | join(",")' 'note run mmopt as root'
}

@test "hosts that lack everything do not confuse it" {
	rm -r "$MMOPT_ROOT"
	mkdir "$MMOPT_ROOT"
	run_mmopt -j check
	assert_failure 1
	assert_json '.fits | not'
	run_mmopt check
	assert_failure 1
	refute_stderr
}
