# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Starts a guest under QEMU. What the guest is to do lies in $RUN/guest, and
# what it says comes back in $RUN.

MACHINE=(
	-nodefaults -no-user-config -no-reboot -display none
	-machine q35 -cpu max
	-device virtio-serial-pci
)

# /dev/kvm proves nothing: there are machines where it opens, makes a virtual
# machine and runs it hundreds of times slower than emulation. Only a boot that
# ends in time does, so "auto" tries one.
accel()
{
	case ${MMOPT_ACCEL:-tcg} in
	tcg) echo tcg ;;
	kvm) echo kvm ;;
	auto)
		if [ -w /dev/kvm ] && MMOPT_ACCEL=kvm "$VM/guest" run "$1" \
			--timeout 10 -- true >/dev/null 2>&1; then
			echo kvm
		else
			echo tcg
		fi
		;;
	*) die "MMOPT_ACCEL must be tcg, kvm or auto" ;;
	esac
}

accel_option()
{
	case $1$ICOUNT in
	tcg) echo tcg,thread=multi ;;
	tcgy) echo tcg,thread=single ;;
	kvm) echo kvm ;;
	*) die "instructions can be counted by tcg only" ;;
	esac
}

# A port of the guest, written to the file or fifo $RUN/NAME.
port()
{
	MACHINE+=(
		-chardev "file,id=$1,path=$RUN/$1"
		-device "virtserialport,chardev=$1,name=mmopt.$1"
	)
}

disk()
{
	MACHINE+=(
		-drive "file=$2,id=$1,if=none,format=raw,cache=unsafe"
		-device "virtio-blk-pci,drive=$1"
	)
}

# boot DELTA APPEND: one guest, from kernel to power-off.
boot()
{
	local delta=$1 append=$2 name accel

	# shellcheck disable=SC2153 # set by tests/vm/guest
	accel=$(accel_option "$ACCEL")
	qemu_use
	cp "$VM/initramfs-init" "$RUN/guest-tree/init"
	cp "$VM/guest-init" "$RUN/guest-tree/guest/init"
	{
		cat "$IMAGE/modules.cpio"
		pack_cpio "$RUN/guest-tree"
	} >"$RUN/initrd"

	disk root "$IMAGE/base.ext4"
	disk delta "$delta"
	for name in out err log files status; do
		port "$name"
	done
	[ -z "$ICOUNT" ] || MACHINE+=(-icount shift=0)
	TMPDIR=$RUN "${LIMIT[@]}" "${QEMU[@]}" "${MACHINE[@]}" -snapshot \
		-accel "$accel" -smp "${MMOPT_CPUS:-2}" -m "$MEM" \
		-kernel "$IMAGE/vmlinuz" -initrd "$RUN/initrd" \
		-append "console=ttyS0 loglevel=5 log_buf_len=4M panic_on_warn=1 oops=panic panic=-1 $append" \
		"${CONSOLE[@]}"
}
