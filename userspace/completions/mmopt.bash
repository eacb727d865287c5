# SPDX-License-Identifier: GPL-2.0
# bash completion for mmopt(8): the tool itself knows what may come.
# shellcheck shell=bash

_mmopt() {
	local word

	COMPREPLY=()
	while IFS=$'\t' read -r word _; do
		case $word in
		:) compopt -o default ;;
		*=) compopt -o nospace ;;&
		*) COMPREPLY+=("$word") ;;
		esac
	done < <("$1" -- __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _mmopt mmopt
