#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# kernel.ftrace_enabled: 0 means that nothing is hooked, and that mmopt says so.

load helpers

FTRACE=/proc/sys/kernel/ftrace_enabled

setup()
{
	klog_mark
	mmopt_unload
}

teardown()
{
	echo 1 >$FTRACE
	mmopt_unload
	klog_assert_clean
}

teardown_file()
{
	mmopt_load
}

# 7.x kernels do not let go of ftrace any more.
switchable()
{
	run poke $FTRACE "0\n"
	poke $FTRACE "1\n" >/dev/null
	[ "$output" = ok ]
}

@test "where ftrace cannot be switched off, the kernel says so" {
	! switchable || skip "ftrace can be switched off here"
	assert_output EOPNOTSUPP
	assert_equal "$(<$FTRACE)" 1
}

@test "with ftrace off, the module loads and every path is unavailable" {
	local path

	switchable || skip "ftrace cannot be switched off here"
	echo 0 >$FTRACE
	mmopt_load
	for path in $(mmopt_paths); do
		run path_state "$path"
		assert_output --regexp '^unavailable: .*ftrace_enabled'
		run poke "$MMOPT/$path/enabled" 1
		assert_output EOPNOTSUPP
	done
	run mmopt check
	assert_output --partial ftrace
	run awk '$2 !~ /^unavailable/' "$MMOPT/status"
	assert_output ""

	mmopt_unload
	echo 1 >$FTRACE
	mmopt_load
	require_path madvise
	path_enable madvise
	"$PROG/advise" <<<"run 3" >/dev/null
	assert_equal "$(stat_of madvise taken)" 3
}

@test "with ftrace switched off later, no path pretends to be on" {
	local path state

	switchable || skip "ftrace cannot be switched off here"
	mmopt_load
	echo 0 >$FTRACE
	for path in $(mmopt_paths); do
		path_is_available "$path" || continue
		run poke "$MMOPT/$path/enabled" 1
		state=$(path_state "$path")
		if [ "$output" = ok ]; then
			# it has no use for ftrace, and works
			assert_equal "$state" on
			refute [ "$path" = mremap ]
			[ "$path" = madvise ] || continue
			path_reset madvise
			"$PROG/advise" <<<"run 3" >/dev/null
			assert_equal "$(stat_of madvise taken)" 3
		else
			assert_output EBUSY
			assert_regex "$state" '^off: .*ftrace_enabled'
		fi
	done
}

@test "a path that hooks by ftrace keeps it on" {
	switchable || skip "ftrace cannot be switched off here"
	mmopt_load
	require_path mremap
	path_enable mremap
	run poke $FTRACE 0
	assert_output EBUSY
	assert_equal "$(<$FTRACE)" 1
	path_disable mremap
	run poke $FTRACE 0
	assert_output ok
}
