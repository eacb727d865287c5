#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# What the compiler made of the module. CPUs with indirect-branch tracking, which
# the guest has not, stop at a call through a pointer to a kernel function whose
# landing pad was erased; and tail calls are only there if the compiler made them.

load helpers

# Functions that call through pointers, and what these lead to:
INDIRECT='
	^(arm|disarm|enable|disable)$		operations of a path, ours
	^(trip_work|mmopt_path_[a-z]+)$		operations of a path, ours
	^mmopt_btf_check$			checks, ours
	^(mmopt_calls_find|find|scan)$		the decoder that the caller gives, ours
	^(mmopt_walk_vma|walk_pmds)$		the callback of our own page walk
	^(mmopt_crew_do|serve|help)$		the work that is shared, ours
	^takeover$				the filter of a hook, ours
	^(call_selftest|mmopt_entry_selftest)$	the function of the self test, ours
	^__traceiter_				tracers, by the kernel'\''s own macros
'

setup_file()
{
	local file

	file=$(modinfo -n mmopt)
	case $file in
	*.xz) xz -dc "$file" ;;
	*.zst) zstd -qdc "$file" ;;
	*) cat "$file" ;;
	esac >"$BATS_FILE_TMPDIR/mmopt.ko"
	objdump -dr --no-show-raw-insn "$BATS_FILE_TMPDIR/mmopt.ko" >"$BATS_FILE_TMPDIR/code"
}

# One function's instructions and relocations.
code_of()
{
	sed -n "/^[0-9a-f]* <$1>:\$/,/^\$/p" "$BATS_FILE_TMPDIR/code"
}

@test "no call through a pointer leads to a kernel function that was looked up" {
	local function known

	# the kernel itself makes direct calls of those through pv_ops
	run awk '
		/^[0-9a-f]+ <.*>:$/ { fn = $2; gsub(/[<>:]|\.(constprop|isra|part|cold).*/, "", fn) }
		/__x86_indirect_thunk/ { print fn }
		/(call|jmp) +\*/ { pending = fn; next }
		pending { if (!/pv_ops/) print pending; pending = "" }
	' "$BATS_FILE_TMPDIR/code"
	assert_success
	known=$(awk 'NF { print $1 }' <<<"$INDIRECT" | paste -sd'|')
	run grep -Ev "$known" <<<"$(sort -u <<<"$output")"
	assert_output ""
}

@test "functions that were looked up are called by static calls" {
	run grep -c 'R_X86_64_PLT32.*__SCT__k_' "$BATS_FILE_TMPDIR/code"
	assert [ "$output" -gt 0 ]
	run nm -u "$BATS_FILE_TMPDIR/mmopt.ko"
	refute_output --regexp '\b(do_madvise|move_page_tables|lock_vma_under_rcu)$'
}

@test "other advice passes without a frame of ours: in by the call, out by a jump" {
	local function

	modprobe mmopt
	grep -q '^madvise unavailable' /sys/kernel/debug/mmopt/status &&
		skip "the path madvise is not in this module"
	for function in mmopt_do_madvise mmopt_vector_madvise; do
		run code_of $function
		[ $function = mmopt_do_madvise ] || [[ $(uname -r) == 7.* ]] || continue
		refute_output ""
		# the only call is the one for ftrace
		assert_equal "$(grep -c '\bcall\b' <<<"$output")" 1
		assert_output --partial __fentry__
		refute_output --regexp '\bret\b|__x86_return_thunk'
		refute_output --regexp '\bpush\b|sub +.0x[0-9a-f]+,%rsp'
		assert_output --regexp 'jmp .*'
		assert_output --partial "__SCT__k_${function#mmopt_}"
	done
}

@test "small mappings pass without a frame of ours: in by the call, out by a jump" {
	run code_of mmopt_copy_page_range
	refute_output ""
	assert_equal "$(grep -c '\bcall\b' <<<"$output")" 1
	assert_output --partial __fentry__
	refute_output --regexp '\bret\b|__x86_return_thunk'
	refute_output --regexp '\bpush\b|sub +.0x[0-9a-f]+,%rsp'
	assert_output --partial "__SCT__k_copy_page_range"
}
