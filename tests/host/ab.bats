#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# mmopt ab against a kernel whose calls are made up as they are read. The order of
# windows is given, and that kernel's chance is the same each time. How long a run
# takes is told by calls made, not by time.

# shellcheck disable=SC2016 # shells of their own expand these
load helpers/mmopt
load helpers/ab

@test "a path that is faster" {
	at_work 8192 1024
	runs_for 14
	run_mmopt -j ab "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_success
	refute_stderr
	assert_json '.paths[0] | .path == "madvise" and .verdict == "faster" and
		.ratio_low > 2 and .ratio > 6 and .ratio < 10 and .ratio_high < 33 and
		.p < 0.01 and .pairs >= 12 and .confidence_percent == 99 and
		.off.p50_ns > 8192 and .on.p50_ns < 8192 and .off.count > 1000 and
		(.off.mean_ns / .on.mean_ns | . > 4 and . < 16)'
	assert_json '.mode == "ab" and .complete and .seed == 1 and .pairs_needed == 8'
	assert_json '.command | .exit == 0 and (.stopped | not) and .argv[0] == "env"'
	left_as off 0
}

@test "a path that is slower, in words" {
	at_work 1024 8192
	runs_for 14
	run_mmopt ab "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_success
	assert_stderr 'measuring in windows of about 0.1 s until the command ends'
	assert_line 'madvise: slower'
	assert_line --regexp '^  off +[0-9]+ +[0-9.]+ us +[0-9.]+ us +[0-9.]+ us$'
	assert_line --regexp '^  off / on: 0\.1[0-9]* \(99 % confidence: 0\.[0-9]+ to [0-9.]+\), p [0-9.e-]+, [0-9]+ pairs of windows$'
	assert_line 'the command ended with status 0'
}

@test "a path that makes no difference" {
	at_work 4096 4096
	runs_for 14
	run_mmopt -j ab "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_success
	assert_json '.paths[0] | .verdict == "no difference seen" and .p > 0.01 and
		.ratio_low < 1 and .ratio_high > 1'
}

@test "A/A: never on, and nothing seen where there is something" {
	at_work 8192 1024
	runs_for 14
	run_mmopt -j ab --aa "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_success
	assert_json '.mode == "aa" and .paths[0].verdict == "no difference seen"'
	run asked
	assert_output "write $DIR/madvise/observe 1
write $DIR/madvise/observe 0"
	at_work 8192 1024
	run_mmopt ab --aa "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_line --index 0 --regexp '^A/A, never on: '
	assert_line --regexp '^  off too '
}

@test "--seconds ends it, and the command with all that it started" {
	at_work 8192 1024
	run_mmopt -j ab --seconds 3 "${SHORT[@]}" madvise -- \
		sh -c "sleep 1000 & echo \$! >'$BATS_TEST_TMPDIR/pid'; wait"
	assert_success
	assert_json '.complete and .seconds >= 2.5 and .command.stopped and .command.signal == 15'
	is_gone "$(cat "$BATS_TEST_TMPDIR/pid")"
}

@test "what the command says does not mix with the result; it has no input" {
	at_work 8192 1024
	run_mmopt -j ab --window 0.1 madvise -- sh -c 'echo spoken; cat; echo done'
	assert_success
	assert_stderr spoken
	assert_stderr 'done'
	assert_json '.paths[0].verdict' 'too little data'
}

@test "several paths, each with a coin of its own" {
	local csv=$BATS_TEST_TMPDIR/csv

	at_work 8192 1024 on
	tree_path zeta off
	put "$DIR/zeta/observe" 1
	runs_for 14
	run_mmopt -j ab "${SHORT[@]}" --csv "$csv" zeta madvise "${LOAD[@]}"
	assert_success
	assert_json '[.paths[] | .path + " " + .verdict] | join(", ")' 'zeta faster, madvise faster'
	assert_json '.pairs_needed == 9 and .paths[0].confidence_percent > 99'
	left_as on 0
	left_as off 1 zeta
	# Off and on in each pair, in both orders, and not always in the same for both.
	run awk -F, 'NR > 1 { row[$5] = row[$5] $6 " " } END { print row["madvise"]; print row["zeta"] }' "$csv"
	assert_line --index 0 --regexp '^((off on|on off) )+$'
	assert_line --index 1 --regexp '^((off on|on off) )+$'
	assert_line --index 0 --regexp '^((on|off) (on|off) )*off on '
	assert_line --index 0 --regexp '^((on|off) (on|off) )*on off '
	refute [ "${lines[0]}" = "${lines[1]}" ]
}

