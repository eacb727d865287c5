#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# What the command line shows of a module at work: watch, trace, explain, export.

load helpers

setup()
{
	begin_test
	TOOL=
}

teardown()
{
	[ -z "$TOOL" ] || kill -KILL "$TOOL" 2>/dev/null || :
	end_test
}

# tool ARGUMENT...: mmopt in the background, with its output in files.
tool()
{
	mmopt "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	TOOL=$!
}

# tool_ends STATUS: by itself.
tool_ends()
{
	local rc=0

	wait "$TOOL" || rc=$?
	TOOL=
	assert_equal "$rc" "$1"
	run cat "$BATS_TEST_TMPDIR/err"
}

says()
{
	grep -q "$1" "$BATS_TEST_TMPDIR/out"
}

tracing()
{
	grep -q waiting "$BATS_TEST_TMPDIR/err"
}

@test "trace shows switching and fallbacks, and disturbs nobody" {
	local reason filter=$TRACING/events/mmopt/mmopt_state/filter

	require_path madvise
	echo 'path == "nobody"' >"$filter"
	echo local >"$TRACING/trace_clock"
	tool trace
	wait_until 60 tracing
	assert_equal "$(ls "$TRACING/instances")" "mmopt-$TOOL"
	assert_equal "$(cat "$TRACING/events/mmopt/enable")" 0
	assert_equal "$(cat "$filter")" 'path == "nobody"'
	grep -q '\[local\]' "$TRACING/trace_clock"
	path_enable madvise
	for reason in remote_mm vma_lock userfaultfd; do
		"$PROG/fallback" $reason >/dev/null
		# the kernel does not know the name of a task that has ended: <...>
		wait_until 60 says "  [^ ]*-[0-9]* .*  madvise fallback: $reason, "
	done
	path_disable madvise
	wait_until 60 says "  madvise state: off"
	kill -INT "$TOOL"
	tool_ends 0
	assert_equal "$(ls "$TRACING/instances")" ""
	run grep -c "  madvise state: on$" "$BATS_TEST_TMPDIR/out"
	assert_output 1
	# every line was understood: a time of day, a task, a path
	run grep -Evc '^[0-9:]{8}\.[0-9]{6}  [^ ].*-[0-9]+ +[a-z]+ (state|fallback): ' "$BATS_TEST_TMPDIR/out"
	assert_output 0
	echo 0 >"$filter"
}

@test "trace of named paths shows no others, at their time" {
	local now

	tool -j trace mremap
	wait_until 60 test -d "$TRACING/instances/mmopt-$TOOL"
	wait_until 60 grep -qx 1 "$TRACING/instances/mmopt-$TOOL/events/mmopt/enable"
	path_disable madvise
	now=$(date +%s)
	path_disable mremap
	wait_until 60 says '"path":"mremap","event":"state"'
	kill -INT "$TOOL"
	tool_ends 0
	assert_output ""
	run grep -v '"path":"mremap"' "$BATS_TEST_TMPDIR/out"
	assert_output ""
	run jq -r --argjson now "$now" \
		'.time | sub("[.][0-9]*Z"; "Z") | fromdate - $now | fabs < 120' "$BATS_TEST_TMPDIR/out"
	assert_line --index 0 true
}

@test "the module can be unloaded under trace and watch, which say so" {
	tool trace
	wait_until 60 tracing
	mmopt_unload
	tool_ends 3
	assert_output --partial "the module was unloaded meanwhile"
	assert_equal "$(ls "$TRACING/instances")" ""
	mmopt_load
	tool watch 0.2
	wait_until 60 says '^path'
	wait_until 60 mmopt_unload
	tool_ends 3
	assert_output --partial "the module was unloaded meanwhile"
}

@test "watch counts what the module counts" {
	local path

	require_path madvise
	path_enable madvise
	tool -j watch 0.3
	wait_until 60 says '"path":"madvise"'
	"$PROG/advise" <<<"run 50" >/dev/null
	assert_equal "$(stat_of madvise taken)" 50
	wait_until 60 jq -se 'map(.paths[] | select(.path == "madvise") | .counters.taken) | add == 50' \
		"$BATS_TEST_TMPDIR/out" >/dev/null
	kill -INT "$TOOL"
	tool_ends 0
	assert_output ""
	run jq -s 'map(.paths[] | select(.path == "madvise") | .latency.taken.count) | add' \
		"$BATS_TEST_TMPDIR/out"
	assert_output 50
	run mmopt watch 0.1 2
	assert_success
	for path in $(mmopt_paths); do
		assert_line --regexp "^$path +[a-z]+ +0 +0 "
	done
	assert_equal "$(awk 'length > 80' <<<"$output")" ""
}

@test "explain shows each path, with its sites or why there are none" {
	local path sites

	for path in $(mmopt_paths); do
		run mmopt explain "$path"
		assert_success
		assert_line --regexp "^$path: [^ ]"
		assert_line --index 1 "  state       $(path_state "$path")"
		sites=$(grep -c ^site "$MMOPT/$path/explain" || :)
		assert_equal "$(grep -c ' -> ' <<<"$output" || :)" "$sites"
		run mmopt -j explain "$path"
		assert_success
		run jq '.paths[0].sites | length' <<<"$output"
		assert_output "$sites"
	done
}

@test "export has the numbers of the module" {
	local path

	if path_is_available madvise; then
		path_enable madvise
		"$PROG/advise" <<<"run 20" >/dev/null
	fi
	run mmopt export --prometheus --output "$BATS_TEST_TMPDIR/mmopt.prom"
	assert_success
	assert_output ""
	run cat "$BATS_TEST_TMPDIR/mmopt.prom"
	for path in $(mmopt_paths); do
		assert_line "mmopt_calls_total{path=\"$path\"} $(stat_of "$path" calls)"
		assert_line "mmopt_call_seconds_count{path=\"$path\",way=\"taken\"} $(stat_of "$path" taken)"
		assert_line "mmopt_path_state{path=\"$path\",state=\"$(path_state_word "$path")\"} 1"
	done
}
