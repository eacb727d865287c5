# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The cache: images, QEMU, and what installing mmopt changes in an image. A folder
# has its recipe's hash in its name and is never changed once it is there.

CACHE=${MMOPT_CACHE:-/var/cache/mmopt}
CACHE_MAX_AGE_DAYS=7

# Sets DIR to the folder NAME-RECIPE of the cache, which "MAKE... FOLDER" fills if
# it is not there. Holds a shared lock on it until the process ends.
cache_use()
{
	local name=$1 recipe=$2 new=$CACHE/$1.new lock old

	shift 2
	DIR=$CACHE/$name-$recipe
	mkdir -p "$CACHE"
	exec {lock}>"$CACHE/$name.lock"
	if [ ! -e "$DIR/built" ]; then
		flock -n "$lock" || {
			note "waiting for another run that uses $name"
			flock "$lock"
		}
		if [ ! -e "$DIR/built" ]; then
			cache_make "$@" || die "cannot make $name"
			for old in "$CACHE/$name"-????????????; do
				[ "$old" = "$DIR" ] || rm -rf "$old"
			done
		fi
	elif cache_is_old && flock -n "$lock"; then
		cache_make "$@" || {
			note "cannot renew $name; using the old one"
			touch -d "-$((CACHE_MAX_AGE_DAYS - 1)) days" "$DIR/built"
		}
	fi
	flock -s "$lock"
}

cache_is_old()
{
	[ "$(find "$DIR/built" -mtime +$((CACHE_MAX_AGE_DAYS - 1)))" ]
}

cache_make()
{
	local time='a minute'

	case $name in
	*-kernel) time='20 minutes on two CPUs' ;;
	esac
	note "making $name for the cache (about $time)"
	rm -rf "$new"
	mkdir "$new"
	if ! "$@" "$new"; then
		rm -rf "$new"
		return 1
	fi
	touch "$new/built"
	rm -rf "$DIR"
	mv "$new" "$DIR"
}

hash_of_stdin()
{
	sha256sum | cut -c1-12
}

# Sets IMAGE and RELEASE.
image_use()
{
	local guest=$1 recipe

	guest_suite "$guest" >/dev/null
	recipe=$({
		image_packages "$guest" | sort -u
		cat "$VM/image.bash"
		case $guest in
		*-debug) cat "$VM/debug.config" "$VM/debug-kernel" ;;
		esac
	} | hash_of_stdin)
	cache_use "$guest" "$recipe" image_make "$guest"
	IMAGE=$DIR
	RELEASE=$(cat "$IMAGE/release")
}

# Sets DIR to where the debug kernel of a guest is, which the root file system $2
# has the source of. It is as good as new while that source is.
debug_kernel_use()
{
	local guest=$1 root=$2 recipe

	recipe=$({
		chroot "$root" dpkg-query -W linux-source gcc
		cat "$VM/debug.config" "$VM/debug-kernel"
	} | hash_of_stdin)
	touch -c "$CACHE/$guest-kernel-$recipe/built" 2>/dev/null || :
	cache_use "$guest-kernel" "$recipe" make_debug_kernel "$root"
}

# Sets QEMU to the command that runs it. Not the machine's own: before 8.1, QEMU
# may go on running translated code that a kernel has patched meanwhile, and
# mmopt does nothing but patch ("Oops: int3" on innocent CPUs).
qemu_use()
{
	local lib

	cache_use qemu "$(hash_of_stdin <"$VM/image.bash")" qemu_make
	lib=$DIR/root/usr/lib/x86_64-linux-gnu
	# shellcheck disable=SC2034 # for boot.bash
	QEMU=(
		"$DIR/root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$lib"
		"$DIR/root/usr/bin/qemu-system-x86_64"
		-L "$DIR/root/usr/share/qemu" -L "$DIR/root/usr/share/seabios"
	)
}

# The files that git knows or would take, without what it ignores.
source_files()
{
	if git -C "$TOP" rev-parse --git-dir >/dev/null 2>&1; then
		git -c safe.directory='*' -C "$TOP" ls-files -z -co --exclude-standard |
			(cd "$TOP" && while IFS= read -r -d '' f; do
				[ ! -e "$f" ] || printf '%s\0' "$f"
			done)
	else
		(cd "$TOP" && find . -type f -print0)
	fi | LC_ALL=C sort -z
}

# Sets TREE to a tar of the source tree that is the same whenever its files are.
pack_tree()
{
	TREE=$RUN/tree.tar
	source_files |
		tar -cf "$TREE" -C "$TOP" --null -T - --numeric-owner \
			--owner=0 --group=0 --mtime=@0 --format=gnu
}

# view COMMAND ...: see the script of that name. The mount namespace takes every
# mount with it, however this ends.
view()
{
	unshare -m "$VM/view" "$IMAGE/root" "$RELEASE" "$TREE" "$@"
}

# install_use GUEST MODE: sets DELTA to a tar of what installing mmopt changes in the
# image, see view. Kept, as most guests are booted with the same tree; the newest
# few are enough.
install_use()
{
	local key name=$1

	[ "$2" = install ] || name=$1-$2
	mkdir -p "$CACHE/install"
	pack_tree
	key=$({ sha256sum <"$TREE"; stat -c %i-%Y "$IMAGE/vmlinux"; } |
		hash_of_stdin)
	DELTA=$CACHE/install/$name-$key.tar
	exec 8>"$CACHE/install/$name.lock"
	flock 8
	if [ ! -e "$DELTA" ]; then
		note "installing mmopt in $1 ($RELEASE)"
		view "$2" "$DELTA" >"$RUN/install.log" 2>&1 || {
			cat "$RUN/install.log" >&2
			die "installation in $1 failed"
		}
		# shellcheck disable=SC2012 # the names are our own
		ls -t "$CACHE/install/$name-"????????????.tar | tail -n +4 |
			xargs -r rm -f
	else
		touch "$DELTA"
	fi
	# An open file survives its removal by another run.
	exec 7<"$DELTA"
	DELTA=/proc/self/fd/7
	exec 8>&-
}

no_install()
{
	mkdir -p "$RUN/empty/usr/src/mmopt-source"
	tar -cf "$RUN/empty.tar" -C "$RUN/empty" .
	DELTA=$RUN/empty.tar
}
