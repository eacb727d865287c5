# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A Redis server with much in its memory, whose snapshots fork.

# A guest's network is down.
REDIS_SOCKET=/tmp/mmopt-redis.socket

redis()
{
	redis-cli -s $REDIS_SOCKET "$@"
}

# redis_field SECTION FIELD: a line of INFO
redis_field()
{
	redis info "$1" | tr -d '\r' | sed -n "s/^$2://p"
}

# redis_start DIR KEYS BYTES: with that many keys of that size
redis_start()
{
	redis-server --port 0 --unixsocket $REDIS_SOCKET --dir "$1" --logfile "$1/redis.log" --daemonize yes \
		--pidfile "$1/redis.pid" --save '' --enable-debug-command yes \
		--rdbcompression no --rdbchecksum no >/dev/null
	until redis ping >/dev/null 2>&1; do
		sleep 0.2
	done
	# a snapshot takes longer than what is done meanwhile
	redis config set rdb-key-save-delay 50 >/dev/null
	[ "$(redis debug populate "$2" key "$3")" = OK ]
}

redis_stop()
{
	redis shutdown nosave now >/dev/null 2>&1 || :
	while pgrep -x redis-server >/dev/null; do
		sleep 0.2
	done
}

# Comes back when the server has forked.
redis_snapshot()
{
	redis bgsave | grep -q '^Background saving started'
}

redis_wait_snapshot()
{
	while [ "$(redis_field persistence rdb_bgsave_in_progress)" != 0 ]; do
		sleep 0.2
	done
}

# Ends the snapshot early, as Redis itself does it.
redis_end_snapshot()
{
	pkill -USR1 -P "$(pgrep -ox redis-server)" || :
	redis_wait_snapshot
}
