/* SPDX-License-Identifier: Apache-2.0 */
/* optimizers.c: the table of optimisers. */
#include "trainer/optimizers/optimizers.h"

const struct optimizer *const optimizers_table[OPTIMIZER_COUNT] = {
#define OPTIMIZER(name, ...) [OPTIMIZER_##name] = &optimizer_##name,
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
};