@test "without calls there is too little data, and no exit code for it" {
	tree_loaded
	tree_path madvise off
	run_mmopt -j ab --seconds 2 "${SHORT[@]}" madvise
	assert_success
	assert_json '.paths[0] | .verdict == "too little data" and .ratio == null and .pairs == 0'
	run_mmopt ab --seconds 2 "${SHORT[@]}" madvise
	assert_line --regexp 'off / on: too little data, 0 pairs of windows of the 8'
}

@test "a metric of the user's" {
	at_work 8192 1024
	runs_for 14
	put on "grep -q 1 '$MMOPT_ROOT$DIR/madvise/enabled'"
	run_mmopt -j ab "${SHORT[@]}" --lower-is-better madvise \
		--metric "sh $MMOPT_ROOT/on && echo 50 || printf '100\\r\\n'" "${LOAD[@]}"
	assert_success
	assert_json '.metric.better' lower
	assert_json '.paths[0].metric | .verdict == "better" and .off == 100 and .on == 50 and
		.ratio > 1.99 and .ratio < 2.01'
	at_work 8192 1024
	run_mmopt ab "${SHORT[@]}" --higher-is-better madvise \
		--metric "sh $MMOPT_ROOT/on && echo 50 || echo 100" "${LOAD[@]}"
	assert_success
	assert_line '  metric: worse, median 100 off, 50 on'
	at_work 8192 1024
	run_mmopt -j ab "${SHORT[@]}" madvise --metric 'echo 7' "${LOAD[@]}"
	assert_json '.paths[0].metric.verdict' 'no difference seen'
	at_work 8192 1024
	run_mmopt -j ab "${SHORT[@]}" madvise \
		--metric "sh $MMOPT_ROOT/on && echo 50 || echo 100" "${LOAD[@]}"
	assert_json '.paths[0].metric.verdict' lower
}

@test "a metric that is none ends the run" {
	local metric

	for metric in 'echo no' 'echo' 'echo 0' 'echo -1' 'echo 1 2' 'echo nan' 'echo inf' \
		'false' 'yes' 'kill $$'; do
		at_work 8192 1024
		run_mmopt ab --seconds 60 madvise --window 0.1 --metric "$metric"
		assert_failure 1
		assert_stderr 'mmopt: --metric: '
		assert_stderr 'the command must print one number above 0'
		left_as off 0
	done
}

@test "a metric that takes too long is cut short, with all that it started" {
	local closed

	for closed in '' 'echo 7; exec >&-;'; do
		at_work 8192 1024
		run_mmopt -j ab --seconds 60 madvise --window 0.1 --metric \
			"sleep 1000 & echo \$! >'$BATS_TEST_TMPDIR/pid'; trap '' TERM; $closed wait"
		assert_failure 1
		assert_json '.errors[0] | .where == "--metric" and .errno == "ETIMEDOUT"'
		is_gone "$(cat "$BATS_TEST_TMPDIR/pid")"
		left_as off 0
	done
}

@test "a signal ends a metric that has said its number and goes on" {
	at_work 8192 1024
	run_mmopt -j ab --seconds 60 madvise --window 0.1 \
		--metric 'echo 7; exec >&-; kill -INT "$PPID"; exec sleep 1000'
	assert_failure 1
	assert_json '.errors[0] | .where == "--metric" and .errno == "EINTR"'
	left_as off 0
}

