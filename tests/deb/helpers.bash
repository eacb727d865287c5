# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of the packages begin with.

bats_load_library bats-support
bats_load_library bats-assert

DEBS=${DEBS:-/usr/src/mmopt-debs}

# The version of the packages in a folder below $DEBS.
version_in()
{
	dpkg-deb -f "$DEBS/$1"/mmopt-dkms_*.deb Version
}

# install_debs FOLDER: what dpkg says is left in $output.
install_debs()
{
	run dpkg -i "$DEBS/$1"/mmopt-dkms_*.deb "$DEBS/$1"/mmopt_*.deb
	assert_success
}

# The versions that DKMS knows, in whatever way.
dkms_versions()
{
	dkms status mmopt | sed 's,^mmopt[/ ,]*\([0-9.]*[0-9]\).*,\1,' | sort -u | xargs
}

# What there is of mmopt on the disk, but for the sources of these tests, what
# dpkg logs, and DKMS's own folder of what it replaced.
traces()
{
	find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /run -o \
		-path '/usr/src/mmopt-source' -o -path "$DEBS" -o -path '/var/log' \) -prune \
		-o -name '*mmopt*' -print
}
