/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_CONTROL_H
#define MMOPT_CONTROL_H

void mmopt_control_init(void);
void mmopt_control_exit(void);

#endif /* MMOPT_CONTROL_H */
