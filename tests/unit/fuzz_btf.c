// SPDX-License-Identifier: GPL-2.0
/* Whatever the bytes, the BTF reader gives one of its answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct mmopt_btf_want want[] = {
	{ .kind = MMOPT_BTF_FUNC, .name = "walk_range", .proto = "int (const struct walk *, size_t)" },
	{ .kind = MMOPT_BTF_FUNC, .name = "f", .proto = "void (void)" },
	{ .kind = MMOPT_BTF_MEMBER, .name = "struct walk", .member = "range.end" },
	{ .kind = MMOPT_BTF_MEMBER, .name = "struct walk", .member = "table" },
	{ .kind = MMOPT_BTF_MEMBER, .name = "union s", .member = "m" },
	{ .kind = MMOPT_BTF_SIZE, .name = "struct s" },
	{ .kind = MMOPT_BTF_ENUM, .name = "enum mode", .member = "LOCKED" },
	{ .kind = MMOPT_BTF_ENUM, .name = "enum wide", .member = "HIGH" },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mmopt_btf btf;
	char why[128];
	size_t i;
	int err;

	err = mmopt_btf_open(&btf, data, len, why, sizeof(why));
	if (err && (err != -EBADMSG || !memchr(why, 0, sizeof(why))))
		abort();
	for (i = 0; !err && i < sizeof(want) / sizeof(want[0]); i++) {
		int ret;

		memset(why, 'x', sizeof(why));
		ret = mmopt_btf_check(&btf, &want[i], 1, why, sizeof(why));
		if (ret && ret != -ENOENT && ret != -EINVAL && ret != -EEXIST && ret != -EBADMSG)
			abort();
		if (ret && !memchr(why, 0, sizeof(why)))
			abort();
	}
	return 0;
}
