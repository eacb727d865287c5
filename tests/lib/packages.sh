# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh

# need_packages FILE: installs those of a list that are not there.
need_packages()
{
	missing=$(sed 's/#.*//' "$1" | while read -r package; do
		[ -z "$package" ] ||
			dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || echo "$package"
	done | paste -sd' ')
	[ "$missing" ] || return 0
	echo "mmopt: installing $missing" >&2
	# shellcheck disable=SC2086 # a list
	{
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update &&
			apt-get -q install -y --no-install-recommends $missing
	} >&2
}
