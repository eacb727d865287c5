#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

ENABLED=/sys/kernel/debug/mmopt/madvise/enabled
OBSERVE=/sys/kernel/debug/mmopt/madvise/observe

loaded() {
	tree_loaded
	tree_path madvise "${1:-off}"
}

@test "unload removes the module" {
	loaded
	run_mmopt unload
	assert_success
	refute_stderr
	assert_output 'mmopt is unloaded'
	run asked
	assert_output 'remove mmopt'
}

@test "unload ends observing and switches off first, for each path" {
	loaded on
	tree_path teleport 'unavailable: no such physics'
	tree_path zeta 'tripped: saw the impossible'
	put "$OBSERVE" 1
	run_mmopt -j unload
	assert_success
	assert_json '.already == false'
	run asked
	assert_output "write $OBSERVE 0
write $ENABLED 0
write /sys/kernel/debug/mmopt/zeta/enabled 0
remove mmopt"
}

@test "a path that is only observed is seen to" {
	loaded
	put "$OBSERVE" 1
	run_mmopt unload
	assert_success
	run asked
	assert_output "write $OBSERVE 0
remove mmopt"
}

@test "unload of nothing is no error, and says so" {
	run_mmopt unload
	assert_success
	refute_stderr
	assert_output 'mmopt was not loaded'
	run_mmopt -j unload
	assert_json .already
	run asked
	assert_output ''
}

@test "other users of the module are named before anything is done" {
	loaded on
	mkdir "$MMOPT_ROOT/sys/module/mmopt/holders/spy"
	run_mmopt unload
	assert_failure 1
	assert_stderr 'the module spy uses mmopt, nothing was done'
	assert_message_form
	run asked
	assert_output ''
}

@test "calls that do not end: names the tasks, puts everything back" {
	loaded on
	tree_path zeta on
	put "$OBSERVE" 1
	tree_task 200 200 redis mmopt_do_madvise
	behave <<-'END'
		on_write() {
			case "$1 $2" in
			*/zeta/enabled' 0') wait_for_calls zeta ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt unload --timeout 4
	assert_failure 11
	assert_stderr 'mmopt: zeta: calls are still under way after 4 s, in redis (200)'
	assert_message_form
	run asked
	assert_output "write $OBSERVE 0
write $ENABLED 0
write /sys/kernel/debug/mmopt/zeta/enabled 0
write $ENABLED 1
write $OBSERVE 1
write /sys/kernel/debug/mmopt/zeta/enabled 1"
	assert_equal "$(cat "$MMOPT_ROOT/sys/kernel/debug/mmopt/status")" $'madvise on\nzeta on'
}

@test "a signal ends the wait and puts everything back" {
	loaded on
	behave <<-'END'
		on_write() {
			[ "$2" = 1 ] || wait_for_calls madvise INT
			default_write "$@"
		}
	END
	run_mmopt unload
	assert_failure 11
	assert_stderr 'Interrupted system call'
	run asked
	assert_output "write $ENABLED 0
write $ENABLED 1"
}

@test "calls seen only by an observed path hold it up just the same" {
	loaded
	put "$OBSERVE" 1
	behave <<-'END'
		on_write() { wait_for_calls madvise; }
	END
	run_mmopt -j unload --timeout 4
	assert_failure 11
	assert_json '.errors[0] | .errno == "ETIMEDOUT" and .where == "madvise"'
}

@test "what cannot be put back is said as well" {
	loaded on
	behave <<-'END'
		on_write() {
			[ "$2" = 0 ] || return "$EBUSY"
			wait_for_calls madvise
		}
	END
	run_mmopt -j unload --timeout 4
	assert_failure 11
	assert_json '[.errors[].errno] | join(" ")' 'ETIMEDOUT EBUSY'
}

@test "a path that cannot be switched off keeps the module" {
	loaded on
	behave <<-'END'
		on_write() { return "$EIO"; }
	END
	run_mmopt unload
	assert_failure 1
	assert_stderr 'mmopt: madvise: cannot disable'
	run asked
	refute_line 'remove mmopt'
}

@test "a module that is in use for a moment is tried again" {
	loaded
	behave <<-'END'
		on_remove() {
			[ "$(grep -c ^remove "$MMOPT_ROOT/.log")" -ge 3 ] || return "$EAGAIN"
			default_remove "$@"
		}
	END
	run_mmopt unload
	assert_success
	assert_output 'mmopt is unloaded'
}

@test "a module that stays in use: exit 1, and why" {
	loaded
	behave <<-'END'
		on_remove() { return "$EAGAIN"; }
	END
	run_mmopt unload
	assert_failure 1
	assert_stderr 'the paths are off, but the module cannot be removed'
	assert_stderr 'debugfs folder open'
	assert_message_form
}

@test "not permitted: exit 4" {
	loaded
	behave <<-'END'
		on_remove() { return "$EPERM"; }
	END
	run_mmopt unload
	assert_failure 4
	assert_message_form
	loaded on
	put "$OBSERVE" 1
	behave <<-'END'
		on_write() { return "$EACCES"; }
	END
	run_mmopt unload
	assert_failure 4
	assert_stderr 'cannot stop observing it'
	assert_message_form
}

@test "without debugfs the module parameter switches the paths off" {
	loaded on
	put proc/mounts 'sysfs /sys sysfs rw 0 0'
	run_mmopt unload
	assert_success
	run asked
	assert_output 'write /sys/module/mmopt/parameters/enable none
remove mmopt'
}

@test "under lockdown too" {
	loaded on
	touch "$MMOPT_ROOT/.lockdown"
	run_mmopt unload
	assert_success
	run asked
	assert_output 'write /sys/module/mmopt/parameters/enable none
remove mmopt'
}

@test "not under mmopt ab, which would switch paths on again" {
	loaded on
	ab_at_work run_mmopt unload
	assert_failure 1
	assert_stderr "mmopt: ab: 'mmopt ab' is at work: Device or resource busy; nothing was done"
	assert_message_form
	run asked
	assert_output ''
}
