/* SPDX-License-Identifier: Apache-2.0 */
/* casts.c: casts.def as one table for each level. */
#include "trainer/ops/cast/casts.h"

#include "trainer/ops/ops.h"

enum { STORED_F32 = DTYPE_F32, STORED_F16 = DTYPE_F16, STORED_NONE = CAST_STORES_NONE };

#define STORED(...)
#define CAST(op, o1, o2, o3) [OP_##op] = CAST_##o1,
static const enum cast_rule rules_o1[OP_COUNT] = {
#include "trainer/ops/casts.def"
};
#undef CAST
#define CAST(op, o1, o2, o3) [OP_##op] = CAST_##o2,
static const enum cast_rule rules_o2[OP_COUNT] = {
#include "trainer/ops/casts.def"
};
#undef CAST
#define CAST(op, o1, o2, o3) [OP_##op] = CAST_##o3,
static const enum cast_rule rules_o3[OP_COUNT] = {
#include "trainer/ops/casts.def"
};
#undef CAST
#undef STORED

#define CAST(...)
#define STORED(what, o1, o2, o3) .what = (int)STORED_##o1,
static const struct cast_table table_o1 = {
#include "trainer/ops/casts.def"
	.rule = rules_o1
};
#undef STORED
#define STORED(what, o1, o2, o3) .what = (int)STORED_##o2,
static const struct cast_table table_o2 = {
#include "trainer/ops/casts.def"
	.rule = rules_o2
};
#undef STORED
#define STORED(what, o1, o2, o3) .what = (int)STORED_##o3,
static const struct cast_table table_o3 = {
#include "trainer/ops/casts.def"
	.rule = rules_o3
};
#undef STORED
#undef CAST

const struct cast_table *casts_of_level(int level)
{
	static const struct cast_table *const tables[] = { NULL, &table_o1, &table_o2, &table_o3 };

	return level > 0 && level < 4 ? tables[level] : NULL;
}
