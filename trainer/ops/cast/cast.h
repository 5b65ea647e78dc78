/* SPDX-License-Identifier: Apache-2.0 */
/* cast.h: y = x in another float type, rounded to nearest even. in x out y. */
#ifndef DPT_OPS_CAST_H
#define DPT_OPS_CAST_H

#include "trainer/graph/op.h"

struct tensor *cast_add(struct graph *g, struct tensor *x, enum dtype to);

/* ---- the tables of casts.def as data, one for each of Apex's levels ---- */

/* Returns the table of level O1, O2 or O3 (1 to 3), which is constant; NULL for O0: nothing is cast. */
const struct cast_table *casts_of_level(int level);

#endif
