# SPDX-License-Identifier: GPL-2.0
# The tree that stands for a host, below $MMOPT_ROOT.
# shellcheck shell=bash disable=SC2034

EPERM=1 ENOENT=2 EINTR=4 EIO=5 ENOEXEC=8 EAGAIN=11 EACCES=13 EBUSY=16 EEXIST=17 EINVAL=22
EOPNOTSUPP=95 ENOKEY=126 EKEYREJECTED=129

RELEASE=7.3.4+deb13-amd64

# put FILE [TEXT...]: a file with a line per argument, folders as needed.
put() {
	local file=$MMOPT_ROOT/$1

	shift
	mkdir -p "${file%/*}"
	rm -f "$file"	# it may be read-only
	printf '%s\n' "$@" >"$file"
}

# The module's own folder for one path, or its state and switch anew.
path_state() {
	local debug=$MMOPT_ROOT/sys/kernel/debug/mmopt dir state

	put "sys/kernel/debug/mmopt/$1/state" "$2"
	[ "$2" = on ] && put "sys/kernel/debug/mmopt/$1/enabled" 1
	[ "$2" = on ] || put "sys/kernel/debug/mmopt/$1/enabled" 0
	for dir in "$debug"/*/; do
		state=$(cat "$dir/state")
		printf '%s %s\n' "$(basename "$dir")" "$state"
	done >"$debug/status.new"
	mv "$debug/status.new" "$debug/status"
	chmod 0444 "$debug/status" "$debug/$1/state"
}

tree_path() {
	path_state "$1" "${2:-off}"
	put "sys/kernel/debug/mmopt/$1/observe" 0
	put "sys/kernel/debug/mmopt/$1/stats" 'v: 1' 'calls 0' 'taken 0' 'stock 0' \
		'pages 0' 'nmissed 0'
	put "sys/kernel/debug/mmopt/$1/explain" 'v: 1' 'mechanism callsite'
	chmod 0444 "$MMOPT_ROOT/sys/kernel/debug/mmopt/$1"/{stats,explain}
}

# A host that fits, with nothing loaded.
tree_host() {
	mkdir -p "$MMOPT_ROOT/sys/module" "$MMOPT_ROOT/sys/kernel/livepatch"
	put proc/sys/kernel/osrelease "$RELEASE"
	put proc/sys/kernel/arch x86_64
	put proc/sys/kernel/ftrace_enabled 1
	put proc/sys/kernel/modules_disabled 0
	put proc/cmdline 'BOOT_IMAGE=/boot/vmlinuz root=/dev/vda ro quiet'
	put proc/mounts 'sysfs /sys sysfs rw 0 0' \
		'debugfs /sys/kernel/debug debugfs rw,nosuid 0 0'
	put sys/kernel/debug/kprobes/enabled 1
	put sys/kernel/debug/kprobes/list
	put sys/kernel/security/lockdown '[none] integrity confidentiality'
	put sys/module/module/parameters/sig_enforce N
	put sys/kernel/btf/vmlinux BTF
	put "boot/config-$RELEASE" '# a comment' CONFIG_{MODULES,KPROBES,KALLSYMS_ALL}=y \
		CONFIG_{DYNAMIC_FTRACE_WITH_REGS,HAVE_STATIC_CALL_INLINE}=y \
		CONFIG_{DEBUG_INFO_BTF,DEBUG_FS,PER_VMA_LOCK,KSM}=y
	put "lib/modules/$RELEASE/build/Makefile"
}

tree_loaded() {
	put sys/module/mmopt/version "${MMOPT_VERSION:-0.1.0}"
	put sys/module/mmopt/initstate live
	put sys/module/mmopt/parameters/enable none
	put sys/module/mmopt/parameters/allow_untested N
	mkdir -p "$MMOPT_ROOT/sys/module/mmopt/holders"
	put sys/kernel/debug/mmopt/version "${MMOPT_VERSION:-0.1.0}"
	put sys/kernel/debug/mmopt/status
	: >"$MMOPT_ROOT/sys/kernel/debug/mmopt/status"
}

# A tracefs whose instances' trace_pipe is $MMOPT_ROOT/.pipe.
tree_tracefs() {
	put proc/mounts 'debugfs /sys/kernel/debug debugfs rw,nosuid 0 0' \
		'tracefs /sys/kernel/tracing tracefs rw,nosuid 0 0'
	mkdir -p "$MMOPT_ROOT"/sys/kernel/tracing/{events/mmopt,instances}
	mkfifo "$MMOPT_ROOT/.pipe"
}

tree_instance() {
	local option

	put "$1/trace_clock" '[local] global counter'
	put "$1/buffer_percent" 50
	put "$1/events/mmopt/enable" 0
	put "$1/events/mmopt/filter" none
	for option in bin hex raw context-info irq-info record-tgid latency-format; do
		put "$1/options/$option" 1
	done
	ln "$MMOPT_ROOT/.pipe" "$MMOPT_ROOT$1/trace_pipe"
}

# tree_task PID TID COMM [FUNCTION]: a task, perhaps inside of FUNCTION of the module.
tree_task() {
	put "proc/$1/task/$2/comm" "$3"
	put "proc/$1/task/$2/stack" '[<0>] do_nanosleep+0x60/0x1b0' \
		${4:+"[<0>] $4+0x2c/0x90 [mmopt]"} '[<0>] do_syscall_64+0xc4/0x560'
}

# tree_module [RELEASE]: a file that libkmod takes for our module.
tree_module() {
	local dir=$MMOPT_ROOT/lib/modules/$RELEASE

	mkdir -p "$dir/updates/dkms"
	cat >"$MMOPT_ROOT/mmopt.c" <<END
#define INFO(name, text) \\
static const char name[] __attribute__((section(".modinfo"), used)) = text
INFO(a, "name=mmopt");
INFO(b, "version=0.1.0");
INFO(c, "vermagic=${1:-$RELEASE} SMP preempt mod_unload ");
INFO(d, "parm=enable:paths to switch on, not: others (default: none)");
INFO(e, "parmtype=allow_untested:bool");
INFO(f, "license=GPL");
END
	gcc -c -o "$dir/updates/dkms/mmopt.ko" "$MMOPT_ROOT/mmopt.c"
	touch "$dir/modules.order" "$dir/modules.builtin"
	touch "$dir/modules.builtin.modinfo"
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$MMOPT_ROOT" "$RELEASE"
}

# Appends what marks a module as signed: signer, key, signature, their lengths.
tree_sign() {
	printf 'someone'"key"'sig\0\0\001\007\003\0\0\0\0\0\0\003~Module signature appended~\n' \
		>>"$MMOPT_ROOT/lib/modules/$RELEASE/updates/dkms/mmopt.ko"
}
