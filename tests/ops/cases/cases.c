/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c: helpers of the case tables. */
#include "tests/ops/cases/cases.h"

#include "trainer/ops/step_guard/step_guard.h"

struct tensor *case_input(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
	return graph_tensor(
		g, &(struct tensor){
			   .name = name, .kind = TENSOR_ACT, .dtype = dtype, .shape = shape, .life = LIFE_STEP });
}

int64_t case_count(const struct tensor *t)
{
	return shape_count(&t->shape);
}

void case_step(double *step, double updates)
{
	step[STEP_GUARD_FACTOR] = updates > 0 ? 0.5 : 0;
	step[STEP_GUARD_SKIP] = updates <= 0;
	step[STEP_GUARD_UPDATES] = updates;
}
