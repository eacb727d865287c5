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

# page OPTION...: the page of a short run, in words
page() {
	run_mmopt -j ab --window 0.1 --html "$BATS_TEST_TMPDIR/a.html" "$@" madvise -- true
	assert_success
	run cat "$BATS_TEST_TMPDIR/a.html"
}

@test "the page says what a ratio means, and nothing of a number that is not there" {
	at_work 8192 1024
	page --metric 'echo 7'
	assert_line --partial 'in favour of the path; of the metric it says that the path makes it higher.'
	assert_line --partial '<td colspan="4">median -</td><td colspan="4">median -</td>'
	page --metric 'echo 7' --lower-is-better
	assert_line '<p>A ratio above 1 is in favour of the path.'
	page
	assert_line '<p>A ratio above 1 is in favour of the path.'
}

@test "a file keeps what it has until there is something else to write" {
	local a=$BATS_TEST_TMPDIR/a

	at_work 8192 1024
	put before "$(printf 'x%.0s' {1..99999})"
	cp "$MMOPT_ROOT/before" "$a.html"
	run_mmopt ab --html "$a.html" madvise -- "$BATS_TEST_TMPDIR/nosuch"
	assert_failure 1
	cmp "$MMOPT_ROOT/before" "$a.html"
	page
	assert_output --regexp '</html>$'

	cp "$MMOPT_ROOT/before" "$a.svg"
	runs_for 3
	run_mmopt ab "${SHORT[@]}" --plot "$a.svg" --csv /dev/stdout madvise "${LOAD[@]}"
	assert_success
	assert_line --regexp '^1,1,.*,madvise,'
	assert_equal "$(tr -d '[:space:]' <"$a.svg" | tail -c 6)" '</svg>'
}

@test "each file is for one thing" {
	at_work 8192 1024
	put before before
	ln -s before "$MMOPT_ROOT/same.svg"
	refuses 2 'mmopt: ab: two options name the same file, nothing was done; ' \
		--csv "$MMOPT_ROOT/before" --plot "$MMOPT_ROOT/same.svg" madvise
	refuses 2 'two options name the same file' \
		--csv "$MMOPT_ROOT/x" --html "$MMOPT_ROOT/./x" madvise
	assert_equal "$(<"$MMOPT_ROOT/before")" before
	run_mmopt -j ab --window 0.1 --csv /dev/null --html /dev/null madvise -- true
	assert_success
}

@test "gnuplot does not ask its own configuration" {
	at_work 8192 1024
	put home/.gnuplot "set label 'whoever' at graph 0.5, 0.5"
	runs_for 3
	HOME=$MMOPT_ROOT/home run_mmopt ab "${SHORT[@]}" --plot "$BATS_TEST_TMPDIR/a.svg" \
		madvise "${LOAD[@]}"
	assert_success
	grep -q '<svg' "$BATS_TEST_TMPDIR/a.svg"
	refute grep -q whoever "$BATS_TEST_TMPDIR/a.svg"
}

# ns NUMBER: as mmopt says it
ns() {
	awk -v ns="$1" 'BEGIN {
		split("ns us ms s", unit, " ")
		for (i = 1; ns >= 1000 && i < 4; i++)
			ns /= 1000
		printf "%.3g %s\n", ns, unit[i]
	}'
}

@test "the example in the README is the run that is recorded" {
	local top=$BATS_TEST_DIRNAME/../.. state calls mean p50 p99 words
	local record=$top/docs/measured/ab-madvise.json

	run sed -n '/sudo mmopt ab --seconds/,/^The verdict/s/^    //p' "$top/README.md"
	read -ra words < <(jq -r '"\(.seconds) \(.window_s) \(.seed)"' "$record")
	assert_line --index 1 "$(printf '%.3g s, windows of about %.3g s, seed %d' "${words[@]}")"
	assert_line --index 2 "madvise: $(jq -r '.paths[0].verdict' "$record")"
	for state in off on; do
		read -r calls mean p50 p99 < <(jq -r ".paths[0].$state |
			\"\(.count) \(.mean_ns) \(.p50_ns) \(.p99_ns)\"" "$record")
		assert_line "$(printf '  %-8s %12d %11s %11s %11s' $state "$calls" \
			"$(ns "$mean")" "$(ns "$p50")" "$(ns "$p99")")"
	done
	read -ra words < <(jq -r '.paths[0] | "\(.ratio) \(.confidence_percent) " +
		"\(.ratio_low) \(.ratio_high) \(.p) \(.pairs)"' "$record")
	assert_line "$(printf '  off / on: %.3g (%.4g %% confidence: %.3g to %.3g), p %.2g, %d pairs of windows' \
		"${words[@]}")"
}
