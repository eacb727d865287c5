#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
# guest-kernel: debian13-backports
#
# Redis, which forks to write a snapshot: that has what was there at the fork,
# whatever is written meanwhile, and as much is copied on write as ever.

load helpers
load ../lib/redis

KEYS=40000

setup()
{
	begin_test
	require_path copy
	redis_start "$BATS_TEST_TMPDIR" $KEYS 3000
}

teardown()
{
	redis_stop
	end_test
}

# Writes to each key while a snapshot is taken, and loads that: sets COW and FORK.
snapshot_stands()
{
	local before

	before=$(redis debug digest)
	redis_snapshot
	redis eval "for i = 0, $KEYS - 1 do
			redis.call('setrange', 'key:' .. i, 2500, 'written')
		end" 0
	assert_equal "$(redis_field persistence rdb_bgsave_in_progress)" 1
	refute [ "$(redis debug digest)" = "$before" ]
	redis_wait_snapshot
	assert_equal "$(redis_field persistence rdb_last_bgsave_status)" ok
	COW=$(redis_field persistence rdb_last_cow_size)
	FORK=$(redis_field stats latest_fork_usec)
	assert_equal "$(redis debug reload nosave)" OK
	assert_equal "$(redis debug digest)" "$before"
}

@test "Redis: a snapshot has what was there when it began" {
	local cow fork

	snapshot_stands
	cow=$COW fork=$FORK
	assert_equal "$(stat_of copy calls)" 0

	path_enable copy
	snapshot_stands
	remark "fork $fork us, then $FORK us; copied on write $cow, then $COW bytes"
	assert [ "$(stat_of copy taken)" -ge 1 ]
	assert [ "$cow" -ge $((KEYS * 2500)) ]
	assert [ $((COW * 100)) -ge $((cow * 95)) ]
	assert [ $((COW * 100)) -le $((cow * 105)) ]
}
