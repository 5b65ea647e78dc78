/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h: the op numbers and the table of op descriptions, from ops.def. */
#ifndef DPT_OPS_OPS_H
#define DPT_OPS_OPS_H

#include "trainer/graph/kernel.h"
#include "trainer/graph/op.h"

enum op_id {
#define OP(name) OP_##name,
#include "trainer/ops/ops.def"
#undef OP
	OP_COUNT
};

#define OP(name) extern const struct op op_##name;
#include "trainer/ops/ops.def"
#undef OP

extern const struct op *const ops_table[OP_COUNT];

#endif
