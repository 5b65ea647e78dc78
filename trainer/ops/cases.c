/* cases.c: what the case tables share. */
#include "trainer/ops/cases.h"

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
