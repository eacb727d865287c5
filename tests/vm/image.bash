# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Makes a guest image from nothing, and a QEMU to run it:
#
#   root/           the suite's root file system, to build things in
#   base.ext4       the part of it that the guest needs, as a disk
#   modules.cpio    busybox and the kernel modules that mount the disk
#   vmlinuz vmlinux release
#
# A change of this file makes new images: what only uses them is in cache.bash.

GUESTS=(debian12 debian13 debian13-backports)
# Not the distribution's kernel, but its source built with debug.config.
DEBUG_GUESTS=(debian13-debug debian13-backports-debug)

# Not needed by any test, and most of what a kernel package weighs.
EXCLUDE=(
	'/usr/share/doc/*' '/usr/share/locale/*' '/usr/share/man/*'
	'/usr/share/info/*' '/usr/share/i18n/*'
	'*/lib/modules/*/kernel/drivers/gpu/*'
	'*/lib/modules/*/kernel/drivers/infiniband/*'
	'*/lib/modules/*/kernel/drivers/media/*'
	'*/lib/modules/*/kernel/drivers/net/ethernet/*'
	'*/lib/modules/*/kernel/drivers/net/wireless/*'
	'*/lib/modules/*/kernel/drivers/scsi/*'
	'*/lib/modules/*/kernel/drivers/usb/*'
	'*/lib/modules/*/kernel/sound/*'
)

guest_suite()
{
	case $1 in
	debian12) echo bookworm ;;
	debian13 | debian13-backports) echo trixie ;;
	debian13-debug | debian13-backports-debug) echo trixie ;;
	*) die "no guest '$1'; there are: ${GUESTS[*]} ${DEBUG_GUESTS[*]}" ;;
	esac
}

# One package a line, '#' comments.
package_list()
{
	sed 's/#.*//' "$@" | tr -s '[:space:]' '\n' | sed '/^$/d'
}

image_packages()
{
	local kernel=kernel

	case $1 in
	*-debug) kernel=debug ;;
	esac
	package_list "$VM"/packages/{build,clients,peers,test,$kernel}
	readme_commands |
		sed -n 's/^\(sudo \)\{0,1\}apt\(-get\)\{0,1\} install//p' |
		tr -s '[:space:]' '\n' | sed -e '/^-/d' -e '/^$/d'
}

# Where this machine takes Debian from; apt knows the origin of what it has
# fetched, and at least the address of what it has not.
mirror()
{
	local label=$1 site

	# shellcheck disable=SC2016 # the format is for apt to expand
	site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' \
		'Origin: Debian' "Label: $label" | head -n 1)
	if [ -z "$site" ]; then
		# shellcheck disable=SC2016
		site=$(apt-get indextargets --format '$(RELEASE) $(SITE)' \
			'Created-By: Packages' |
			awk -v sec="$([ "$label" = Debian ] || echo y)" '
				$1 ~ /^(bookworm|trixie)(-security)?$/ &&
				($1 ~ /-security$/) == (sec == "y") { print $2; exit }')
	fi
	echo "$site"
}

image_sources()
{
	local guest=$1 suite main security

	suite=$(guest_suite "$guest")
	main=${MMOPT_MIRROR:-$(mirror Debian)}
	security=${MMOPT_MIRROR_SECURITY:-$(mirror Debian-Security)}
	[ "$main" ] || die "apt knows no Debian archive on this machine; set MMOPT_MIRROR"
	echo "deb $main $suite main"
	echo "deb $main $suite-updates main"
	[ -z "$security" ] || echo "deb $security $suite-security main"
	case $guest in
	*-backports*) echo "deb $main $suite-backports main" ;;
	esac
}

logged()
{
	"$@" >"$dir/log" 2>&1 || {
		tail -n 40 "$dir/log" >&2
		return 1
	}
}

make_root()
{
	local guest=$1 dir=$2 options=() pattern suite

	suite=$(guest_suite "$guest")
	for pattern in "${EXCLUDE[@]}"; do
		options+=("--dpkgopt=path-exclude=$pattern")
	done
	case $guest in
	*-backports*)
		cat >"$dir/pin" <<-END
			Package: linux-*
			Pin: release n=$suite-backports
			Pin-Priority: 900
		END
		options+=("--setup-hook=mkdir -p \"\$1\"/etc/apt/preferences.d"
			"--setup-hook=cp '$dir/pin' \"\$1\"/etc/apt/preferences.d/kernel")
		;;
	esac
	image_sources "$guest" >"$dir/sources"
	INITRD=No logged mmdebstrap --mode=root --variant=apt --format=directory \
		--aptopt='APT::Install-Recommends "false"' \
		--aptopt='APT::Get::Assume-Yes "true"' \
		--dpkgopt=force-unsafe-io \
		"${options[@]}" \
		--include="$(image_packages "$guest" | sort -u | paste -sd,)" \
		"$suite" "$dir/root" - <"$dir/sources"
}

