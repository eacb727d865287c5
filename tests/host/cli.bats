#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

VERBS='ab apply check disable enable explain export help load stats status trace unload version watch'

verbs() {
	mmopt -j help | jq -r '.commands[].command' | sort | xargs
}

@test "the command table has these verbs" {
	run verbs
	assert_output "$VERBS"
}

@test "help names every verb and exits 0" {
	run_mmopt help
	assert_success
	refute_stderr
	for verb in $VERBS; do
		assert_line --regexp "^  $verb( |\$)"
	done
	local all=$output
	for form in '--help' '-h'; do
		run_mmopt $form
		assert_success
		assert_output "$all"
	done
}

@test "help of a verb shows its usage, in three ways" {
	for verb in $VERBS; do
		run_mmopt help "$verb"
		assert_success
		assert_line --index 0 --regexp "^usage: mmopt \[-j \| -p\] $verb"
		local text=$output
		run_mmopt "$verb" --help
		assert_success
		assert_output "$text"
		run_mmopt -j help "$verb"
		assert_success
		assert_json '.commands[0].command' "$verb"
	done
	run asked
	assert_output ''
}

@test "version of the tool and of the module" {
	run_mmopt version
	assert_success
	assert_output 'mmopt 0.1.0, module not loaded'
	run_mmopt -j --version
	assert_success
	assert_json '.version == "0.1.0" and .module == null'
	tree_loaded
	put sys/module/mmopt/version 0.2.0
	run_mmopt version
	assert_output 'mmopt 0.1.0, module 0.2.0'
}

@test "a verb may be shortened while it is unambiguous" {
	tree_loaded
	run_mmopt -j statu
	assert_success
	assert_json 'has("paths")'
	run_mmopt ver
	assert_success
	run_mmopt stat
	assert_failure 2
	assert_stderr 'mmopt: stat: ambiguous command; it may be any of status, stats'
	run_mmopt -j s
	assert_failure 2
	assert_json '.errors[0] | .rc == 2 and .where == "s"'
}

@test "wrong usage: exit 2, a hint, and nothing done" {
	tree_loaded
	tree_path madvise off
	while IFS= read -r line; do
		eval "set -- $line"
		run_mmopt "$@"
		assert_failure 2
		assert_output ''
		assert_message_form
		run_mmopt -j "$@"
		assert_failure 2
		refute_stderr
		assert_json '.errors | length >= 1'
	done <<-'END'
		nosuch
		''
		statuses
		--nosuch
		-x status
		help nosuch
		help load unload
		status madvise
		check -- -j x
		version 1
		unload madvise
		status --timeout 3
		load --timeout 3
		enable --allow-untested madvise
		unload --timeout
		unload --timeout=
		unload --timeout=-1
		unload --timeout=1s
		unload --timeout=99999999999999999999
		unload --timeout=100000
		enable
		disable --timeout 1
		export
		export madvise --prometheus
		export --output x
		export --prometheus --output
		stats --prometheus
		watch 0
		watch 0.05
		watch 86401
		watch -- -1
		watch 1s
		watch 0x1
		watch nan
		watch 1e3
		watch ''
		watch 1 0
		watch 1 -1
		watch 1 x
		watch 1 99999999999999999999
		watch 1 1 1
	END
	run_mmopt
	assert_failure 2
	assert_message_form
	run asked
	assert_output ''
}

@test "options may stand before and after the verb" {
	tree_loaded
	tree_path madvise off
	for args in '-j status' 'status -j' '--json status' 'status --json'; do
		# shellcheck disable=SC2086
		run_mmopt $args
		assert_success
		assert_json 'has("paths")'
	done
	run_mmopt -p status
	assert_success
	assert_json 'has("paths")'
	[ "${#lines[@]}" -gt 5 ]
}

@test "arguments with any bytes give valid JSON" {
	tree_loaded
	tree_path madvise off
	run_mmopt -j enable $'\xff\xfe' $'a"b\\' $'\033[2J' '%s%n'
	assert_failure 2
	assert_json '.errors | length' 4
	run_mmopt -j $'\xff'
	assert_failure 2
	assert_json '.errors[0].where' '?'
	run_mmopt -j "$(printf '%0.sx' {1..5000})"
	assert_failure 2
	assert_json '.errors | length' 1
}

