# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash

note()
{
	echo "mmopt: $*" >&2
}

die()
{
	echo "mmopt: error: $*" >&2
	exit 1
}

# The README's install commands: what stands between its two markers.
readme_commands()
{
	[ -e "$TOP/README.md" ] || die "no README.md to take commands from"
	sed -n '/<!-- install-begin -->/,/<!-- install-end -->/p' "$TOP/README.md" |
		sed -e '/^<!--/d' -e '/^```/d' -e 's/^[[:space:]]*//'
}
