// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

/* Where the kernel only lacks a path, it is a note. */
static const struct need {
	const char *option;
	enum verdict missing;
	const char *why;
} needs[] = {
	{ "MODULES", CHECK_PROBLEM, "no module can be loaded" },
	{ "KPROBES", CHECK_PROBLEM, "private symbols cannot be found" },
	{ "KALLSYMS_ALL", CHECK_PROBLEM, "private symbols cannot be found" },
	{ "DYNAMIC_FTRACE_WITH_REGS", CHECK_PROBLEM, "no function can be redirected" },
	{ "HAVE_STATIC_CALL_INLINE", CHECK_PROBLEM, "no call can be redirected" },
	{ "DEBUG_INFO_BTF", CHECK_PROBLEM, "what the paths rely on cannot be verified" },
	{ "DEBUG_FS", CHECK_PROBLEM, "there is nothing to switch paths with" },
	{ "PER_VMA_LOCK", CHECK_NOTE, "no paths madvise, ksm and pagemap (needs Linux 6.4)" },
	{ "KSM", CHECK_NOTE, "no path ksm" },
};

static char *read_config(char *from, size_t size)
{
	static const char *const places[] = {
		"/boot/config-%s", "/lib/modules/%s/config", "/lib/modules/%s/build/.config",
	};
	char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !text; i++) {
		snprintf(from, size, places[i], host_release());
		text = file_slurp("%s", from);
	}
	return text;
}

/* Finds "CONFIG_<name>=y" as a whole line. */
static bool config_has(const char *config, const char *name)
{
	char line[96];
	const char *at;
	size_t len;

	len = (size_t)snprintf(line, sizeof(line), "CONFIG_%s=y", name);
	for (at = strstr(config, line); at; at = strstr(at + 1, line))
		if ((at == config || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
			return true;
	return false;
}

static void check_config(void)
{
	char from[PATH_MAX], *config = read_config(from, sizeof(from));

	if (!config) {
		check_item(CHECK_NOTE, "kernel config", "not found for %s", host_release());
		check_info("'zcat /proc/config.gz >/boot/config-%s' helps, if the kernel has that file",
			   host_release());
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct need *need = &needs[i];
		char name[64];

		snprintf(name, sizeof(name), "config %s", need->option);
		if (config_has(config, need->option)) {
			check_item(CHECK_OK, name, "y");
			continue;
		}
		check_item(need->missing, name, "not set in %s: %s", from, need->why);
		if (need->missing == CHECK_PROBLEM)
			check_info("use a kernel that has it; those of Debian 12 and later do");
	}
	free(config);
}

static void check_btf(void)
{
	if (file_exists("/sys/kernel/btf/vmlinux")) {
		check_item(CHECK_OK, "BTF", "/sys/kernel/btf/vmlinux");
		return;
	}
	check_item(CHECK_PROBLEM, "BTF", "no /sys/kernel/btf/vmlinux");
	check_info("every path will be unavailable: use a kernel built with DEBUG_INFO_BTF");
}

static void check_debugfs(void)
{
	char mount[PATH_MAX];

	if (!host_debugfs(mount, sizeof(mount))) {
		check_item(CHECK_OK, "debugfs", "mounted on %s", mount);
		return;
	}
	check_item(CHECK_PROBLEM, "debugfs", "not mounted");
	check_info("run 'mount -t debugfs none /sys/kernel/debug' as root");
}

static void check_ftrace(void)
{
	char value[8];
	int ret;

	ret = file_line(value, sizeof(value), "/proc/sys/kernel/ftrace_enabled");
	if (!ret && value[0] == '1') {
		check_item(CHECK_OK, "ftrace", "enabled");
	} else if (!ret) {
		check_item(CHECK_PROBLEM, "ftrace", "disabled: hooks would be set and never run");
		check_info("run 'sysctl kernel.ftrace_enabled=1' as root");
	} else {
		check_item(CHECK_PROBLEM, "ftrace", "kernel.ftrace_enabled: %s", strerror(-ret));
		check_info("the kernel has no ftrace, or a fault has ended it (see dmesg): reboot");
	}

	ret = file_line(value, sizeof(value), "/sys/kernel/debug/kprobes/enabled");
	if (!ret && value[0] == '1') {
		check_item(CHECK_OK, "kprobes", "enabled");
	} else if (!ret) {
		check_item(CHECK_PROBLEM, "kprobes", "disabled");
		check_info("run 'echo 1 >/sys/kernel/debug/kprobes/enabled' as root");
	} else {
		check_item(CHECK_NOTE, "kprobes", "kprobes/enabled in debugfs: %s", strerror(-ret));
		if (ret == -EACCES)
			check_info("run mmopt as root");
		else if (ret == -EPERM)
			check_info("lockdown closes it; 'mmopt status' tells whether hooks work");
	}
}

static void no_advice(const char *fmt, ...)
{
	(void)fmt;
}

static void check_module(void)
{
	enum module_fit fit = module_fit(no_advice);
	struct module_info info;

	/* Whether it is signed as it must be is a check of its own. */
	if (fit == MODULE_FITS || fit == MODULE_UNSIGNED) {
		module_find(&info);
		check_item(CHECK_OK, "module", "%s, version %s", info.file, info.version);
		module_info_free(&info);
	} else {
		check_item(CHECK_PROBLEM, "module", "would not load here");
		module_fit(check_info);
	}
	if (host_headers())
		check_item(CHECK_OK, "kernel headers", "/lib/modules/%s/build", host_release());
	else
		check_item(CHECK_NOTE, "kernel headers", "missing, so that DKMS cannot build");
	if (!host_headers())
		check_info("run 'apt install %s'", host_headers_package());
}

void check_kernel(void)
{
	const char *machine = host_machine();

	if (!strcmp(machine, "x86_64")) {
		check_item(CHECK_OK, "architecture", "%s", machine);
	} else {
		check_item(CHECK_PROBLEM, "architecture", "%s", machine);
		check_info("mmopt is for x86-64 only");
	}
	check_config();
	check_btf();
	check_debugfs();
	check_ftrace();
	check_module();
}
