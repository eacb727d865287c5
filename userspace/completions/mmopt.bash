# SPDX-License-Identifier: GPL-2.0
# bash completion for mmopt(8)
# shellcheck shell=bash

_mmopt_paths() {
	mmopt status 2>/dev/null | sed -n '2,$s/ .*//p'
}

_mmopt() {
	local verbs='load unload status enable disable stats check help version'
	local options='--json --pretty --help --version'
	local cur=${COMP_WORDS[COMP_CWORD]} verb='' words='' i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*) ;;
		*) verb=${COMP_WORDS[i]} && break ;;
		esac
	done

	case $verb in
	load) options+=' --allow-untested' ;;
	unload | enable | disable) options+=' --timeout' ;;
	esac

	case $cur,$verb in
	-*) words=$options ;;
	*, | *,help) words=$verbs ;;
	*,enable | *,disable) words="$(_mmopt_paths) all" ;;
	*,stats) words=$(_mmopt_paths) ;;
	*,load) words='enable= allow_untested=' ;;
	esac

	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _mmopt mmopt
