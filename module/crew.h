/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel threads that help a task with work that can be cut into items. */
#ifndef MMOPT_CREW_H
#define MMOPT_CREW_H

#include <linux/types.h>

#define MMOPT_CREW_MAX	16UL	/* with the caller */

int mmopt_crew_init(char *why, size_t why_len);
int mmopt_crew_start(char *why, size_t why_len);
void mmopt_crew_stop(void);
unsigned int mmopt_crew_do(void (*fn)(void *arg, unsigned int item), void *arg,
			   unsigned int items, unsigned int helpers);

#endif /* MMOPT_CREW_H */