# cut_short TEXT: the run fails with that message, reports, and leaves all as it was.
cut_short() {
	run_mmopt ab --seconds 100 "${SHORT[@]}" madvise
	assert_failure 1
	assert_stderr "$1"
	assert_line --index 0 --regexp ', cut short$'
	assert_line --regexp '^madvise: '
}

@test "a signal: what was measured is reported, all is left as it was found" {
	local signal

	for signal in INT QUIT TERM HUP; do
		at_work 8192 1024 on
		put "$DIR/madvise/observe" 1
		behave <<-END
			on_read() {
				default_read "\$@"
				[ \${count[calls]} -lt 1400 ] || kill -s $signal "\$PPID"
			}
		END
		cut_short 'mmopt: ab: ended after 3 pairs of windows: Interrupted system call; '
		left_as on 1
	done
}

@test "a signal ends the command too" {
	at_work 8192 1024
	behave <<-'END'
		on_read() { default_read "$@"; kill -s INT "$PPID"; }
	END
	run_mmopt -j ab --window 0.1 madvise -- sh -c "echo \$\$ >'$BATS_TEST_TMPDIR/pid'; exec sleep 1000"
	assert_failure 1
	assert_json '(.complete | not) and .command.stopped and .errors[0].errno == "EINTR"'
	is_gone "$(cat "$BATS_TEST_TMPDIR/pid")"
	left_as off 0
}

@test "a signal during the wait for calls does not keep it from putting back" {
	at_work 8192 1024
	behave <<-'END'
		on_write() {
			default_write "$@"
			[ "$2" != 0 ] || kill -s INT "$PPID"
		}
	END
	run_mmopt ab --seconds 100 "${SHORT[@]}" madvise
	assert_failure 1
	left_as off 0
}

@test "calls that do not end are named, like when a path is disabled" {
	at_work 8192 1024
	tree_task 200 200 redis mmopt_do_madvise
	behave <<-'END'
		on_write() {
			case $1 in
			*/observe) [ "$2" = 1 ] || wait_for_calls madvise ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt ab --timeout 1 --seconds 2 "${SHORT[@]}" madvise
	assert_failure 11
	assert_stderr 'mmopt: madvise: calls are still under way after 1 s, in redis (200)'
}

@test "a path that trips stays so, and says why" {
	at_work 8192 1024 on
	behave <<-'END'
		on_read() {
			default_read "$@"
			[ ${count[calls]} -lt 1400 ] || path_state madvise 'tripped: saw the impossible'
		}
	END
	cut_short 'mmopt: madvise: has tripped: saw the impossible: Input/output error; '
	assert_stderr 'warning: madvise: it has tripped and was left off, though it was on before'
	left_as 'tripped: saw the impossible' 0
}

@test "a path that somebody switches off meanwhile stays off" {
	at_work 8192 1024 on
	behave <<-'END'
		on_read() {
			default_read "$@"
			[ ${count[calls]} -lt 1400 ] || [ "$(<"$dir/enabled")" = 0 ] ||
				path_state madvise off
		}
	END
	cut_short 'somebody else has switched it'
	assert_stderr 'warning: madvise: somebody has switched it off, and it was left so'
	left_as off 0
}

@test "somebody else who switches, or sets the counters to zero, ends it" {
	at_work 8192 1024
	behave <<-'END'
		on_read() {
			local state=on

			default_read "$@"
			[ "$(<"$dir/enabled")" = 0 ] || state=off
			[ ${count[calls]} -lt 1400 ] || path_state madvise $state
		}
	END
	cut_short 'somebody else has switched it'
	left_as off 0
	at_work 8192 1024
	behave <<-'END'
		on_read() {
			default_read "$@"
			[ ${count[calls]} -lt 1400 ] || tree_path madvise "$(cut -d: -f1 "$dir/state")"
			put "${1%/stats}/observe" 1
		}
	END
	cut_short 'its counters were set to zero meanwhile'
	left_as off 0
}

