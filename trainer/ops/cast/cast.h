/* SPDX-License-Identifier: Apache-2.0 */
/* cast.h: y = x in another float type, rounded to nearest even. in x out y. */
#ifndef DPT_OPS_CAST_H
#define DPT_OPS_CAST_H

#include "trainer/graph/graph.h"

struct tensor *cast_add(struct graph *g, struct tensor *x, enum dtype to);

#endif
