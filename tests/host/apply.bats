#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

DEBUG=/sys/kernel/debug/mmopt
PARAMETERS=/sys/module/mmopt/parameters
BATCH=$DEBUG/mremap/batch_bytes

# conf [LINE...]: the host's configuration file.
conf() {
	put etc/mmopt.conf "$@"
}

loaded() {
	tree_loaded
	tree_path mremap "${1:-off}"
	tree_path madvise "${2:-off}"
	put "$BATCH" 67108864
}

# refused LINE WHAT: the file is refused at this line for that reason, nothing is done.
refused() {
	run_mmopt apply
	assert_failure 2
	assert_output ''
	assert_stderr "mmopt: /etc/mmopt.conf${1:+:$1}: $2"
	assert_message_form
	run_mmopt apply --check
	assert_failure 2
	run_mmopt -j apply
	assert_failure 2
	assert_json '.errors | all(.rc == 2 and (.hint | contains("nothing was done")))'
	assert_json '.errors[0].where' "/etc/mmopt.conf${1:+:$1}"
	run asked
	assert_output ''
}

@test "apply loads the module, sets tunables and switches the listed paths" {
	tree_module
	conf '# a comment, även på svenska' '' 'enable = madvise, mremap' \
		$'\tmremap.batch_bytes=33554432 '
	behave <<-'END'
		on_insert() {
			tree_loaded
			tree_path mremap off
			tree_path madvise off
			put sys/kernel/debug/mmopt/mremap/batch_bytes 67108864
		}
		on_write() {
			case $1 in
			*/batch_bytes) put "$1" "$2" ;;
			*) default_write "$@" ;;
			esac
		}
	END
	run_mmopt apply
	assert_success
	refute_stderr
	assert_output 'mremap.batch_bytes: 33554432, set
madvise: on
mremap: on'
	run asked
	assert_output "insert /lib/modules/$RELEASE/updates/dkms/mmopt.ko enable=none
write $DEBUG/madvise/enabled 1
write $BATCH 33554432
write $DEBUG/mremap/enabled 1"
}

@test "apply again changes nothing" {
	loaded on off
	conf 'enable = mremap' 'mremap.batch_bytes = 67108864' 'allow_untested = no'
	run_mmopt apply
	assert_success
	refute_stderr
	assert_line 'mremap: unchanged, on'
	assert_line 'madvise: unchanged, off'
	assert_line 'mremap.batch_bytes: 67108864, unchanged'
	run_mmopt -j apply
	assert_json '[.paths[].result, .tunables[].result] | unique | join(" ")' unchanged
	assert_json '.changed == false'
	run asked
	assert_output ''
}

@test "exactly the listed paths: others are switched off" {
	loaded on off
	conf 'enable = madvise'
	run_mmopt -j apply
	assert_success
	assert_json '.changed and (.enable == ["madvise"])'
	assert_json '[.paths[] | "\(.path) \(.state)"] | sort | join(" ")' 'madvise on mremap off'
	conf 'enable = none'
	run_mmopt -j apply
	assert_success
	assert_json '[.paths[].state] | unique | join(" ")' off
	run asked
	assert_line "write $DEBUG/madvise/enabled 0"
}

@test "all means every path that is available" {
	loaded 'unavailable: no such symbol' off
	conf 'enable = all'
	run_mmopt apply
	assert_success
	assert_line 'mremap: skipped, unavailable: no such symbol'
	assert_line 'madvise: on'
	conf 'enable = mremap'
	behave <<-'END'
		on_write() {
			case $1 in
			*/mremap/enabled) return "$EOPNOTSUPP" ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt apply
	assert_failure 9
	assert_stderr 'mmopt: mremap: cannot enable, no such symbol: Operation not supported'
	assert_output 'madvise: off'
	assert_message_form
}

@test "a path that fails does not keep the others from what they shall be" {
	loaded off off
	conf 'enable = madvise, mremap'
	behave <<-'END'
		on_write() {
			case $1 in
			*/madvise/enabled) return "$EBUSY" ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt -j apply
	assert_failure 10
	assert_json '[.paths[] | "\(.path) \(.result)"] | sort | join(" ")' 'madvise failed mremap on'
	assert_json '.errors | length == 1 and .[0].where == "madvise"'
}

@test "a path is not switched on with another number than the file wants" {
	loaded off off
	conf 'enable = madvise, mremap' 'mremap.batch_bytes = 4194304'
	behave <<-'END'
		on_write() {
			case $1 in
			*/batch_bytes) return "$EINVAL" ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt -j apply
	assert_failure 1
	assert_json '.errors[0].where' mremap.batch_bytes
	assert_json '.tunables[0].result' failed
	assert_json '[.paths[] | "\(.path) \(.state)"] | sort | join(" ")' 'madvise on mremap off'
}

