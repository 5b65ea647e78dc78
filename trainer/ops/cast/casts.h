/* SPDX-License-Identifier: Apache-2.0 */
/* casts.h: the tables of casts.def as data, one for each of Apex's levels. */
#ifndef DPT_OPS_CASTS_H
#define DPT_OPS_CASTS_H

#include "trainer/graph/op.h"

/* Returns the table of level O1, O2 or O3 (1 to 3), which is constant; NULL for O0: nothing is cast. */
const struct cast_table *casts_of_level(int level);

#endif
