# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# mmopt as the guest tests see it: its files, loading and unloading. Nothing here
# goes through the command line tool, so that it can be judged by this.

MMOPT=/sys/kernel/debug/mmopt
# shellcheck disable=SC2034 # for the tests
MMOPT_PARAMETERS=/sys/module/mmopt/parameters

# wait_until SECONDS COMMAND...: asks again until the command succeeds.
wait_until()
{
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		if ((SECONDS >= end)); then
			echo "still not so: $*"
			return 1
		fi
		read -rt 0.05 <> <(:) || :
	done
}

mmopt_is_loaded()
{
	[ -d /sys/module/mmopt ]
}

mmopt_load()
{
	modprobe mmopt "$@"
}

# The paths that the loaded module has.
mmopt_paths()
{
	local dir

	for dir in "$MMOPT"/*/; do
		dir=${dir%/}
		echo "${dir##*/}"
	done
}

# Takes everything out again, in the order in which the kernel lets go of it.
mmopt_unload()
{
	local patch

	mmopt_is_loaded || return 0
	for patch in $(mmopt_paths); do
		[ "$(cat "$MMOPT/$patch/enabled")" != 1 ] ||
			echo 0 >"$MMOPT/$patch/enabled"
		echo 0 >"$MMOPT/$patch/observe"
	done
	for patch in /sys/kernel/livepatch/mmopt_lp_*; do
		[ -d "$patch" ] || continue
		[ "$(cat "$patch/enabled")" != 1 ] || echo 0 >"$patch/enabled"
		wait_until 60 test ! -d "$patch" || return 1
	done
	for patch in /sys/module/mmopt_lp_*; do
		[ ! -d "$patch" ] || rmmod "${patch##*/}" || return 1
	done
	rmmod mmopt
}

path_enable()
{
	echo 1 >"$MMOPT/$1/enabled"
}

path_disable()
{
	echo 0 >"$MMOPT/$1/enabled"
}

path_state()
{
	cat "$MMOPT/$1/state"
}

# The state without the reason that may follow it.
path_state_word()
{
	local state

	state=$(path_state "$1")
	echo "${state%%[: ]*}"
}

path_is_available()
{
	[ "$(path_state_word "$1")" != unavailable ]
}

path_reset()
{
	echo 1 >"$MMOPT/$1/reset"
}

# stat_of PATH KEY: one figure; a key that is not there is an error.
stat_of()
{
	awk -v key="$2:" '
		$1 == key || $1 ":" == key { print $2; found = 1 }
		END { exit !found }' "$MMOPT/$1/stats" || {
		echo "no '$2' in the statistics of $1" >&2
		return 1
	}
}
