/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: the table of op descriptions. */
#include "trainer/ops/ops.h"

#define OP(name) [OP_##name] = &op_##name,
const struct op *const ops_table[OP_COUNT] = {
#include "trainer/ops/ops.def"
};
#undef OP
