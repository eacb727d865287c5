#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The packages: built here and looked at. tests/deb installs them.

bats_load_library bats-support
bats_load_library bats-assert

TOP=$BATS_TEST_DIRNAME/../..

setup_file() {
	export DIST=$BATS_FILE_TMPDIR/dist
	make -s -C "$TOP" deb DIST="$DIST" >"$BATS_FILE_TMPDIR/log" 2>&1 || {
		cat "$BATS_FILE_TMPDIR/log"
		return 1
	}
	VERSION=$(version_of 's/^#define MMOPT_VERSION[[:space:]]*"\(.*\)"/\1/p' include/mmopt/abi.h)
	export VERSION
}

# version_of SED FILE
version_of() {
	sed -n "$1" "$TOP/$2"
}

# The files of a package, without folders.
files_of() {
	dpkg-deb -c "$DIST"/"$1"_*.deb | awk '$1 !~ /^d/ { print substr($6, 2) }' | sort
}

field_of() {
	dpkg-deb -f "$DIST"/"$1"_*.deb "$2"
}

@test "one version everywhere" {
	assert [ -n "$VERSION" ]
	assert_equal "$(version_of 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)" "$VERSION"
	assert_equal "$(version_of '1s/^mmopt (\(.*\)).*/\1/p' debian/changelog)" "$VERSION"
	assert_equal "$(version_of 's/^Version:  *//p' packaging/mmopt.spec)" "$VERSION"
	assert_equal "$(field_of mmopt Version)" "$VERSION"
	assert_equal "$(field_of mmopt-dkms Version)" "$VERSION"
}

@test "lintian has nothing to say of errors and warnings" {
	run lintian --allow-root --fail-on error,warning --pedantic "$DIST"/*.changes
	assert_output ''
	assert_success
}

@test "mmopt has the tool, and what make install installs" {
	make -s -C "$TOP/userspace" O="$BATS_TEST_TMPDIR/o" DESTDIR="$BATS_TEST_TMPDIR/dest" \
		PREFIX=/usr install
	find "$BATS_TEST_TMPDIR/dest" -type f -printf '/%P\n' | sed 's,.*/,,' | sort \
		>"$BATS_TEST_TMPDIR/installed"
	files_of mmopt | sed 's,.*/,,; s/\.[0-9]\.gz$/&/; s/\.gz$//' | sort \
		>"$BATS_TEST_TMPDIR/packed"
	run comm -23 "$BATS_TEST_TMPDIR/installed" "$BATS_TEST_TMPDIR/packed"
	assert_output ''
	run field_of mmopt Depends
	assert_output --partial libkmod2
	assert_output --partial libjson-c5
	run dpkg-deb --ctrl-tarfile "$DIST"/mmopt_*.deb
	assert_success
	run bash -c "dpkg-deb --ctrl-tarfile '$DIST'/mmopt_*.deb | tar -xO ./conffiles"
	assert_output /etc/mmopt.conf
}

@test "mmopt-dkms has exactly what the module is built from" {
	(cd "$TOP" && find Kbuild dkms.conf include module -name '[!.]*' -type f \
		! -name '*.o' ! -name '*.ko' ! -name '*.mod*') |
		sed "s,^,/usr/src/mmopt-$VERSION/," | sort >"$BATS_TEST_TMPDIR/source"
	run diff "$BATS_TEST_TMPDIR/source" <(files_of mmopt-dkms | grep ^/usr/src)
	assert_output ''
	assert_equal "$(field_of mmopt-dkms Architecture)" all
	run field_of mmopt-dkms Depends
	assert_output --partial dkms
}

@test "an upgrade neither restarts the service nor stops it" {
	local script

	mkdir "$BATS_TEST_TMPDIR/control"
	dpkg-deb -e "$DIST"/mmopt_*.deb "$BATS_TEST_TMPDIR/control"
	for script in "$BATS_TEST_TMPDIR"/control/p*; do
		sh -n "$script"
		refute grep -q 'restart' "$script"
	done
	# stopped when removed only
	run grep -B2 'deb-systemd-invoke stop' "$BATS_TEST_TMPDIR/control/prerm"
	assert_output --partial '= remove ]'
}

@test "the RPM spec is accepted, and builds" {
	local rpms=$BATS_TEST_TMPDIR/rpm

	run rpmspec -P "$TOP/packaging/mmopt.spec"
	assert_success
	run rpmlint -r "$TOP/packaging/mmopt.rpmlintrc" "$TOP/packaging/mmopt.spec"
	assert_success
	assert_output --partial '0 errors, 0 warnings'

	# Debian's rpm lacks Fedora's macros for systemd, and knows no package of ours
	make -s -C "$TOP" dist DIST="$rpms/SOURCES"
	run rpmbuild -bb --nodeps --define "_topdir $rpms" --define 'build_ldflags %{nil}' \
		--define '_unitdir /usr/lib/systemd/system' --define 'systemd_post() :' \
		--define 'systemd_preun() :' --define 'systemd_postun() :' \
		"$TOP/packaging/mmopt.spec"
	assert_success
	run rpm -qlp "$rpms"/RPMS/noarch/mmopt-dkms-*.rpm
	assert_line "/usr/src/mmopt-$VERSION/dkms.conf"
	run rpm -qcp "$rpms"/RPMS/x86_64/mmopt-*.rpm
	assert_output /etc/mmopt.conf
}

@test "a key in a token is left to sign-file, other files are looked for" {
	local dir=$BATS_TEST_TMPDIR

	echo 'static int nothing __attribute__((used));' >"$dir/mmopt.c"
	gcc -c -o "$dir/mmopt.ko" "$dir/mmopt.c"
	# shellcheck disable=SC2016 # for that program to expand
	printf '#!/bin/sh\necho "$2 $3" >%s\necho signature >>"$4"\n' "$dir/asked" >"$dir/sign-file"
	chmod +x "$dir/sign-file"
	touch "$dir/cert"
	run "$TOP/packaging/sign-module" "$dir/sign-file" 'pkcs11:object=mok' "$dir/cert" "$dir/mmopt.ko"
	assert_success
	assert_equal "$(<"$dir/asked")" "pkcs11:object=mok $dir/cert"
	assert_equal "$(tail -c 10 "$dir/mmopt.ko")" signature
	for missing in key mok.pkcs11:x; do
		run "$TOP/packaging/sign-module" "$dir/sign-file" "$dir/$missing" "$dir/cert" "$dir/mmopt.ko"
		assert_failure 1
		assert_output "mmopt: $dir/$missing: cannot be read"
	done
}
