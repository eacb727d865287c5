#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The files in debugfs and the module parameters, with good and bad input.

load helpers

SOURCE=$BATS_TEST_DIRNAME/../..
SWITCHES=(enabled observe)
BAD=("" "\n" " " 2 -1 00 01 10 1x x1 "1 " " 1" "1\n\n" "1\n0" onn o of offf "on " On ON yes no
	true Y N "1\0" "0\0" "\0" "\01" "on\0on" 0x1 $'\377' madvise)

# Numbers to set that a path has beside the files of every path.
declare -gA MORE=([copy]="min_bytes threads min_chunk_bytes" [mremap]="batch_bytes"
	[pagemap]="large_bytes")

setup()
{
	begin_test
}

teardown()
{
	end_test
}

# Paths that can be switched here, in the order of the ABI.
available()
{
	awk '$2 !~ /^unavailable/ { print $1 }' "$MMOPT/status"
}

# refutes FILE DATA...: each is refused as invalid
refutes()
{
	local file=$1

	shift
	run poke "$file" "$@"
	assert_failure
	assert_equal "$(sort <<<"$output" | uniq -c | tr -s ' ')" " $# EINVAL"
}

# accepts FILE DATA...
accepts()
{
	local file=$1

	shift
	run poke "$file" "$@"
	assert_success
	assert_equal "$(sort -u <<<"$output")" ok
}

# A macro list of the ABI: the identifiers in it.
abi()
{
	sed -n "/^#define MMOPT_$1(X)/,/[^\\\\]\$/s/.*X(\([a-z_]*\).*/\1/p" \
		"$SOURCE/include/mmopt/abi.h"
}

@test "there are the files of the ABI, with their permissions, and no others" {
	local path

	assert_equal "$(mmopt_paths | sort)" "$(abi PATHS | sort)"
	run find "$MMOPT" -mindepth 1 -printf '%P %m %U\n'
	assert_success
	assert_equal "$(sort <<<"$output")" "$(
		{
			echo "version 444 0"
			echo "status 444 0"
			for path in $(mmopt_paths); do
				echo "$path 755 0"
				echo "$path/enabled 644 0"
				echo "$path/observe 644 0"
				echo "$path/state 444 0"
				echo "$path/stats 444 0"
				echo "$path/explain 444 0"
				echo "$path/reset 200 0"
				for file in ${MORE[$path]:-}; do
					echo "$path/$file 644 0"
				done
			done
		} | sort
	)"
}

@test "each file holds what the ABI says" {
	local path file

	for path in $(mmopt_paths); do
		run cat "$MMOPT/$path/enabled" "$MMOPT/$path/observe"
		assert_output $'0\n0'
		run cat "$MMOPT/status"
		assert_line "$path $(path_state "$path")"
		run cat "$MMOPT/$path/stats"
		assert_line --index 0 "v: 1"
		assert_equal "$(awk 'NR > 1 { print $1 }' <<<"$output" | sort)" "$(
			{
				abi COUNTERS
				abi "${path^^}_COUNTERS"
				abi "${path^^}_FALLBACKS" | sed 's/^/fallback_/'
				printf '%s\n' nmissed taken_sum_ns stock_sum_ns
			} | sort
		)"
		run awk 'NR > 1 && $2 != 0' "$MMOPT/$path/stats"
		assert_output ""
	done
	assert_equal "$(wc -l <"$MMOPT/status")" "$(abi PATHS | wc -l)"

	# in small pieces as well
	for file in "$MMOPT/version" "$MMOPT/status" "$ADVICE/state" "$ADVICE/stats" \
		"$ADVICE/enabled" "$ADVICE/explain"; do
		run dd if="$file" bs=1 status=none
		assert_success
		assert_output "$(cat "$file")"
	done
}

@test "explain says which calls go where, and what does not run" {
	local path want

	for path in $(mmopt_paths); do
		run cat "$MMOPT/$path/explain"
		assert_success
		assert_line --index 0 "v: 1"
		[ "$path" != mremap ] || assert_line "tunable batch_bytes 67108864 2097152 1073741824"
		[ "$path" != pagemap ] || assert_line "tunable large_bytes 8388608 4096 1073741824"
		if ! path_is_available "$path"; then
			assert_line "mechanism none"
			refute_line --regexp "^site "
			continue
		fi
		case $path in
		mremap) want="entry move_page_tables" ;;
		madvise) want="callsite do_madvise" ;;
		ksm) want="callsite down_read" ;;
		pagemap) want="callsite down_read_killable" ;;
		copy) want="callsite copy_page_range" ;;
		*) fail "what does $path do?" ;;
		esac
		assert_line "mechanism ${want% *}"
		assert_line --regexp "^site [a-z0-9_]+\+0x[0-9a-f]+ ${want#* } -> [a-z_]+ \[mmopt\]\$"
		refute_output --partial ffffffff
		run awk '$1 == "bypasses" { print $2 }' "$MMOPT/$path/explain"
		refute_output ""
		while read -r want; do
			grep -q " $want\$" /proc/kallsyms
		done <<<"$output"
	done
}

