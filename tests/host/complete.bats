#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# What the shells offer, against the command table.

load helpers/mmopt

COMPLETIONS=$BATS_TEST_DIRNAME/../../userspace/completions
COMMON='--help --json --pretty --version'

# What follows runs mmopt through the PATH, as a shell does. Not as a completion,
# it only notes its arguments.
setup_path() {
	mkdir "$BATS_TEST_TMPDIR/bin"
	cat >"$BATS_TEST_TMPDIR/bin/mmopt" <<-END
		#!/bin/sh
		[ "\$1" = -- ] || { echo "\$*" >>"$BATS_TEST_TMPDIR/ran"; exit; }
		LD_PRELOAD=\$FAKE_KERNEL_LIB exec "\$MMOPT" "\$@"
	END
	chmod +x "$BATS_TEST_TMPDIR/bin/mmopt"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# The ways to ask, each with the words of a command line: all offers, sorted.
by_tool() {
	mmopt -- __complete "${@:2}" | cut -f1 | sort | xargs
}

by_bash() {
	bash --noprofile --norc -c "
		compopt() { :; }
		. '$COMPLETIONS/mmopt.bash'
		COMP_WORDS=(\"\$@\") COMP_CWORD=\$((\$# - 1))
		_mmopt mmopt
		printf '%s\n' \"\${COMPREPLY[@]}\"" bash "$@" | sort | xargs
}

# What zsh gets told, word for word; the last test has it asked for real.
by_zsh() {
	# shellcheck disable=SC2016
	zsh -f -c '
		_describe() { print -l -- ${${(P)2}%%:*} }
		compadd() { print -l -- ${(P)@[-1]} }
		words=("${(@)argv[2,-1]}") CURRENT=$#words
		source $1' zsh "$COMPLETIONS/_mmopt" "$@" | sort | xargs
}

by_fish() {
	HOME=$BATS_TEST_TMPDIR fish --no-config -c "
		source '$COMPLETIONS/mmopt.fish'
		complete -C '$*'" | cut -f1 | sort | xargs
}

# offers WORDS OFFER...: of the last of WORDS, in each of these shells.
offers() {
	local words ask

	# shellcheck disable=SC2086 # a line
	eval "words=($1)"
	shift
	for ask in by_tool by_bash by_zsh by_fish; do
		run "$ask" "${words[@]}"
		assert_success
		assert_output "$(printf '%s\n' "$@" | sort | xargs)"
	done
}

@test "exactly the verbs and the options of each are offered" {
	local verb own help

	setup_path
	help=$(mmopt -j help)
	# shellcheck disable=SC2046 # words
	offers "mmopt ''" $(jq -r '.commands[].command' <<<"$help")
	# shellcheck disable=SC2086
	offers 'mmopt -' $COMMON
	[ "$(jq -r '.options[].option' <<<"$help" | sort | xargs)" = "$COMMON" ]
	for verb in $(jq -r '.commands[].command' <<<"$help"); do
		own=$(jq -r --arg verb "$verb" \
			'.commands[] | select(.command == $verb) | .options[].option' <<<"$help")
		# shellcheck disable=SC2086
		offers "mmopt $verb -" $COMMON $own
	done
}

@test "a word that has begun, a verb cut short, a value, nothing more to say" {
	setup_path
	offers 'mmopt st' stats status
	offers 'mmopt -j help unl' unload
	offers 'mmopt unl --ti' --timeout
	offers 'mmopt unload --timeout ""'
	offers 'mmopt unload --timeout 5 ""'
	offers 'mmopt help load ""'
	offers 'mmopt export --o' --output
	(
		cd "$BATS_TEST_TMPDIR"
		mkdir files && cd files && touch mmopt.prom mmopt.text
		run by_fish mmopt export --output mmopt.p
		assert_output mmopt.prom
		run by_fish mmopt apply mmopt.p
		assert_output mmopt.prom
		run by_fish mmopt ab madvise -- mmopt.p
		assert_output mmopt.prom
	)
	offers 'mmopt nosuch ""'
	offers 'mmopt st ""'
}

@test "paths: those of the module, or without it those that the tool knows" {
	local known

	setup_path
	known=$(sed -n '/^#define MMOPT_PATHS(X)/,/^$/s/^\tX(\([a-z_]*\),.*/\1/p' \
		"$BATS_TEST_DIRNAME/../../include/mmopt/abi.h")
	# shellcheck disable=SC2086
	offers 'mmopt stats ""' $known
	tree_loaded
	tree_path madvise off
	tree_path zeta off
	offers 'mmopt enable ""' all madvise zeta
	offers 'mmopt disable madvise ""' zeta
	offers 'mmopt ab --seconds 5 madvise ""' zeta
	offers 'mmopt stats ""' madvise zeta
	run_mmopt -- __complete stats z
	assert_output $'zeta\t'
	run_mmopt -- __complete enable madv
	assert_output $'madvise\tMADV_COLD and MADV_PAGEOUT under per-VMA locks'
}

@test "parameters of the module" {
	setup_path
	offers 'mmopt load ""'
	tree_module
	offers 'mmopt load ""' enable= allow_untested=
	offers 'mmopt load al' allow_untested=
}

# types SHELL KEYS COMMAND: what the shell makes of it.
types() {
	rm -f "$BATS_TEST_TMPDIR/ran"
	timeout 60 "$BATS_TEST_DIRNAME/helpers/tab.zsh" "$1" "$2"
	run cat "$BATS_TEST_TMPDIR/ran"
	assert_output "$3"
}

@test "somebody types with the tabulator in bash and zsh" {
	local shell verb

	setup_path
	tree_loaded
	tree_module
	tree_path madvise off
	touch "$BATS_TEST_TMPDIR/mmopt.prom"
	for shell in bash zsh; do
		types $shell 'mmopt enab\tmad\t' 'enable madvise'
		types $shell 'mmopt unl\t--ti\t9' 'unload --timeout 9'
		types $shell 'mmopt help ver\t' 'help version'
		types $shell 'mmopt -j st\t' '-j stat'
		types $shell 'mmopt load allo\tY' 'load allow_untested=Y'
		types $shell "mmopt export --out\t$BATS_TEST_TMPDIR/mmopt.pr\t" \
			"export --output $BATS_TEST_TMPDIR/mmopt.prom"
	done
}
