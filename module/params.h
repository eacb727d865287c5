/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_PARAMS_H
#define MMOPT_PARAMS_H

#include <linux/types.h>

bool mmopt_untested(void);
bool mmopt_inert(void);
void mmopt_params_live(void);
void mmopt_params_exit(void);

#endif /* MMOPT_PARAMS_H */
