#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The packages in a suite's root file system, with no kernel of it running: DKMS
# builds for the kernels that are installed. One test goes on from the other.

load helpers

setup_file()
{
	export DEBS=$BATS_FILE_TMPDIR/debs
	"$BATS_TEST_DIRNAME/build" "$DEBS" >"$BATS_FILE_TMPDIR/log" 2>&1 || {
		cat "$BATS_FILE_TMPDIR/log"
		return 1
	}
}

# The kernels, of any flavour, that have the module; with its version.
built_for()
{
	local file

	for file in /lib/modules/*/updates/dkms/mmopt.ko*; do
		[ ! -e "$file" ] || echo "$(basename "${file%/updates/*}") $(modinfo -F version "$file")"
	done
}

@test "installed: built for the newest kernel, everything off, and no module loaded" {
	assert_equal "$(traces)" ''
	install_debs old
	assert_equal "$(dkms_versions)" "$(version_in old)"
	run built_for
	assert_output --partial "$(version_in old)"
	run mmopt -j apply
	assert_success
	assert_output --partial '"needless":true'
	# the unit was enabled for the next boot, and could not be started here
	assert [ -L /etc/systemd/system/multi-user.target.wants/mmopt.service ]
}

@test "upgraded: only the new version is left, configuration is kept" {
	echo 'enable = madvise' >/etc/mmopt.conf
	install_debs new
	assert_equal "$(dkms_versions)" "$(version_in new)"
	run built_for
	assert_output --partial "$(version_in new)"
	refute_output --regexp " $(version_in old)\$"
	assert_equal "$(echo /usr/src/mmopt-[0-9]*)" "/usr/src/mmopt-$(version_in new)"
	assert_equal "$(cat /etc/mmopt.conf)" 'enable = madvise'
}

@test "another kernel arrives: the module is built for it, by the package of its headers" {
	local headers kernel

	for headers in /usr/src/linux-headers-*-cloud-amd64; do
		kernel=${headers#/usr/src/linux-headers-}
		rm -f "/lib/modules/$kernel/updates/dkms"/mmopt.ko*
		dkms uninstall "mmopt/$(version_in new)" -k "$kernel" || :
		run dpkg-reconfigure "linux-headers-$kernel"
		assert_success
		run built_for
		assert_line "$kernel $(version_in new)"
		run modinfo -F vermagic "/lib/modules/$kernel/updates/dkms"/mmopt.ko*
		assert_output --partial "$kernel "
	done
	assert [ -n "$kernel" ]
}

# The key is made where openssl is: see tests/run.
@test "make sign replaces the signature of what is installed, compressed or not" {
	local kernel file size

	base64 -d <<<"$MMOPT_TEST_KEY" >"$BATS_TEST_TMPDIR/key.pem"
	for file in /lib/modules/*/updates/dkms/mmopt.ko*; do
		kernel=$(basename "${file%/updates/*}")
		run make -s -C "$BATS_TEST_DIRNAME/../.." sign KERNELVER="$kernel" \
			KEY="$BATS_TEST_TMPDIR/key.pem" CERT="$BATS_TEST_TMPDIR/key.pem"
		assert_success
		assert_output "signed: $file, by mmopt test"
		assert_equal "$(modinfo -F version "$file")" "$(version_in new)"
		# once more is no second signature
		size=$(stat -c %s "$file")
		make -s -C "$BATS_TEST_DIRNAME/../.." sign KERNELVER="$kernel" \
			KEY="$BATS_TEST_TMPDIR/key.pem" CERT="$BATS_TEST_TMPDIR/key.pem"
		assert [ $(($(stat -c %s "$file") - size)) -lt 256 ]
	done
	assert [ -n "$file" ]
	run make -s -C "$BATS_TEST_DIRNAME/../.." sign
	assert_failure
	assert_output --partial 'usage: make sign KEY='
}

@test "removed: the module is gone for every kernel, the configuration stays" {
	run dpkg -r mmopt mmopt-dkms
	assert_success
	assert_equal "$(built_for)" ''
	assert_equal "$(dkms status mmopt)" ''
	refute compgen -G '/usr/src/mmopt-[0-9]*'
	assert [ ! -e /usr/sbin/mmopt ]
	assert_equal "$(cat /etc/mmopt.conf)" 'enable = madvise'
}

@test "purged: nothing is left" {
	run dpkg -P mmopt mmopt-dkms
	assert_success
	assert_equal "$(traces)" ''
}
