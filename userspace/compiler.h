/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_COMPILER_H
#define MMOPT_COMPILER_H

#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define __printf(fmt, args) \
	__attribute__((format \
		       (printf, fmt, args)))

#endif /* MMOPT_COMPILER_H */
