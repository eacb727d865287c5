#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0
#
# Each error has a message, a hint, a JSON form and an exit status of its own:
# docs/errors.md, which these tests hold to.

load helpers/mmopt

DOC=$BATS_TEST_DIRNAME/../../docs/errors.md

# The exit status that the document gives to an error, by how its row begins.
documented() {
	sed -n "s/^| $1[^|]* | \([0-9]*\) |.*/\1/p" "$DOC"
}

# provoke ROW WHERE ERRNO WHAT HINT COMMAND...: one error, in both forms.
provoke() {
	local rc where=$2 errno=$3 what=$4 hint=$5 by=${RUN_AS:-run_mmopt}

	rc=$(documented "$1")
	assert [ -n "$rc" ]
	shift 5
	"$by" "$@"
	assert_failure "$rc"
	# shellcheck disable=SC2154
	assert_equal "${#stderr_lines[@]}" 1
	assert_stderr "mmopt: $where: "
	assert_stderr "$what"
	assert_message_form
	"$by" -j "$@"
	assert_failure "$rc"
	refute_stderr
	assert_json '.errors | length' 1
	assert_json '.errors[0].rc' "$rc"
	assert_json '.errors[0].where' "$where"
	assert_json '.errors[0].errno // ""' "$errno"
	HINT=$hint WHAT=$what assert_json \
		'.errors[0] | (.hint | contains(env.HINT)) and (.what | contains(env.WHAT))'
}

loaded() {
	tree_loaded
	tree_path madvise "${1:-off}"
}

answer() {
	behave <<-END
		on_$1() { $2; }
	END
}

@test "not root" {
	tree_module
	answer insert "return $EPERM"
	chmod -R a+rX "$MMOPT_ROOT"
	RUN_AS=run_mmopt_as_user provoke 'not root' load EPERM \
		'the kernel does not take the module' 'run mmopt as root' load
	loaded
	chmod -R a+rX,a-w "$MMOPT_ROOT/sys"
	RUN_AS=run_mmopt_as_user provoke 'not root' madvise EACCES \
		'cannot be switched' 'run mmopt as root' enable madvise
	chmod -R u+w "$MMOPT_ROOT/sys"
	chmod 0700 "$MMOPT_ROOT/sys/kernel/debug"
	RUN_AS=run_mmopt_as_user provoke 'not root' /sys/kernel/debug/mmopt EACCES \
		'cannot be read' 'run mmopt as root' status
}

@test "debugfs not mounted" {
	loaded
	put proc/mounts 'sysfs /sys sysfs rw 0 0'
	provoke 'debugfs not mounted' debugfs '' 'not mounted, though the module is loaded' \
		'mount -t debugfs none /sys/kernel/debug' enable madvise
}

@test "module not loaded" {
	tree_module
	provoke 'module not loaded' mmopt '' 'the module is not loaded' "run 'mmopt load' as root" \
		enable madvise
}

@test "wrong vermagic, or none built for this kernel" {
	provoke 'wrong vermagic' load ENOENT 'there is no module to load' 'DKMS' load
	tree_module
	answer insert "return $ENOEXEC"
	provoke 'wrong vermagic' load ENOEXEC "was not built for kernel $RELEASE" \
		"dkms install mmopt/0.1.0 -k $RELEASE --force" load
}

@test "key rejected" {
	tree_module
	answer insert "return $EKEYREJECTED"
	provoke 'key rejected' load EKEYREJECTED "the kernel rejects the module's signature" \
		'mokutil --import /var/lib/dkms/mok.pub' load
	answer insert "return $ENOKEY"
	provoke 'key rejected' load ENOKEY "the kernel rejects the module's signature" \
		'mokutil --import /var/lib/dkms/mok.pub' load
}

@test "lockdown" {
	[ "$(id -u)" -eq 0 ] || skip 'root is what these are about'
	put sys/kernel/security/lockdown 'none [integrity] confidentiality'
	tree_module
	answer insert "return $EPERM"
	provoke lockdown load EPERM 'does not take the module, lockdown is integrity' \
		'mokutil --import' load
	loaded
	touch "$MMOPT_ROOT/.lockdown"
	answer write "return $EPERM"
	provoke lockdown madvise EPERM 'cannot be switched: neither debugfs nor the module parameter' \
		'options mmopt enable=madvise' enable madvise
}

@test "path unavailable" {
	loaded 'unavailable: no symbol madvise_cold'
	answer write "return $EOPNOTSUPP"
	provoke 'path unavailable' madvise EOPNOTSUPP 'cannot enable, no symbol madvise_cold' \
		'does not fit this kernel' enable madvise
}

@test "owned by another livepatch" {
	loaded
	answer write "path_state madvise 'off: do_madvise is owned by another'; return $EBUSY"
	provoke 'owned by another' madvise EBUSY 'cannot enable, do_madvise is owned by another' \
		"see 'mmopt check'" enable madvise
}

@test "drain stalled, with the tasks that hold it" {
	loaded on
	tree_task 200 201 bgsave mmopt_do_madvise
	answer write 'wait_for_calls madvise'
	provoke 'drain stalled' madvise ETIMEDOUT 'calls are still under way after 2 s, in bgsave (201)' \
		"'mmopt disable madvise' waits again" disable --timeout 2 madvise
	assert_json '.inside[0] | .pid == 200 and .tid == 201 and .comm == "bgsave"'
}

@test "no two errors share a status, and the man page has each" {
	local page

	page=$(sed -n '/^\.SH EXIT STATUS/,/^\.SH FILES/s/^\([0-9]*\)\t.*/\1/p' "$MMOPT_MAN" |
		sed '/^0$/d' | sort -n)
	run bash -c "sed -n 's/^| [^|]* | \([0-9]*\) |.*/\1/p' '$DOC' | sort -n"
	assert_equal "$output" "$page"
	assert_equal "$(uniq -d <<<"$output")" ''
}
