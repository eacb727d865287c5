/* SPDX-License-Identifier: GPL-2.0 */
/* The instruction decoder of the tests, in the form calls.h wants. */
#ifndef DECODE_H
#define DECODE_H

#include <stddef.h>
#include <stdint.h>

int decode_len(const uint8_t *p, size_t avail);

#endif /* DECODE_H */
