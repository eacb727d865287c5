// SPDX-License-Identifier: GPL-2.0
#include <Zydis/Zydis.h>
#include <err.h>
#include <stdbool.h>

#include "decode.h"

int decode_len(const uint8_t *p, size_t avail)
{
	ZydisDecodedInstruction insn;
	static ZydisDecoder decoder;
	static bool ready;

	if (!ready && ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
						   ZYDIS_STACK_WIDTH_64)))
		errx(1, "ZydisDecoderInit");
	ready = true;
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, p, avail, &insn)))
		return -1;
	return insn.length;
}
