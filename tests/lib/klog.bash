# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Gate of a bats test on the kernel log: klog_mark in setup, klog_assert_clean
# in teardown.

# shellcheck source=tests/lib/klog.sh
. "${BASH_SOURCE[0]%/*}/klog.sh"

klog_mark()
{
	KLOG_MARKER="mmopt: test $BATS_TEST_NUMBER of ${BATS_TEST_FILENAME##*/} begins ($$-$RANDOM)"
	echo "$KLOG_MARKER" >/dev/kmsg
}

klog_assert_clean()
{
	dmesg | klog_check "$KLOG_MARKER" || {
		echo "--- kernel log of this test"
		dmesg | sed -n "/$BATS_TEST_NUMBER of ${BATS_TEST_FILENAME##*/} begins/,\$p" |
			tail -n 80
		return 1
	}
}
