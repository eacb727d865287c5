// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "mmopt.h"

#define SECURE_BOOT_VAR \
	"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

const char *host_release(void)
{
	static char release[128];
	struct utsname name;

	if (release[0])
		return release;
	if (file_line(release, sizeof(release), "/proc/sys/kernel/osrelease") || !release[0]) {
		uname(&name);
		snprintf(release, sizeof(release), "%s", name.release);
	}
	return release;
}

const char *host_machine(void)
{
	static char machine[128];
	struct utsname name;

	/* Not there before Linux 6.1. */
	if (file_line(machine, sizeof(machine), "/proc/sys/kernel/arch") || !machine[0]) {
		uname(&name);
		snprintf(machine, sizeof(machine), "%s", name.machine);
	}
	return machine;
}

bool host_cmdline_has(const char *word)
{
	static const char blanks[] = { ' ', '\n', 0 };
	char *text = file_slurp("/proc/cmdline"), *save, *token;
	bool found = false;

	if (!text)
		return false;
	for (token = strtok_r(text, blanks, &save); token; token = strtok_r(NULL, blanks, &save))
		if (!strcmp(token, word))
			found = true;
	free(text);
	return found;
}

/* "none", "integrity" or "confidentiality"; empty if the kernel does not tell. */
const char *host_lockdown(void)
{
	static char level[32];
	char line[128], *from, *to;

	level[0] = '\0';
	if (file_line(line, sizeof(line), "/sys/kernel/security/lockdown"))
		return level;
	from = strchr(line, '[');
	to = from ? strchr(from, ']') : NULL;
	if (to)
		snprintf(level, sizeof(level), "%.*s", (int)(to - from - 1), from + 1);
	return level;
}

bool host_locked_down(void)
{
	const char *level = host_lockdown();

	return *level && strcmp(level, "none");
}

bool host_sig_enforce(void)
{
	char line[8];

	return !file_line(line, sizeof(line), "/sys/module/module/parameters/sig_enforce") &&
	       (line[0] == 'Y' || line[0] == '1');
}

/* 1, 0, or -1 where there is no UEFI or it does not tell. */
int host_secure_boot(void)
{
	unsigned char value[5];	/* four bytes of attributes, then the value */
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	fd = open(file_path(path, SECURE_BOOT_VAR), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, value, sizeof(value));
	close(fd);
	return n == (ssize_t)sizeof(value) ? value[4] == 1 : -1;
}

bool host_headers(void)
{
	return file_exists("/lib/modules/%s/build/Makefile", host_release());
}

/*
 * The package that brings the headers of this flavour and of its updates.
 * Kernels that are not named as Debian's have one per release.
 */
const char *host_headers_package(void)
{
	static const char *const flavours[] = { "cloud-amd64", "rt-amd64", "amd64" };
	static char package[192];
	const char *release = host_release();
	size_t i, len = strlen(release);

	for (i = 0; i < ARRAY_SIZE(flavours); i++) {
		size_t n = strlen(flavours[i]);

		if (len > n && release[len - n - 1] == '-' &&
		    !strcmp(release + len - n, flavours[i])) {
			snprintf(package, sizeof(package), "linux-headers-%s", flavours[i]);
			return package;
		}
	}
	snprintf(package, sizeof(package), "linux-headers-%s", release);
	return package;
}

static int find_mount(const char *type, char *mount, size_t size)
{
	char path[PATH_MAX];
	struct mntent *entry;
	FILE *mounts;
	int ret = -ENOENT;

	mounts = setmntent(file_path(path, "/proc/mounts"), "re");
	if (!mounts)
		return -errno;
	while (ret && (entry = getmntent(mounts))) {
		if (strcmp(entry->mnt_type, type))
			continue;
		snprintf(mount, size, "%s", entry->mnt_dir);
		ret = 0;
	}
	endmntent(mounts);
	return ret;
}

/* Returns 0, or -ENOENT if debugfs is not mounted, or why that is not known. */
int host_debugfs(char *mount, size_t size)
{
	return find_mount("debugfs", mount, size);
}

/* The same for tracefs; debugfs mounts one in itself for who looks there. */
int host_tracefs(char *mount, size_t size)
{
	char debugfs[PATH_MAX / 2];

	if (!find_mount("tracefs", mount, size))
		return 0;
	if (host_debugfs(debugfs, sizeof(debugfs)) || !file_exists("%s/tracing/events", debugfs))
		return -ENOENT;
	snprintf(mount, size, "%s/tracing", debugfs);
	return 0;
}
