// SPDX-License-Identifier: GPL-2.0
/* A swap device in compressed memory, of our own, for as long as we run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/swap.h>
#include <unistd.h>

#include "ab.h"

#define ZRAM_CONTROL	"/sys/class/zram-control"
#define ZRAM_BYTES	"2G"

static int device = -1;
static bool swapping, our_module;

static int write_file(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (n < 0)
		ab_error("%s: %s", file, strerror(errno));
	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

/* Reading the file makes a device; its content is the number. */
static int add_device(void)
{
	FILE *f = fopen(ZRAM_CONTROL "/hot_add", "re");
	int ok;

	if (!f) {
		ab_error(ZRAM_CONTROL "/hot_add: %s", strerror(errno));
		return -1;
	}
	ok = fscanf(f, "%d", &device) == 1;
	fclose(f);
	if (!ok) {
		device = -1;
		ab_error("zram gives no device");
		return -1;
	}
	return 0;
}

int ab_swap_on(void)
{
	char *const modprobe[] = { "modprobe", "zram", NULL };
	char dev[32], size[64];
	char *const mkswap[] = { "mkswap", dev, NULL };

	if (access(ZRAM_CONTROL, F_OK)) {
		if (ab_exec(modprobe)) {
			ab_error("the PAGEOUT cases need zram, which this kernel lacks");
			return -1;
		}
		our_module = true;
	}
	if (add_device())
		return -1;
	snprintf(dev, sizeof(dev), "/dev/zram%d", device);
	snprintf(size, sizeof(size), "/sys/block/zram%d/disksize", device);
	if (write_file(size, ZRAM_BYTES) || ab_exec(mkswap))
		return -1;
	/* Before any other swap of the host: a disk would be measured, not mm. */
	if (swapon(dev, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK)) {
		ab_error("swapon %s: %s", dev, strerror(errno));
		return -1;
	}
	swapping = true;
	return 0;
}

void ab_swap_off(void)
{
	char *const modprobe[] = { "modprobe", "-r", "zram", NULL };
	char text[64];

	if (swapping) {
		snprintf(text, sizeof(text), "/dev/zram%d", device);
		if (swapoff(text)) {
			ab_error("swapoff %s: %s", text, strerror(errno));
			return;
		}
		swapping = false;
	}
	if (device >= 0) {
		snprintf(text, sizeof(text), "/sys/block/zram%d/reset", device);
		write_file(text, "1");
		snprintf(text, sizeof(text), "%d", device);
		write_file(ZRAM_CONTROL "/hot_remove", text);
		device = -1;
	}
	if (our_module)
		ab_exec(modprobe);
	our_module = false;
}

/* Pages written to swap since boot. */
unsigned long long ab_swapped_out(void)
{
	FILE *f = fopen("/proc/vmstat", "re");
	unsigned long long pages = 0;
	char line[128];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "pswpout %llu", &pages) == 1)
			break;
	fclose(f);
	return pages;
}