@test "output that cannot be written is a failure" {
	tree_loaded
	tree_path madvise off
	full() { mmopt "$@" >/dev/full; }
	run --separate-stderr full status
	assert_failure 1
	assert_stderr 'No space left on device'
	run --separate-stderr full -j status
	assert_failure 1
}

@test "MMOPT_ROOT that is no folder: exit 2" {
	MMOPT_ROOT=$MMOPT_ROOT/nosuch run_mmopt status
	assert_failure 2
	assert_stderr 'MMOPT_ROOT'
	MMOPT_ROOT=$MMOPT_ROOT/nosuch run_mmopt -j status
	assert_failure 2
	assert_json '.errors[0].errno' ENOENT
}

@test "the man page has exactly the verbs, options and exit codes" {
	local option help verb

	# A section of the page; in it, what is explained stands before an indentation.
	section() {
		sed -n "/^\.SH $1\$/,/^\.SH /p" "$MMOPT_MAN"
	}
	explained() {
		section "$1" | awk '/^\.RS/ { print last } { last = $0 }' |
			sed 's/\\f[BIR]//g; s/\\&//g' | sort
	}
	words() {
		explained "$1" | sed 's/[ ,].*//' | xargs
	}

	run words COMMANDS
	assert_output "$VERBS"
	run words OPTIONS
	assert_output '-V -h -j -p'
	help=$(mmopt -j help)
	for option in $(jq -r '.. | .option? // empty' <<<"$help"); do
		grep -q -e "$option" "$MMOPT_MAN" || fail "no $option"
	done
	# and each verb with the very arguments of the table, options among them, or in its help
	run explained COMMANDS
	assert_output "$(jq -r '.commands[] | .command + " " + .args' <<<"$help" | sed 's/ $//' | sort)"
	run jq -r '.commands[] | .args as $args | .options[] | select(.option as $option |
		$args | contains($option) or contains("[OPTION...]") | not) | .option' <<<"$help"
	assert_output ''
	while read -r verb option; do
		mmopt help "$verb" | grep -q -e "^  $option " || fail "help $verb: no $option"
	done < <(jq -r '.commands[] | select(.args | contains("[OPTION...]")) |
		.command as $verb | .options[] | $verb + " " + .option' <<<"$help")
	for option in NAME SYNOPSIS OVERHEAD CAVEATS EXAMPLES FILES; do
		[ "$(section "$option" | wc -l)" -gt 3 ] || fail "no section $option"
	done
	run bash -c "sed -n 's/^\([0-9]*\)\t.*/\1/p' | xargs" < <(section 'EXIT STATUS')
	assert_output '0 1 2 3 4 5 6 7 8 9 10 11'
}

# make_in DEST TARGET: installs below a folder, or takes away from there.
make_in() {
	make -s -C "$BATS_TEST_DIRNAME/../../userspace" O="$(dirname "$MMOPT")" SANITIZE=1 \
		DESTDIR="$1" PREFIX=/usr "$2"
}

@test "install and uninstall put and take the same files" {
	local dest=$BATS_TEST_TMPDIR/dest

	make_in "$dest" install
	run find "$dest" -type f -printf '%P\n'
	assert_equal "$(sort <<<"$output")" "etc/mmopt.conf
usr/lib/systemd/system/mmopt.service
usr/sbin/mmopt
usr/share/bash-completion/completions/mmopt
usr/share/doc/mmopt/modprobe.conf
usr/share/fish/vendor_completions.d/mmopt.fish
usr/share/man/man5/mmopt.conf.5
usr/share/man/man8/mmopt.8
usr/share/zsh/site-functions/_mmopt"
	[ -x "$dest/usr/sbin/mmopt" ]
	make_in "$dest" uninstall
	run find "$dest" -type f
	assert_output ''
}

@test "a configuration that somebody wrote is neither overwritten nor removed" {
	local dest=$BATS_TEST_TMPDIR/dest

	mkdir -p "$dest/etc"
	echo 'enable = madvise' >"$dest/etc/mmopt.conf"
	make_in "$dest" install
	run cat "$dest/etc/mmopt.conf"
	assert_output 'enable = madvise'
	make_in "$dest" uninstall
	run find "$dest" -type f -printf '%P\n'
	assert_output etc/mmopt.conf
}