@test "a switch that fails half-way" {
	at_work 8192 1024 on
	tree_path zeta off
	behave <<-'END'
		on_write() {
			case "$1 $2" in
			*/zeta/enabled' 1') return "$EBUSY" ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt ab "${SHORT[@]}" madvise zeta
	assert_failure 10
	assert_stderr 'mmopt: zeta: cannot enable: Device or resource busy; '
	left_as on 0
	left_as off 0 zeta
	behave <<-'END'
		on_write() {
			case "$1 $2" in
			*/zeta/observe' 1') return "$EBUSY" ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt ab "${SHORT[@]}" madvise zeta
	assert_failure 10
	assert_output ''
	assert_stderr 'mmopt: zeta: cannot start observing it: Device or resource busy; '
	left_as on 0
}

@test "one at a time" {
	at_work 8192 1024
	ab_at_work run_mmopt ab --seconds 100 "${SHORT[@]}" madvise
	assert_failure 1
	assert_stderr "mmopt: ab: another mmopt is at work: Device or resource busy; nothing was done"
	assert_message_form
	left_as off 0
	# while a path is being switched, too
	behave <<-'END'
		on_write() {
			MMOPT_ROOT='' LD_PRELOAD='' flock --nonblock --exclusive "$MMOPT_ROOT/sys/kernel/debug/mmopt" true &&
				return "$EIO"
			default_write "$@"
		}
	END
	run_mmopt enable madvise
	assert_success
	rm "$MMOPT_ROOT/.behave"
	run_mmopt -j ab --window 0.1 madvise -- true
	assert_success
}

@test "nobody reads what it says: all is left as it was found" {
	local gone

	at_work 8192 1024 on
	put "$DIR/madvise/observe" 1
	behave <<-'END'
		on_read() {
			default_read "$@"
			[ ${count[calls]} -lt 1400 ] || path_state madvise 'tripped: saw the impossible'
		}
	END
	exec {gone}> >(exec true)
	wait $!
	run bash -c 'exec "$@" >&'"$gone"' 2>&1' - env LD_PRELOAD="$FAKE_KERNEL_LIB" "$MMOPT" \
		ab --seconds 100 "${SHORT[@]}" madvise
	exec {gone}>&-
	assert_failure 1
	left_as 'tripped: saw the impossible' 1
	# but a command has its signals as ever
	at_work 8192 1024
	run_mmopt -j ab --window 0.1 madvise -- sh -c 'kill -PIPE $$'
	assert_failure 1
	assert_json '.command.signal == 13'
}

@test "what the command started is given time to end" {
	local done=$BATS_TEST_TMPDIR/done

	at_work 8192 1024
	run_mmopt -j ab --seconds 3 "${SHORT[@]}" madvise -- sh -c "
		(trap 'sleep 0.5; echo >$done; exit' TERM; while :; do sleep 0.05; done) &
		exec sleep 1000"
	assert_success
	assert_json '.command.signal == 15'
	assert [ -e "$done" ]
}

@test "a command that fails, is killed, or cannot be run" {
	at_work 8192 1024
	runs_for 3 5
	run_mmopt -j ab "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_failure 1
	assert_json '.command.exit == 5 and (.complete | not)'
	assert_json '.errors[0] | .where == "env" and (.what | test("^failed with status 5, after [0-9]+ pairs of windows$"))'
	run_mmopt -j ab "${SHORT[@]}" madvise -- sh -c 'kill -9 $$'
	assert_failure 1
	assert_json '.command.signal == 9'
	assert_json '.errors[0].what | startswith("was killed by signal 9")'
	left_as off 0
	rm "$MMOPT_ROOT/.log"
	run_mmopt ab "${SHORT[@]}" madvise -- "$BATS_TEST_TMPDIR/nosuch"
	assert_failure 1
	assert_stderr 'cannot be run: No such file or directory; nothing was done'
	run asked
	assert_output ''
}

@test "options of the command are the command's" {
	at_work 8192 1024
	run_mmopt -j ab --window 0.1 madvise -- sh -c 'test "$1 $2 $3" = "--seconds -j --"' x --seconds -j --
	assert_success
	assert_json '.command.argv | length' 7
}

