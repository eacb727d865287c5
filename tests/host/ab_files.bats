#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# The files that mmopt ab leaves.

# shellcheck disable=SC2016 # shells of their own expand these
load helpers/mmopt
load helpers/ab

@test "--csv, --plot and --html" {
	local out=$BATS_TEST_TMPDIR pairs tag

	at_work 8192 1024
	runs_for 14
	run_mmopt -j ab "${SHORT[@]}" --csv "$out/a.csv" --plot "$out/a.svg" --html "$out/a.html" \
		--metric "echo 7 # <b>&\"'" madvise "${LOAD[@]}"
	assert_success
	assert_json 'has("errors") | not'
	pairs=$(jq .pairs <<<"$output")
	assert_equal "$(head -n 1 "$out/a.csv")" \
		pair,window,at_s,length_s,path,state,calls,mean_ns,log_mean_ns,p50_ns,p99_ns,metric
	run sed 1d "$out/a.csv"
	assert_line --index 0 --regexp '^1,1,[0-9.]+,0\.[01][0-9]+,madvise,(off|on),[0-9]+,[0-9]+,[0-9]+,[0-9]+,[0-9]+,7$'
	assert_equal "${#lines[@]}" $((pairs * 2))
	grep -q '<svg' "$out/a.svg"
	grep -q '>madvise: calls of each state<' "$out/a.svg"

	run cat "$out/a.html"
	assert_line --index 0 '<!DOCTYPE html>'
	assert_line --partial '<code>echo 7 # &lt;b&gt;&amp;&quot;&#39;</code>'
	assert_line --partial '<b>faster</b>'
	assert_line --partial '<svg'
	# Nothing is fetched: no address but the names of SVG's vocabularies.
	refute_output --regexp '(src|href) *= *.[^#]'
	run bash -c "sed 's/xmlns[:a-z]*=.[^ >]*//g' '$out/a.html' | grep -cE '://|@import|url\((.)?[^#]|<script|<link'"
	assert_output 0
	for tag in html head style body h1 p code table tr th td svg; do
		assert_equal "$(grep -oE "<${tag}( |>|\$)" "$out/a.html" | wc -l)" \
			"$(grep -o "</$tag>" "$out/a.html" | wc -l)"
	done
}

@test "--plot makes a PNG too" {
	at_work 8192 1024
	runs_for 3
	run_mmopt -j ab "${SHORT[@]}" --plot "$BATS_TEST_TMPDIR/a.png" madvise "${LOAD[@]}"
	assert_success
	assert_equal "$(head -c 4 "$BATS_TEST_TMPDIR/a.png" | tail -c 3)" PNG
}

@test "nothing to draw is said, and the page has no picture" {
	local out=$BATS_TEST_TMPDIR

	tree_loaded
	tree_path madvise off
	run_mmopt ab --window 0.1 --plot "$out/a.svg" --html "$out/a.html" madvise -- true
	assert_success
	assert_stderr 'warning: ab: no pair of windows with calls, so there is nothing to draw'
	grep -q '<b>too little data</b>' "$out/a.html"
	refute grep -q '<svg' "$out/a.html"
}

@test "files that cannot be written, and gnuplot if it is missing, are told before the run" {
	at_work 8192 1024
	local option

	for option in csv plot html; do
		refuses 1 "mmopt: --$option: cannot write $BATS_TEST_TMPDIR/nosuch/a.svg: No such file" \
			"--$option" "$BATS_TEST_TMPDIR/nosuch/a.svg" madvise
	done
	mkdir "$BATS_TEST_TMPDIR/bin"
	# mmopt with no program to be found, not even gnuplot
	mmopt() {
		LD_PRELOAD=$FAKE_KERNEL_LIB PATH=$BATS_TEST_TMPDIR/bin "$MMOPT" "$@"
	}
	for option in plot html; do
		run_mmopt ab "--$option" "$BATS_TEST_TMPDIR/a.svg" madvise
		assert_failure 1
		assert_output ''
		assert_stderr 'mmopt: gnuplot: cannot be run, and --plot and --html need it: No such file or directory; nothing was done; install gnuplot-nox'
		assert [ ! -e "$BATS_TEST_TMPDIR/a.svg" ]
	done
	mmopt() {
		LD_PRELOAD=$FAKE_KERNEL_LIB PATH=$BATS_TEST_TMPDIR/bin:$PATH "$MMOPT" "$@"
	}
	printf '#!/bin/sh\n[ "$1" = --version ]\n' >"$BATS_TEST_TMPDIR/bin/gnuplot"
	chmod +x "$BATS_TEST_TMPDIR/bin/gnuplot"
	run asked
	assert_output ''
	runs_for 3
	run_mmopt -j ab "${SHORT[@]}" --plot "$BATS_TEST_TMPDIR/a.svg" \
		madvise "${LOAD[@]}"
	assert_failure 1
	assert_json '.errors[0] | .where == "gnuplot" and .what == "cannot draw"'
	run_mmopt -j ab "${SHORT[@]}" --csv /dev/full madvise -- true
	assert_failure 1
	assert_json '.errors[0].where' --csv
}
