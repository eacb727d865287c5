#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

ENABLED=/sys/kernel/debug/mmopt/madvise/enabled
PARAMETER=/sys/module/mmopt/parameters/enable

loaded() {
	tree_loaded
	tree_path madvise "${1:-off}"
}

# The module answers a write to "enabled" with an errno and, perhaps, a new state.
refuse() {
	local state=${2:+path_state madvise \'$2\'}

	behave <<-END
		on_write() {
			$state
			return $1
		}
	END
}

@test "enable switches a path on, disable off" {
	loaded
	run_mmopt enable madvise
	assert_success
	refute_stderr
	assert_output 'madvise: on'
	run_mmopt -j disable madvise
	assert_success
	assert_json '.paths[0] | .result == "off" and .state == "off" and .via == "debugfs"'
	run asked
	assert_output "write $ENABLED 1
write $ENABLED 0"
}

@test "a path is switched once, however often it is named" {
	loaded
	run_mmopt enable madvise madvise
	assert_success
	run asked
	assert_output "write $ENABLED 1"
}

@test "no path, or an unknown one: exit 2, nothing is done" {
	loaded
	run_mmopt enable
	assert_failure 2
	assert_stderr 'mmopt: enable: no path given'
	run_mmopt enable madvise nosuch
	assert_failure 2
	assert_stderr 'mmopt: nosuch: no such path, nothing was done; the paths are: madvise'
	run_mmopt -j disable ../madvise ''
	assert_failure 2
	assert_json '.errors | length' 2
	run asked
	assert_output ''
}

@test "without the module: exit 3" {
	run_mmopt enable madvise
	assert_failure 3
	run_mmopt disable all
	assert_failure 3
	run_mmopt -j enable all
	assert_failure 3
	assert_json '.errors[0].rc' 3
}

@test "an unavailable path is refused with its reason" {
	loaded 'unavailable: no symbol madvise_cold'
	refuse "$EOPNOTSUPP"
	run_mmopt enable madvise
	assert_failure 9
	assert_stderr 'mmopt: madvise: cannot enable, no symbol madvise_cold: Operation not supported; '
	run_mmopt -j enable madvise
	assert_failure 9
	assert_json '.errors[0].errno' EOPNOTSUPP
	assert_json '.paths[0].result' failed
}

@test "enable all skips what is unavailable" {
	loaded
	tree_path teleport 'unavailable: no such physics'
	run_mmopt enable all
	assert_success
	refute_stderr
	assert_line 'madvise: on'
	assert_line 'teleport: skipped, unavailable: no such physics'
	run_mmopt disable all
	assert_success
	assert_line 'madvise: off'
}

@test "enable all fails if nothing is available" {
	loaded 'unavailable: no per-VMA lock'
	run_mmopt enable all
	assert_failure 9
	assert_stderr 'no path is available'
	assert_message_form
	run asked
	assert_output ''
}

@test "one path that fails does not stop the others" {
	loaded
	tree_path zeta off
	behave <<-'END'
		on_write() {
			case $1 in
			*/madvise/enabled) return "$EBUSY" ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt -j enable all
	assert_failure 10
	assert_json '[.paths[].result] | join(" ")' 'failed on'
}

@test "a function that another patcher owns: the state's reason and a hint" {
	loaded
	refuse "$EBUSY" 'off: madvise_cold is owned by another livepatch'
	run_mmopt enable madvise
	assert_failure 10
	assert_stderr 'madvise_cold is owned by another livepatch: Device or resource busy'
	assert_stderr "'mmopt check'"
	assert_message_form
}

@test "an interrupted, a tripped and a strange refusal each have their hint" {
	loaded
	refuse "$EINTR"
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'Interrupted system call; the path is being switched by somebody else'
	refuse "$EIO" 'tripped: a lock record does not match'
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'a lock record does not match: Input/output error'
	assert_stderr "'mmopt disable madvise'"
	refuse "$EINVAL" off
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'dmesg'
	assert_message_form
}

@test "disable waits for the calls under way" {
	loaded on
	behave <<-'END'
		on_write() {
			path_state madvise draining
			sleep 0.3
			path_state madvise off
		}
	END
	run_mmopt -j disable madvise
	assert_success
	assert_json '.paths[0].state' off
}

@test "calls that do not end in time: exit 11, names who is inside" {
	loaded on
	tree_task 100 100 elsewhere
	tree_task 200 200 redis mmopt_do_madvise
	tree_task 200 201 $'bg\033save' mmopt_do_madvise
	behave <<-'END'
		on_write() { wait_for_calls madvise; }
	END
	run_mmopt disable --timeout 4 madvise
	assert_failure 11
	assert_stderr 'mmopt: madvise: calls are still under way after 4 s, in redis (200), bg?save (201): '
	assert_stderr "new calls run stock code already; 'mmopt disable madvise' waits again"
	assert_message_form
	run_mmopt -j disable --timeout 4 madvise
	assert_failure 11
	assert_json '.errors[0].errno' ETIMEDOUT
	assert_json '.inside | map("\(.pid)/\(.tid)") | join(" ")' '200/200 200/201'
	assert_json '.paths[0] | .result == "failed" and .state == "draining"'
}

@test "many tasks inside are counted, not all named" {
	local i

	loaded on
	for i in {11..30}; do
		tree_task "$i" "$i" sleeper mmopt_do_madvise
	done
	behave <<-'END'
		on_write() { wait_for_calls madvise; }
	END
	run_mmopt disable --timeout 4 madvise
	assert_failure 11
	assert_stderr 'sleeper (18) and 12 more'
	run_mmopt -j disable --timeout 4 madvise
	assert_json '.inside | length' 20
}

@test "the wait can be interrupted, and repeated" {
	loaded on
	behave <<-'END'
		on_write() { wait_for_calls madvise TERM; }
	END
	run_mmopt disable madvise
	assert_failure 11
	assert_stderr 'calls are still under way, in no task that is asleep: Interrupted system call'
	assert_message_form
	rm "$MMOPT_ROOT/.behave"
	run_mmopt disable madvise
	assert_success
	assert_output 'madvise: off'
}

@test "enable that waits for another command gives up in time" {
	loaded
	behave <<-'END'
		on_write() { exec sleep 60; }
	END
	run_mmopt enable --timeout 4 madvise
	assert_failure 1
	assert_stderr 'Interrupted system call; the path is being switched by somebody else'
	assert_message_form
}

@test "a path that trips as it is enabled: exit 1 and why" {
	loaded
	behave <<-'END'
		on_write() { path_state madvise 'tripped: a walk under no lock'; }
	END
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'should be on, but is tripped: a walk under no lock'
	assert_message_form
}

@test "an untested kernel is told from lockdown" {
	loaded
	put sys/kernel/debug/mmopt/status 'madvise off untested'
	refuse "$EPERM"
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'this kernel is untested'
	assert_stderr allow_untested
	run asked
	assert_output "write $ENABLED 1"
}

@test "under lockdown the module parameter is used" {
	loaded
	tree_path zeta on
	touch "$MMOPT_ROOT/.lockdown"
	run_mmopt enable madvise
	assert_success
	refute_stderr
	assert_output 'madvise: on (through the module parameter, as lockdown closes debugfs)'
	run_mmopt -j disable all
	assert_success
	assert_json '[.paths[].via] | unique | join(" ")' parameter
	run asked
	assert_output "write $PARAMETER madvise,zeta
write $PARAMETER zeta
write $PARAMETER none"
}

@test "lockdown and no parameter either: one message, exit 5" {
	loaded
	tree_path zeta off
	touch "$MMOPT_ROOT/.lockdown"
	put sys/kernel/security/lockdown 'none [integrity] confidentiality'
	refuse "$EPERM"
	run_mmopt enable all
	assert_failure 5
	# shellcheck disable=SC2154
	assert_equal "${#stderr_lines[@]}" 1
	assert_stderr 'lockdown is integrity'
	assert_stderr '/etc/modprobe.d'
	assert_message_form
	run_mmopt -j enable madvise
	assert_failure 5
	assert_json '.errors | length == 1 and .[0].errno == "EPERM" and .[0].rc == 5'
}

@test "somebody who may not write: exit 4" {
	loaded
	chmod -R a+rX,a-w "$MMOPT_ROOT/sys"
	run_mmopt_as_user enable madvise
	chmod -R u+w "$MMOPT_ROOT/sys"
	assert_failure 4
	assert_stderr 'run mmopt as root'
	assert_message_form
}

@test "a missing switch and a missing state are errors" {
	loaded
	rm "$MMOPT_ROOT$ENABLED"
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'No such file or directory'
	loaded
	behave <<-'END'
		on_write() { rm "$MMOPT_ROOT/sys/kernel/debug/mmopt/madvise/state"; }
	END
	run_mmopt enable madvise
	assert_failure 1
	assert_stderr 'its state cannot be read'
	assert_message_form
}

@test "while mmopt ab is at work nothing is enabled, and what is disabled may not stay so" {
	loaded
	ab_at_work run_mmopt enable madvise
	assert_failure 1
	assert_output ''
	assert_stderr "mmopt: ab: 'mmopt ab' is at work: Device or resource busy; nothing was done; "
	assert_message_form
	run asked
	assert_output ''
	loaded on
	ab_at_work run_mmopt -j disable madvise
	assert_failure 1
	assert_json '.paths[0] | .result == "off" and .state == "off"'
	assert_json '.errors | length == 1 and .[0].errno == "EBUSY" and .[0].where == "ab"'
	ab_at_work run_mmopt disable madvise
	assert_output 'madvise: off'
	assert_stderr 'may switch a path on again: Device or resource busy; end it, and disable again'
	assert_message_form
}

@test "a signal: what was not reached is told" {
	loaded
	tree_path zeta off
	tree_path zulu 'unavailable: no such physics'
	behave <<-'END'
		on_write() { default_write "$@"; kill -s INT "$PPID"; exec sleep 60; }
	END
	run_mmopt -j enable all
	assert_failure 1
	assert_json '[.paths[].path] | join(" ")' madvise
	assert_json '.errors[1] | .where == "zeta" and .what == "was not reached" and .errno == "EINTR"'
	run_mmopt disable zeta madvise
	assert_failure 1
	assert_stderr 'mmopt: zeta: was not reached: Interrupted system call; the same command again does the rest'
	assert_message_form
	run_mmopt disable madvise
	assert_failure 1
	# shellcheck disable=SC2154
	refute grep 'not reached' <<<"$stderr"
}
