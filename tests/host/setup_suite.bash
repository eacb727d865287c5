# SPDX-License-Identifier: GPL-2.0
# Builds the command line, with sanitizers, and the fake kernel once for all files.
# shellcheck shell=bash

setup_suite() {
	local here tree out

	here=$(dirname "${BASH_SOURCE[0]}")
	tree=$here/../..
	out=$BATS_SUITE_TMPDIR/build
	make -C "$tree/userspace" -j2 O="$out" SANITIZE=1 all
	gcc -Wall -Wextra -Werror -O1 -shared -fPIC -o "$out/fakekernel.so" \
		"$here/helpers/fakekernel.c" -ldl
	# Some tests run as another user, who may not be able to see this tree.
	cp "$here/helpers/fakekernel" "$here/helpers/tree.bash" "$out"
	chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_SUITE_TMPDIR" "$out" "$out"/*
	export MMOPT=$out/mmopt MMOPT_MAN=$out/mmopt.8
	export FAKE_KERNEL=$out/fakekernel FAKE_KERNEL_LIB=$out/fakekernel.so
}
