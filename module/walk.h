/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MMOPT_WALK_H
#define MMOPT_WALK_H

#include <linux/pagewalk.h>

int mmopt_walk_vma(struct vm_area_struct *vma, unsigned long start,
		   unsigned long end, const struct mm_walk_ops *ops,
		   void *private);

#endif /* MMOPT_WALK_H */