@test "explain shows the very calls that are reserved, also while the path is on" {
	local before

	require_path madvise
	before=$(cat "$ADVICE/explain")
	for _ in off on; do
		run awk '$1 == "site" { print $2 }' "$ADVICE/explain"
		assert_equal "$(sort <<<"$output")" "$(
			awk '$2 == "k" && $3 ~ /madvise/ { print $3 }' \
				/sys/kernel/debug/kprobes/list | sort
		)"
		path_enable madvise
	done
	assert_equal "$(cat "$ADVICE/explain")" "$before"
	run cut -d+ -f1 <<<"$output"
	assert_line __x64_sys_madvise
	assert_line __do_sys_process_madvise
}

@test "the sums of the latencies are between the bounds of their buckets" {
	local state

	require_path madvise
	echo 1 >"$ADVICE/observe"
	for state in stock taken; do
		[ $state = stock ] || path_enable madvise
		path_reset madvise
		"$PROG/advise" <<<"run 20" >/dev/null
		run awk -v way=$state '
			$1 == way "_sum_ns" { sum = $2 }
			index($1, way "_ns_") == 1 {
				n += $2
				low += $2 * substr($1, length(way) + 5)
			}
			END { print n, (low > 0 && sum >= low && sum < 2 * low) }' "$ADVICE/stats"
		assert_output "20 1"
	done
}

@test "all versions are the same: file, module, DKMS, command line" {
	local version

	version=$(cat "$MMOPT/version")
	assert_equal "$(modinfo -F version mmopt)" "$version"
	assert_equal "$(cat /sys/module/mmopt/version)" "$version"
	assert_equal "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$SOURCE/dkms.conf")" "$version"
	run mmopt version
	assert_success
	assert_output --partial "$version"
}

@test "switches take 0 1 n y off on, with and without a newline" {
	local path file word

	[ -n "$(available)" ] || skip "no path is available"
	for path in $(available); do
		for word in 1:1 "0\n:0" y:1 "n\n:0" "on\n:1" off:0 "1\n:1" 0:0; do
			for file in "${SWITCHES[@]}"; do
				accepts "$MMOPT/$path/$file" "${word%:*}"
				assert_equal "$(<"$MMOPT/$path/$file")" "${word#*:}"
			done
		done
	done
}

@test "switches refuse anything else and stay as they are" {
	local path file state size

	for path in $(mmopt_paths); do
		for state in 0 1; do
			[ $state = 0 ] || path_is_available "$path" || continue
			for file in "${SWITCHES[@]}"; do
				echo $state >"$MMOPT/$path/$file"
			done
			for file in "${SWITCHES[@]}"; do
				refutes "$MMOPT/$path/$file" "${BAD[@]}"
				assert_equal "$(cat "$MMOPT/$path/$file")" $state
			done
		done
	done

	# however much is written
	mmopt_all_off
	for file in enabled observe reset; do
		for size in 8 4096 1048576; do
			head -c $size /dev/zero | tr '\0' 1 >"$BATS_TEST_TMPDIR/data"
			run "$PROG/poke" "$ADVICE/$file" <"$BATS_TEST_TMPDIR/data"
			assert_output EINVAL
		done
	done
	run "$PROG/poke" "$MMOPT_PARAMETERS/enable" <"$BATS_TEST_TMPDIR/data"
	assert_failure
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" none
}

@test "reset takes 1 only, and zeroes the counters" {
	refutes "$ADVICE/reset" "${BAD[@]}" 0 n off
	accepts "$ADVICE/reset" 1 y on "1\n"
	path_is_available madvise || return 0
	echo 1 >"$ADVICE/observe"
	"$PROG/advise" <<<"run 5" >/dev/null
	assert_equal "$(stat_of madvise calls)" 5
	path_reset madvise
	run awk 'NR > 1 && $2 != 0' "$ADVICE/stats"
	assert_output ""
}

@test "only root may switch and reset, and nobody may write what is to be read" {
	local file

	for file in "$MMOPT/version" "$MMOPT/status" "$ADVICE/state" "$ADVICE/stats" \
		"$ADVICE/explain"; do
		run poke "$file" 1
		assert_failure
	done
	for file in "$ADVICE"/{enabled,observe,reset} "$MMOPT_PARAMETERS/enable"; do
		run setpriv --reuid=nobody --regid=nogroup --clear-groups \
			"$PROG/poke" "$file" 1
		assert_output "open: EACCES"
	done
}