@test "a tripped path that shall be off is not acknowledged by the way" {
	loaded 'tripped: saw the impossible' off
	conf 'enable = none'
	run_mmopt apply
	assert_success
	assert_line 'mremap: unchanged, tripped: saw the impossible'
	run asked
	assert_output ''
}

@test "calls that do not end in time are reported for their path" {
	loaded on on
	tree_task 200 200 redis mmopt_mremap
	conf 'enable = none'
	behave <<-'END'
		on_write() {
			case $1 in
			*/mremap/enabled) wait_for_calls mremap ;;
			esac
			default_write "$@"
		}
	END
	run_mmopt apply --timeout 4
	assert_failure 11
	assert_stderr 'mmopt: mremap: calls are still under way after 4 s, in redis (200)'
	assert_output 'madvise: off'
	assert_message_form
}

@test "under lockdown paths go by the module parameter, tunables cannot be set" {
	loaded off off
	touch "$MMOPT_ROOT/.lockdown"
	conf 'enable = madvise'
	run_mmopt apply
	assert_success
	assert_line 'madvise: on (through the module parameter, as lockdown closes debugfs)'
	conf 'enable = madvise, mremap' 'mremap.batch_bytes = 4194304'
	run_mmopt apply
	assert_failure 5
	assert_stderr 'mmopt: mremap.batch_bytes: cannot be set to 4194304: Operation not permitted; lockdown closes debugfs'
	assert_line 'madvise: unchanged, on'
	assert_message_form
}

@test "allow_untested is for the module that is loaded, and for one that is not" {
	loaded off off
	conf 'enable = none' 'allow_untested = yes'
	behave <<-'END'
		on_write() { put "$1" "$2"; }
	END
	run_mmopt apply
	assert_success
	run asked
	assert_output "write $PARAMETERS/allow_untested Y"
	rm -r "$MMOPT_ROOT/sys/module/mmopt" "$MMOPT_ROOT/.log"
	tree_module
	behave <<-'END'
		on_insert() {
			default_insert
			put sys/module/mmopt/parameters/allow_untested Y
		}
	END
	conf 'enable = madvise' 'allow_untested = yes'
	run_mmopt apply
	assert_success
	run asked
	assert_output "insert /lib/modules/$RELEASE/updates/dkms/mmopt.ko allow_untested=1 enable=none
write $DEBUG/madvise/enabled 1"
}

@test "nothing wanted and nothing loaded: nothing is loaded" {
	tree_module
	conf 'enable = none' 'mremap.batch_bytes = 4194304'
	run_mmopt apply
	assert_success
	refute_stderr
	assert_output '/etc/mmopt.conf wants no path, and mmopt is not loaded'
	run_mmopt -j apply
	assert_json '.needless and .enable == []'
	run asked
	assert_output ''
}

@test "--check only reads" {
	tree_module
	conf 'enable = all'
	run_mmopt apply --check
	assert_success
	refute_stderr
	assert_output '/etc/mmopt.conf is right'
	run_mmopt -j apply --check
	assert_success
	assert_json '.checked_only and (.enable | length > 1) and (has("paths") | not)'
	run asked
	assert_output ''
}

@test "another file, and one that cannot be read" {
	loaded off off
	put other.conf 'enable = madvise' 'x = 1'
	run_mmopt apply "$MMOPT_ROOT/other.conf"
	assert_failure 2
	assert_stderr "mmopt: $MMOPT_ROOT/other.conf:2: unknown key 'x'"
	put other.conf 'enable = madvise'
	run_mmopt apply "$MMOPT_ROOT/other.conf"
	assert_success
	assert_line 'madvise: on'
	run_mmopt apply
	assert_failure 1
	assert_stderr 'mmopt: /etc/mmopt.conf: cannot be read: No such file or directory'
	assert_message_form
	run_mmopt apply "$MMOPT_ROOT"
	assert_failure 1
	assert_stderr 'Is a directory'
	put etc/mmopt.conf 'enable = none'
	chmod 0600 "$MMOPT_ROOT/etc/mmopt.conf"
	run_mmopt_as_user apply
	assert_failure 4
	assert_message_form
}

