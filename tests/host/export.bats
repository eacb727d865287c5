#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0

load helpers/mmopt

PROMTOOL=${MMOPT_CACHE:-/var/cache/mmopt}/promtool/promtool

# Prometheus' own checker, alone out of its package, which would start a server.
setup_file() {
	local dir

	[ ! -x "$PROMTOOL" ] || return 0
	mkdir -p "${PROMTOOL%/*/*}"
	dir=$(mktemp -d "${PROMTOOL%/*/*}/promtool.XXXXXX")
	(
		cd "$dir" || exit
		apt-get -q -o APT::Sandbox::User=root download prometheus
		dpkg-deb --fsys-tarfile ./*.deb | tar -xO ./usr/bin/promtool >promtool
		chmod +x promtool
		rm ./*.deb
		mv -T "$dir" "${PROMTOOL%/*}" 2>/dev/null || [ -x "$PROMTOOL" ]
	) >&2
}

host() {
	tree_loaded
	tree_path madvise on
	tree_path mremap 'unavailable: no such "function" \ here'
	put sys/kernel/debug/mmopt/madvise/stats 'v: 1' 'calls 1200' 'taken 1000' 'stock 200' \
		'pages 640' 'nmissed 0' 'teleported 7' 'fallback_vma_lock 190' \
		'fallback_userfaultfd 10' 'taken_sum_ns 23000000055' 'stock_sum_ns 5' \
		'taken_ns_1 3' 'taken_ns_1024 980' 'taken_ns_1048576 10' \
		'taken_ns_17179869184 7' 'stock_ns_4096 200'
}

checked() {
	run "$PROMTOOL" check metrics <<<"$1"
	assert_success
	assert_output ''
}

@test "what is exported is clean to promtool, whatever the module has counted" {
	local all

	host
	run_mmopt export --prometheus
	assert_success
	refute_stderr
	all=$output
	checked "$all"
	# which does find faults
	run "$PROMTOOL" check metrics <<<"${all//_seconds/_ms}"
	assert_failure
	run "$PROMTOOL" check metrics < <(grep -v '^# HELP mmopt_pages_total' <<<"$all")
	assert_failure
}

@test "state, counters and fallbacks" {
	host
	run_mmopt export --prometheus
	assert_line 'mmopt_build_info{version="0.1.0",module="0.1.0"} 1'
	assert_line 'mmopt_loaded 1'
	assert_line 'mmopt_path_state{path="madvise",state="on"} 1'
	assert_line 'mmopt_path_state{path="madvise",state="off"} 0'
	assert_line 'mmopt_path_state{path="mremap",state="unavailable"} 1'
	assert_line 'mmopt_calls_total{path="madvise"} 1200'
	assert_line 'mmopt_teleported_total{path="madvise"} 7'
	assert_line 'mmopt_fallbacks_total{path="madvise",reason="vma_lock"} 190'
	assert_line '# HELP mmopt_taken_total calls done the fast way'
	run_mmopt -j export --prometheus
	assert_success
	assert_json '.metrics[] | select(.name == "mmopt_calls_total") | "\(.type) \(.samples[0].labels.path) \(.samples[0].value)"' \
		'counter madvise 1200'
}

@test "histograms are cumulative, in seconds, with the same bounds for each path" {
	host
	run_mmopt export --prometheus
	assert_line 'mmopt_call_seconds_bucket{path="madvise",way="taken",le="2.56e-07"} 3'
	assert_line 'mmopt_call_seconds_bucket{path="madvise",way="taken",le="1.024e-06"} 3'
	assert_line 'mmopt_call_seconds_bucket{path="madvise",way="taken",le="2.048e-06"} 983'
	assert_line 'mmopt_call_seconds_bucket{path="madvise",way="taken",le="0.002097152"} 993'
	assert_line 'mmopt_call_seconds_bucket{path="madvise",way="taken",le="17.179869184"} 993'
	assert_line 'mmopt_call_seconds_bucket{path="madvise",way="taken",le="+Inf"} 1000'
	assert_line 'mmopt_call_seconds_count{path="madvise",way="taken"} 1000'
	assert_line 'mmopt_call_seconds_sum{path="madvise",way="taken"} 23.000000055'
	assert_line 'mmopt_call_seconds_sum{path="madvise",way="stock"} 0.000000005'
	# 28 bounds, for taken and stock of each of two paths
	assert_equal "$(grep -c _bucket <<<"$output")" $((28 * 2 * 2))
	run awk -F'[{}, ]' '/_bucket/ {
		series = $2 $3
		if (series == last && $NF < before)
			print
		last = series
		before = $NF + 0
	}' <<<"$output"
	assert_output ''
}

@test "a file is replaced whole, readable for all, and nothing else is left" {
	local dir=$BATS_TEST_TMPDIR/textfile

	host
	mkdir "$dir"
	echo old >"$dir/mmopt.prom"
	ln "$dir/mmopt.prom" "$dir/before"
	(umask 077 && run_mmopt export --prometheus --output "$dir/mmopt.prom"
		assert_success
		refute_stderr
		assert_output '')
	# a new file, not the old one written over
	assert_equal "$(cat "$dir/before")" old
	assert_equal "$(stat -c %a "$dir/mmopt.prom")" 644
	assert_equal "$(find "$dir" -mindepth 1 -printf '%f\n' | sort | xargs)" 'before mmopt.prom'
	checked "$(cat "$dir/mmopt.prom")"
	run_mmopt export --prometheus
	assert_equal "$(cat "$dir/mmopt.prom")" "$output"
	cd "$dir"
	rm mmopt.prom
	run_mmopt -j export --prometheus --output mmopt.prom
	assert_success
	assert_json '.output == "mmopt.prom" and (.metrics | length > 5)'
	[ -s mmopt.prom ]
}

@test "a file that cannot be written: exit 1, and nothing is left" {
	local dir=$BATS_TEST_TMPDIR/textfile

	host
	mkdir -p "$dir/mmopt.prom"
	for file in "$dir/mmopt.prom" "$dir/nosuch/mmopt.prom" "$dir/$(printf '%0300d' 1)"; do
		run_mmopt export --prometheus --output "$file"
		assert_failure 1
		assert_output ''
		assert_message_form
		assert_stderr 'cannot be replaced'
	done
	assert_equal "$(find "$dir" -type f)" ''
}

@test "a disk that is full leaves the old file" {
	host
	# files of at most 1024 bytes
	cd "$BATS_TEST_TMPDIR"
	echo old >mmopt.prom
	limited() { (trap '' XFSZ; ulimit -f 1; mmopt "$@"); }
	run --separate-stderr limited export --prometheus --output mmopt.prom
	assert_failure 1
	assert_stderr 'File too large'
	assert_equal "$(cat mmopt.prom)" old
	run find . -name 'mmopt.prom?*'
	assert_output ''
}

@test "the module is not loaded: exit 3, and the file says so" {
	local file=$BATS_TEST_TMPDIR/mmopt.prom

	run_mmopt export --prometheus --output "$file"
	assert_failure 3
	assert_message_form
	checked "$(cat "$file")"
	run cat "$file"
	assert_line 'mmopt_loaded 0'
	assert_line 'mmopt_build_info{version="0.1.0",module=""} 1'
	refute_output --partial _total
}

@test "what cannot be read as a whole replaces nothing" {
	local file=$BATS_TEST_TMPDIR/mmopt.prom

	host
	echo old >"$file"
	echo garbage >"$MMOPT_ROOT/sys/kernel/debug/mmopt/mremap/stats"
	run_mmopt export --prometheus --output "$file"
	assert_failure 1
	assert_equal "$(cat "$file")" old
	run_mmopt export --prometheus
	assert_failure 1
	assert_output ''
	chmod 0700 "$MMOPT_ROOT/sys/kernel/debug"
	run_mmopt_as_user export --prometheus
	assert_failure 4
	assert_output ''
}