@test "a path that is unavailable cannot be switched on, and says why" {
	local path found=

	for path in $(mmopt_paths); do
		! path_is_available "$path" || continue
		found=y
		run path_state "$path"
		assert_output --regexp '^unavailable: .+'
		run poke "$MMOPT/$path/enabled" 1
		assert_output EOPNOTSUPP
		run poke "$MMOPT/$path/observe" 1
		assert_output EOPNOTSUPP
		accepts "$MMOPT/$path/enabled" 0
		run poke "$MMOPT_PARAMETERS/enable" "$path"
		assert_output EOPNOTSUPP
		run cat "$MMOPT/$path/enabled" "$MMOPT/$path/observe" "$MMOPT_PARAMETERS/enable"
		assert_output $'0\n0\nnone'
	done
	[ $found ] || skip "every path is available"
	if kernel_is 6.1; then
		run path_state madvise
		assert_output --partial "6.4"
	fi
}

@test "the parameter enable takes a list, all or none" {
	local path list

	accepts "$MMOPT_PARAMETERS/enable" none "none\n" all "all\n"
	list=$(available | paste -sd,)
	assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" "${list:-none}"
	for path in $(available); do
		assert_equal "$(path_state "$path")" on
	done
	for path in $(available); do
		accepts "$MMOPT_PARAMETERS/enable" none "$path" "$path\n" "$path,$path"
		assert_equal "$(path_state "$path")" on
		assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" "$path"
	done
	if [ "$list" ]; then
		accepts "$MMOPT_PARAMETERS/enable" "$list"
		assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" "$list"
	fi
	accepts "$MMOPT_PARAMETERS/enable" none
	for path in $(available); do
		assert_equal "$(path_state "$path")" off
	done
}

@test "the parameter enable refuses unknown paths and changes nothing" {
	local state

	for state in none $(available); do
		echo "$state" >"$MMOPT_PARAMETERS/enable"
		refutes "$MMOPT_PARAMETERS/enable" foo madvis madvisee "madvise,foo" "foo,madvise" \
			"madvise," ",madvise" "madvise madvise" "all,madvise" "none,madvise" alll nonee \
			" all" ALL 1 "madvise\nfoo" "madvise\n\n" "\n" ","
		assert_equal "$(cat "$MMOPT_PARAMETERS/enable")" "$state"
	done
}

@test "enable= at load switches paths on, and a wrong list refuses the load" {
	local path

	mmopt_unload
	run modprobe mmopt enable=foo
	assert_failure
	refute mmopt_is_loaded
	mmopt_load enable=all
	for path in $(available); do
		wait_until 60 grep -qx on "$MMOPT/$path/state"
	done
	mmopt_unload
	mmopt_load
	for path in $(mmopt_paths); do
		assert_equal "$(<"$MMOPT/$path/enabled")" 0
	done
}

@test "a path that is on or observed holds the module" {
	local path file

	[ -n "$(available)" ] || skip "no path is available"
	for path in $(available); do
		for file in "${SWITCHES[@]}"; do
			echo 1 >"$MMOPT/$path/$file"
			run rmmod mmopt
			assert_failure
			assert_equal "$(cat "$MMOPT/$path/$file")" 1
			echo 0 >"$MMOPT/$path/$file"
		done
	done
	rmmod mmopt
}

@test "eight processes switch at once, and the state is one of theirs" {
	local i

	path_is_available madvise || skip "madvise: $(path_state madvise)"
	for i in {1..8}; do
		(
			end=$((SECONDS + 3))
			while ((SECONDS < end)); do
				echo $((i % 2)) >"$ADVICE/enabled"
				echo $((i / 2 % 2)) >"$ADVICE/observe"
				echo $((i % 3)) >"$ADVICE/enabled" 2>/dev/null
				cat "$ADVICE/stats" "$ADVICE/state" "$MMOPT/status" >/dev/null
				echo 1 >"$ADVICE/reset"
			done
		) 3>&- &
	done
	wait
	case $(cat "$ADVICE/enabled") in
	1) assert_equal "$(path_state madvise)" on ;;
	0) assert_equal "$(path_state madvise)" off ;;
	esac
	path_disable madvise
	assert_equal "$(path_state madvise)" off
	echo 1 >"$ADVICE/observe"
	path_reset madvise
	"$PROG/advise" <<<"run 7" >/dev/null
	assert_equal "$(stat_of madvise stock)" 7
	path_enable madvise
	"$PROG/advise" <<<"run 7" >/dev/null
	assert_equal "$(stat_of madvise taken)" 7
}

@test "the module can go and come while its files are read" {
	(
		while [ ! -e "$BATS_TEST_TMPDIR/stop" ]; do
			cat "$ADVICE"/{stats,state,enabled} "$MMOPT/status" >/dev/null 2>&1
		done
	) 3>&- &
	for _ in {1..3}; do
		# an open file holds it for a moment
		wait_until 30 mmopt_unload
		mmopt_load
	done
	: >"$BATS_TEST_TMPDIR/stop"
	wait
}