@test "what the file must not say: file, line and reason, and nothing is done" {
	loaded off off
	conf 'enable = madvise' 'enabel = mremap'
	refused 2 "unknown key 'enabel'; "
	conf '' '' 'enable = madvise, nosuch'
	refused 3 "no such path: 'nosuch'; write all, none or: "
	conf 'enable = madvise,madvise'
	refused 1 "the path 'madvise' is listed twice; "
	conf 'enable = madvise,'
	refused 1 "no such path: ''; "
	conf 'enable ='
	refused 1 "no such path: ''; "
	conf 'enable = madvise mremap'
	refused 1 "no such path: 'madvise mremap'; "
	conf 'enable = all, madvise'
	refused 1 "no such path: 'all'; "
	conf 'enable = madvise' '# x' 'enable = mremap'
	refused 3 "'enable' was set before, on line 1; "
	conf 'enable madvise'
	refused 1 "not a setting: 'enable madvise'; "
	conf 'enable = none' '= 1'
	refused 2 "'' is no key; "
	conf 'enable = none' '[paths]'
	refused 2 "not a setting: '[paths]'; "
	conf 'enable = none' 'Allow = yes'
	refused 2 "'Allow' is no key; "
	conf 'enable = none' 'allow_untested = maybe'
	refused 2 "'maybe' is neither yes nor no; "
	conf 'enable = none' 'mremap.nosuch = 1'
	refused 2 "unknown key 'mremap.nosuch'; "
	conf 'enable = none' "# $(printf '%01000d' 0)"
	refused 2 'the line is longer than 1000 characters; '
	conf 'enable = none' $'allow_untested = no\r'
	refused 2 'character 0x0d is not allowed here; '
	conf 'enable = none' $'allow_untested = \xff'
	refused 2 'character 0xff is not allowed here; '
	conf '# nothing'
	refused '' "there is no line 'enable = ...'; "
	printf 'enable = none\0' >"$MMOPT_ROOT/etc/mmopt.conf"
	refused 1 "no such path: 'none?'; "
	: >"$MMOPT_ROOT/etc/mmopt.conf"
	refused '' "there is no line 'enable = ...'; "
}

@test "a number must be one, and in its range" {
	local value

	loaded off off
	for value in '' 0 1 -2097152 +4194304 4M 0x400000 2097151 1073741825 \
		99999999999999999999999 18446744073711648768 '4194304 4194304' ' 4194304,'; do
		conf 'enable = none' "mremap.batch_bytes = $value"
		refused 2 "'${value# }' is no value of 'mremap.batch_bytes'; write a whole number from 2097152 to 1073741824"
	done
	for value in 2097152 1073741824 004194304; do
		conf 'enable = none' "mremap.batch_bytes = $value"
		run_mmopt apply --check
		assert_success
	done
}

@test "every error of a file is told" {
	loaded off off
	conf 'enable = nosuch, other' 'x = 1' 'allow_untested'
	run_mmopt -j apply
	assert_failure 2
	assert_json '[.errors[].where] | join(" ")' \
		'/etc/mmopt.conf:1 /etc/mmopt.conf:1 /etc/mmopt.conf:2 /etc/mmopt.conf:3'
}

@test "a path that the module does not have: nothing is done" {
	tree_loaded
	tree_path madvise off
	conf 'enable = madvise, mremap'
	run_mmopt apply
	assert_failure 1
	assert_stderr 'mmopt: mremap: the module has no such path; '
	assert_message_form
	run asked
	assert_output ''
}

@test "while mmopt ab is at work nothing is applied" {
	loaded on off
	conf 'enable = madvise'
	ab_at_work run_mmopt -j apply
	assert_failure 1
	assert_json '.errors | length == 1 and .[0].errno == "EBUSY" and .[0].where == "ab"'
	assert_json '.changed == false'
	run asked
	assert_output ''
	ab_at_work run_mmopt apply --check
	assert_success
}

@test "a signal: what was not reached is told" {
	loaded on on
	conf 'enable = none'
	behave <<-'END'
		on_write() { default_write "$@"; kill -s INT "$PPID"; exec sleep 60; }
	END
	run_mmopt -j apply
	assert_failure 1
	assert_json '[.paths[].path] | join(" ")' madvise
	assert_json '.errors[1] | .where == "mremap" and .what == "was not reached"'
}

@test "allow_untested that cannot be read is not passed over" {
	loaded off off
	rm "$MMOPT_ROOT$PARAMETERS/allow_untested"
	conf 'enable = madvise' 'allow_untested = no'
	run_mmopt apply
	assert_failure 1
	assert_stderr 'mmopt: allow_untested: cannot be set: No such file or directory; '
	assert_message_form
	run asked
	assert_output ''
}