# Of the kernel's source, only what its own tests of memory are built from.
keep_selftests()
{
	local src=$1/root/usr/src

	mkdir "$src/selftests"
	tar -xf "$src"/linux-source-*.tar.xz -C "$src/selftests" \
		--transform='s,^[^/]*/\(tools/testing/selftests/\)\?,,' \
		--wildcards --no-wildcards-match-slash \
		'*/tools/testing/selftests/kselftest*.h' \
		'*/tools/testing/selftests/[mv]m' \
		'*/mm/gup_test.h' \
		'*/include/vdso/time64.h' || return 1
	rm "$src"/linux-source-*
}

# base.ext4: the root without compilers, headers and package archives.
make_disk()
{
	local dir=$1 thin=$1/thin

	cp -al "$dir/root" "$thin"
	rm -rf "${thin:?}"/boot/* "$thin"/usr/src/* "$thin"/usr/lib/gcc \
		"$thin"/usr/lib/modules/*-{cloud,rt}-* \
		"$thin"/usr/libexec/gcc "$thin"/usr/include \
		"$thin"/var/lib/apt/lists/* "$thin"/var/cache/*
	truncate -s 4G "$dir/base.ext4"
	mke2fs -q -t ext4 -m 0 -O '^has_journal,^metadata_csum' \
		-E lazy_itable_init=1 -d "$thin" "$dir/base.ext4" || return 1
	rm -rf "$thin"
}

make_initramfs()
{
	local dir=$1 release=$2 tree=$1/initramfs module n=10

	mkdir -p "$tree/bin" "$tree/modules"
	cp "$(command -v busybox)" "$tree/bin/busybox"
	chroot "$dir/root" modprobe -S "$release" --show-depends -a \
		virtio_pci virtio_blk virtio_console ext4 |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$tree.list" || return 1
	while read -r module; do
		case $module in
		*.xz) xz -dc "$dir/root$module" ;;
		*.zst) zstd -qdc "$dir/root$module" ;;
		*) cat "$dir/root$module" ;;
		esac >"$tree/modules/$n.ko" || return 1
		n=$((n + 1))
	done <"$tree.list"
	pack_cpio "$tree" >"$dir/modules.cpio" || return 1
	rm -rf "$tree" "$tree.list"
}

pack_cpio()
{
	(cd "$1" && find . | cpio --quiet -o -H newc -R 0:0)
}

# vmlinuz to vmlinux. The boot protocol's header says where the payload is;
# its last four bytes are the unpacked size.
unpack_kernel()
{
	local file=$1 setup offset length magic

	setup=$(od -An -tu1 -j $((0x1f1)) -N1 "$file")
	offset=$(od -An -tu4 -j $((0x248)) -N4 "$file")
	length=$(od -An -tu4 -j $((0x24c)) -N4 "$file")
	offset=$(((setup + 1) * 512 + offset))
	magic=$(od -An -tx1 -j "$offset" -N4 "$file" | tr -d ' ')
	dd if="$file" bs=1M iflag=skip_bytes,count_bytes skip="$offset" \
		count=$((length - 4)) status=none |
		case $magic in
		28b52ffd) zstd -qdc ;;
		fd377a58) xz -dc --single-stream ;;
		1f8b*) gzip -dc ;;
		*) die "$file: kernel packed in an unknown way ($magic)" ;;
		esac
}

# Packs a debug kernel, built in the root file system $1, into the folder $2.
make_debug_kernel()
{
	local root=$1 dir=$2

	# shellcheck disable=SC2016 # for the shell of the namespace
	cp "$VM/debug.config" "$VM/debug-kernel" "$root/tmp" &&
		logged unshare -m sh -ec 'mount -t proc proc "$0/proc"
			exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 \
				sh /tmp/debug-kernel /tmp/debug.config /tmp/kernel.tar
			' "$root" &&
		mv "$root/tmp/kernel.tar" "$dir" &&
		rm "$root/tmp/debug-kernel" "$root/tmp/debug.config"
}

# The kernel is kept for itself: it takes much longer to make than an image, and
# changes more rarely.
install_debug_kernel()
{
	local guest=$1 root=$2

	(
		debug_kernel_use "$guest" "$root"
		tar -xf "$DIR/kernel.tar" -C "$root"
	)
}

image_make()
{
	local guest=$1 dir=$2 kernel

	make_root "$guest" "$dir" || return 1
	case $guest in
	*-debug) install_debug_kernel "$guest" "$dir/root" || return 1 ;;
	esac
	keep_selftests "$dir" || return 1
	# headers of another flavour may have brought its kernel along
	kernel=$(find "$dir/root/boot" -name 'vmlinuz-*' \
		! -name '*-cloud-*' ! -name '*-rt-*' | sort -V | tail -n 1)
	cp "$kernel" "$dir/vmlinuz" &&
		unpack_kernel "$dir/vmlinuz" >"$dir/vmlinux" &&
		make_initramfs "$dir" "${kernel##*/vmlinuz-}" &&
		make_disk "$dir" &&
		echo "${kernel##*/vmlinuz-}" >"$dir/release"
}

# Unpacked only: it runs from where it lies.
qemu_make()
{
	local dir=$1

	image_sources debian13 >"$dir/sources"
	logged mmdebstrap --mode=root --variant=extract --format=directory \
		--aptopt='APT::Install-Recommends "false"' \
		--include=qemu-system-x86 trixie "$dir/root" - <"$dir/sources"
}
