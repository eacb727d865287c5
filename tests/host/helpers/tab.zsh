#!/usr/bin/zsh -f
# SPDX-License-Identifier: GPL-2.0
# tab.zsh bash|zsh KEYS: types KEYS, with \t for the tabulator, and Enter at an
# interactive shell that has the completion of mmopt; then leaves it.
zmodload zsh/zpty

completions=${0:A:h}/../../../userspace/completions
case $1 in
bash)
	start=(bash --noprofile --norc -i)
	setup="bind 'set enable-bracketed-paste off'; . $completions/mmopt.bash" ;;
zsh)
	start=(zsh -f -i)
	setup="unset zle_bracketed_paste; fpath=($completions \$fpath)
		autoload -U compinit && compinit -u -D" ;;
esac
TERM=xterm zpty shell $start
# The quotes tell the output from the command's echo.
zpty -w shell "$setup; PS1='rea''dy> '"
zpty -r shell seen '*ready> ' || exit 1
zpty -w shell ${(g::)2}
zpty -r shell seen2 '*ready> ' || exit 1
zpty -w shell exit
while zpty -r shell more; do seen2+=$more; done
print -r -- $seen $seen2
