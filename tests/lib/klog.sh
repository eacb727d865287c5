# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The gate on the kernel log, for host and guest alike.

KLOG_BAD='BUG:|WARNING:|Oops|Call Trace|possible recursive locking|suspicious RCU'
KLOG_BAD="$KLOG_BAD|blocked for more than|Bad page|rss-counter|non-zero pgtables"
KLOG_BAD="$KLOG_BAD|bad unlock|Missing ENDBR|ftrace_bug"

# klog_check MARKER: reads a kernel log; prints what is wrong after the marker.
# A marker that is gone is a failure: nobody knows what went with it. That the OOM
# killer tells who called it is no complaint; some tests make memory short.
klog_check()
{
	awk -v marker="$1" -v bad="$KLOG_BAD" '
		index($0, marker) { seen = 1; next }
		/invoked oom-killer:/ { oom = 1 }
		oom && /Call Trace/ { oom = 0; next }
		seen && $0 ~ bad { print "kernel log: " $0; dirty = 1 }
		END {
			if (!seen) {
				print "kernel log: lost its marker: " marker
				exit 1
			}
			exit dirty
		}'
}
