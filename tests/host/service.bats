#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# What is installed for the boot: unit, configuration, sample for modprobe.d.

load helpers/mmopt

# Each test has the unit made anew, for a place of its own; bats reads this.
# shellcheck disable=SC2034
BATS_NO_PARALLELIZE_WITHIN_FILE=true

ETC=$BATS_TEST_DIRNAME/../../userspace/etc

# The unit as "make install" leaves it, with the program that it names.
install_unit() {
	DEST=$BATS_TEST_TMPDIR/dest
	make -s -C "$BATS_TEST_DIRNAME/../../userspace" O="$(dirname "$MMOPT")" SANITIZE=1 \
		PREFIX="$DEST" SYSCONFDIR="$DEST/etc" install
	UNIT=$DEST/lib/systemd/system/mmopt.service
}

# How systemd reads it, for each line "KEY=VALUE".
setting() {
	sed -n "s/^$1=//p" "$UNIT"
}

@test "systemd has nothing to say about the unit" {
	install_unit
	run systemd-analyze verify --man=no "$UNIT"
	assert_success
	assert_output ''
	# and would say so
	sed -i 's/^ExecStop=.*/&\nExecStopp=x/' "$UNIT"
	run systemd-analyze verify --man=no "$UNIT"
	assert_output --partial ExecStopp
}

@test "the unit applies after debugfs is there, and unloads at the end" {
	local start stop

	install_unit
	assert_equal "$(setting Type) $(setting RemainAfterExit)" 'oneshot yes'
	run setting After
	assert_output --partial sys-kernel-debug.mount
	# which may still be building the module for a new kernel
	assert_output --partial dkms.service
	# longer than unload waits for calls of one path
	assert [ "$(setting TimeoutStopSec)" -gt 60 ]
	start=$(setting ExecStart)
	stop=$(setting ExecStop)
	assert_equal "$start" "$DEST/sbin/mmopt apply"
	assert_equal "$stop" "$DEST/sbin/mmopt unload"

	tree_loaded
	tree_path madvise off
	put etc/mmopt.conf 'enable = madvise'
	# shellcheck disable=SC2086 # as systemd splits it
	MMOPT=${start%% *} run_mmopt ${start#* }
	assert_success
	assert_output 'madvise: on'
	# shellcheck disable=SC2086
	MMOPT=${stop%% *} run_mmopt ${stop#* }
	assert_success
	assert_output 'mmopt is unloaded'
}

@test "with nommopt the unit does not start" {
	local condition

	install_unit
	condition=$(sed -n 's/^\(ConditionKernelCommandLine=.*\)/\1/p' "$UNIT")
	assert_equal "$condition" 'ConditionKernelCommandLine=!nommopt'
	run env SYSTEMD_PROC_CMDLINE='quiet nommopt' systemd-analyze condition "$condition"
	assert_failure
	run env SYSTEMD_PROC_CMDLINE='quiet' systemd-analyze condition "$condition"
	assert_success
}

@test "the configuration that is installed is right, and wants nothing" {
	run_mmopt -j apply --check "$ETC/mmopt.conf"
	assert_success
	assert_json '.enable == []'
	# what it holds as comments is right too
	sed 's/^#\([a-z]\)/\1/' "$ETC/mmopt.conf" >"$MMOPT_ROOT/all.conf"
	run_mmopt apply --check "$MMOPT_ROOT/all.conf"
	assert_success
	run grep -c '^[a-z]' "$MMOPT_ROOT/all.conf"
	assert [ "$output" -ge 3 ]
}

@test "the sample for modprobe.d names parameters that the module has" {
	local params

	params=$(sed -n 's/.*module_param[a-z_]*(\([a-z_]*\),.*/\1/p' \
		"$BATS_TEST_DIRNAME/../../module/params.c" | sort | xargs)
	run bash -c "sed -n 's/^#options mmopt \([a-z_]*\)=.*/\1/p' '$ETC/modprobe.conf' | sort | xargs"
	assert_output "$params"
	tree_module
	put etc/modprobe.d/mmopt.conf "$(sed 's/^#options/options/' "$ETC/modprobe.conf")"
	run_mmopt load
	assert_success
	run asked
	assert_output --partial 'enable=madvise,mremap allow_untested=1'
}

@test "mmopt.conf(5) explains exactly the keys that there are" {
	local keys page tunables

	page=$(dirname "$MMOPT")/mmopt.conf.5
	keys=$(sed -n '/^\.SH SETTINGS/,/^\.SH EX/p' "$page" |
		awk '/^\.RS/ { print last } { last = $0 }' | sed 's/\\f[BIR]//g; s/\\&//g')
	tunables=$(awk '/define MMOPT_[A-Z]*_TUNABLES/ {
			split($2, word, "_"); path = tolower(word[2])
		}
		/^$/ { path = "" }
		path && sub(/^\tX\(/, "") { sub(/,.*/, ""); print path "." $0 }' \
		"$BATS_TEST_DIRNAME/../../include/mmopt/abi.h")
	assert [ -n "$tunables" ]
	assert_equal "$(sort <<<"$keys")" "$(printf '%s\n' allow_untested enable "$tunables" | sort)"
	for key in $keys; do
		put etc/mmopt.conf "$key ="
		run_mmopt apply --check
		assert_failure 2
		# shellcheck disable=SC2154
		refute [ "${stderr/unknown key/}" != "$stderr" ]
	done
}
