// SPDX-License-Identifier: GPL-2.0
/*
 * Whatever the bytes, what the search reports are calls of what was wanted.
 * The first two bytes of the input choose the counts, the rest is the function.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "decode.h"

#define ADDR	0xffffffff81234560ul
#define MAX	4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mmopt_callee callee[] = {
		{ .name = "lock", .addr = ADDR + 0x1000 },
		{ .name = "near", .addr = ADDR + 0x40 },
	};
	struct mmopt_text text = {
		.name = "f", .addr = ADDR, .text_lo = ADDR - 0x234560,
		.text_hi = ADDR + 0x1000000, .insn_len = decode_len,
	};
	struct mmopt_call call[MAX];
	unsigned int seen[2] = { 0 };
	char why[128];
	int i, nr;

	if (len < 2)
		return 0;
	for (i = 0; i < 2; i++) {
		callee[i].min = data[i] & 7;
		callee[i].max = data[i] >> 4;
	}
	text.bytes = data + 2;
	text.len = len - 2;
	memset(why, 'x', sizeof(why));
	nr = mmopt_calls_find(&text, callee, 2, call, MAX, why, sizeof(why));
	if (nr < 0) {
		if (!memchr(why, 0, sizeof(why)))
			abort();
		return 0;
	}
	if (nr > MAX)
		abort();
	for (i = 0; i < nr; i++) {
		int32_t rel;

		if (call[i].callee > 1 || call[i].offset + 5 > text.len ||
		    text.bytes[call[i].offset] != 0xe8)
			abort();
		memcpy(&rel, text.bytes + call[i].offset + 1, 4);
		if (ADDR + call[i].offset + 5 + rel != callee[call[i].callee].addr)
			abort();
		seen[call[i].callee]++;
	}
	for (i = 0; i < 2; i++)
		if (seen[i] < callee[i].min || seen[i] > callee[i].max)
			abort();
	return 0;
}
