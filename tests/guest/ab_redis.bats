#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# mmopt ab under a Redis that takes one snapshot after the other while it is written
# to, with every path that there is: copy makes its forks faster, the others do not.
#
# guest-kernel: debian13-backports

bats_require_minimum_version 1.5.0
load helpers
load ../lib/redis

CLIENTS=()

# About one snapshot a second, into memory: to write it takes much longer than to fork.
setup()
{
	begin_test
	require_path copy
	[[ $MMOPT_GUEST != *-debug ]] ||
		skip "how long a fork takes on a kernel that checks itself says nothing"
	DIR=$BATS_TEST_TMPDIR/redis
	mkdir "$DIR"
	mount -t tmpfs none "$DIR"
	redis_start "$DIR" 1500 65536
	redis config set rdb-key-save-delay 0
	redis config set hz 100
	redis -r -1 -i 0.05 bgsave >/dev/null 2>&1 3>&- &
	CLIENTS+=($!)
	redis -r -1 -i 0.05 incr writes >/dev/null 2>&1 3>&- &
	CLIENTS+=($!)
}

teardown()
{
	[ ! "${CLIENTS[*]}" ] || kill "${CLIENTS[@]}"
	redis_stop
	! mountpoint -q "${DIR:-}" || umount "$DIR"
	end_test
}

@test "snapshots of Redis: copy is faster, no other path is said to be" {
	local paths forks

	mapfile -t paths < <(awk '$2 == "off" { print $1 }' "$MMOPT/status")
	forks=$(redis_field stats total_forks)
	run --separate-stderr mmopt -j ab --seconds 60 --window 1.5 "${paths[@]}" \
		--lower-is-better --metric \
		"redis-cli -s $REDIS_SOCKET info stats | sed -n 's/^latest_fork_usec://p'"
	# shellcheck disable=SC2154 # of run
	remark "$(($(redis_field stats total_forks) - forks)) forks" "$(jq -r '.paths[] |
		"\(.path): \(.verdict), ratio \(.ratio) (\(.ratio_low) to \(.ratio_high)), \(.pairs) pairs; " +
		"fork: \(.metric.verdict), \(.metric.off) and \(.metric.on) us"' <<<"$output")" "$stderr"
	assert_success
	assert_equal "$(jq -r '.paths[] | select(.path == "copy") | .verdict' <<<"$output")" faster
	assert_equal "$(jq -r '[.paths[] | select(.verdict == "faster")] | length' <<<"$output")" 1
}
