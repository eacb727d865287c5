# SPDX-License-Identifier: GPL-2.0
# What every host test starts with.
# shellcheck shell=bash

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert

here=$BATS_TEST_DIRNAME/helpers
# shellcheck source=tests/host/helpers/tree.bash
. "$here/tree.bash"

export UBSAN_OPTIONS=print_stacktrace=1

setup() {
	export MMOPT_ROOT=$BATS_TEST_TMPDIR/root
	mkdir "$MMOPT_ROOT"
	tree_host
}

# mmopt, with the fake kernel below it. A sanitizer's finding is no exit code of ours.
mmopt() {
	ASAN_OPTIONS=exitcode=99 LD_PRELOAD=$FAKE_KERNEL_LIB "$MMOPT" "$@"
}

run_mmopt() {
	run --separate-stderr mmopt "$@"
	# shellcheck disable=SC2154
	case $stderr in
	*Sanitizer* | *'runtime error'*) fail "$stderr" ;;
	esac
}

# The same as somebody who is not root.
run_mmopt_as_user() {
	local as=()

	[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	chmod a+rx "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.."
	install -m 0666 /dev/null "$MMOPT_ROOT/.log"
	run --separate-stderr "${as[@]}" env ASAN_OPTIONS=exitcode=99 \
		LD_PRELOAD="$FAKE_KERNEL_LIB" "$MMOPT" "$@"
}

# ab_at_work [COMMAND...]: that, while a run of mmopt ab holds its lock.
ab_at_work() {
	local lock

	exec {lock}<"$MMOPT_ROOT/sys/kernel/debug/mmopt"
	flock "$lock"
	"$@"
	exec {lock}<&-
}

# behave: the fake kernel's answers, from stdin.
behave() {
	cat >"$MMOPT_ROOT/.behave"
}

asked() {
	cat "$MMOPT_ROOT/.log" 2>/dev/null || true
}

# assert_stderr TEXT: stderr contains it.
assert_stderr() {
	case $stderr in
	*"$1"*) ;;
	*) fail "stderr has no \"$1\": $stderr" ;;
	esac
}

refute_stderr() {
	[ -z "$stderr" ] || fail "unexpected on stderr: $stderr"
}

# Every error has the form "mmopt: where[:line]: what[: errno]; what to do".
assert_message_form() {
	local line

	while IFS= read -r line; do
		[[ $line =~ ^mmopt:\ [^:]+(:[0-9]+)?:\ .+\;\ .+ ]] || fail "not the form of a message: $line"
	done <<<"$stderr"
}

# assert_json FILTER [VALUE]: stdout is one JSON document in which jq finds VALUE, or true.
assert_json() {
	local value

	# shellcheck disable=SC2154
	value=$(jq -r -s 'if length == 1 then .[0] else error("not one document") end | '"$1" \
		<<<"$output") || fail "not JSON: $output"
	[ "$value" = "${2-true}" ] || fail "$1 is $value, not ${2-true}: $output"
}