@test "paths that cannot be measured are refused before anything is done" {
	refuses 3 'mmopt: mmopt: the module is not loaded' madvise
	at_work 8192 1024
	tree_path teleport 'unavailable: no such physics'
	tree_path zeta 'tripped: saw the impossible'
	tree_path slow 'draining: calls are under way'
	refuses 9 'mmopt: teleport: is unavailable: no such physics: Operation not supported' madvise teleport
	refuses 1 'mmopt: zeta: is tripped: saw the impossible' zeta
	refuses 11 'mmopt: slow: is draining' slow
	refuses 2 'mmopt: nosuch: no such path, nothing was done; the paths are: ' nosuch
	refuses 2 'mmopt: madvise: given twice' madvise madvise
	tree_path madvise 'off untested'
	refuses 1 'this kernel is untested: write 1 to ' madvise
}

@test "lockdown and want of rights are said" {
	at_work 8192 1024
	put sys/kernel/security/lockdown 'none [integrity] confidentiality'
	touch "$MMOPT_ROOT/.lockdown"
	refuses 5 'mmopt: ab: stock calls cannot be timed, lockdown is integrity: Operation not permitted' madvise
	put sys/kernel/security/lockdown '[none] integrity confidentiality'
	rm "$MMOPT_ROOT/.lockdown"
	run_mmopt_as_user ab madvise
	assert_failure 4
	assert_output ''
	assert_stderr 'mmopt: madvise: cannot start observing it: Permission denied; run mmopt as root'
}

@test "options that make no sense are refused" {
	at_work 8192 1024
	refuses 2 'mmopt: ab: no path given'
	refuses 2 'mmopt: ab: no path given' -- true
	refuses 2 '--window: 0.05 s is too short; give 0.1 to 3600 s' --window 0.05 madvise
	refuses 2 '--window: 4000 s is too long' --window 4000 madvise
	refuses 2 '--window: too long: 8 pairs of windows of 2 s do not fit into 10 s; give a shorter --window, or --seconds 41' \
		--window 2 --seconds 10 madvise
	refuses 2 '--window: x is not a number' --window x madvise
	refuses 2 '--window: 1e1 is not a number' --window 1e1 madvise
	refuses 2 '--window: nan is not a number' --window nan madvise
	refuses 2 '--window:  is not a number' --window '' madvise
	refuses 2 '--seconds: 0 is not a number' --seconds 0 madvise
	refuses 2 '--seconds: 1.5 is not a number' --seconds 1.5 madvise
	refuses 2 '--seconds: 99999999999999999999 is not' --seconds 99999999999999999999 madvise
	refuses 2 '--seed: -1 is not a number' --seed -1 madvise
	refuses 2 '--plot: x.pdf ends neither in .svg nor in .png' --plot x.pdf madvise
	refuses 2 'there is no --metric that could be better' --lower-is-better madvise
	refuses 2 'only one of lower and higher' --metric true --lower-is-better --higher-is-better madvise
	run_mmopt status --seconds 3
	assert_failure 2
	assert_stderr 'an option of another command was given'
}

@test "a format of statistics that is newer is said once" {
	at_work 8192 1024
	behave <<-'END'
		on_read() { default_read "$@"; sed -i 's/^v: .*/v: 2/' "$dir/stats"; }
	END
	runs_for 3
	run_mmopt -j ab "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_success
	assert_json '[.warnings[] | select(.what | contains("format 2"))] | length' 1
}

@test "calls within one power of two: the ratio is coarse" {
	at_work 8192 1024
	behave <<-'END'
		on_read() { default_read "$@"; sed -i 's/_ns_8192 /_ns_8192 9/' "$dir/stats"; }
	END
	runs_for 3
	run_mmopt ab "${SHORT[@]}" madvise "${LOAD[@]}"
	assert_stderr 'warning: madvise: nearly all calls are within one power of two'
}
