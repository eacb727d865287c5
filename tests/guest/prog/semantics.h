/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SEMANTICS_H
#define SEMANTICS_H

#include "common.h"

/* The two kinds of advice that the path takes. */
struct advice {
	const char *name;
	int value;
};

extern const struct advice advices[2];

#define for_each_advice(a) \
	for (const struct advice *(a) = advices; (a) < advices + 2; (a)++)

void ranges(void);
void files(void);
void huge(void);
void vector(void);
void uring(void);
void compat(void);

#endif
