/* SPDX-License-Identifier: GPL-2.0 */
/* Between the path madvise and its livepatch companion. */
#ifndef MMOPT_PATHS_MADVISE_H
#define MMOPT_PATHS_MADVISE_H

#include <linux/types.h>

struct madvise_behavior;
struct mmopt_klp;

extern struct mmopt_klp mmopt_klp_madvise;

long mmopt_madvise_cold(struct madvise_behavior *behavior);
long mmopt_madvise_pageout(struct madvise_behavior *behavior);

#endif /* MMOPT_PATHS_MADVISE_H */
