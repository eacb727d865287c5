# SPDX-License-Identifier: GPL-2.0
# fish completion for mmopt(8): the tool itself knows what may come.

function __mmopt_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)

	set -l offers ($words[1] -- __complete $words[2..] "$current" 2>/dev/null)
	if test "$offers" = :
		__fish_complete_path "$current"
	else
		printf '%s\n' $offers
	end
end

complete -c mmopt -f -a '(__mmopt_complete)'
