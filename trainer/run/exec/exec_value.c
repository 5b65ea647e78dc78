/* exec_value.c: see exec_value.h. */
#include "trainer/run/exec/exec_value.h"

#include <stddef.h>
#include <string.h>

#define VALUE(tensor, member) \
	{ tensor, offsetof(struct exec_results, member), sizeof(((struct exec_results *)0)->member) }

void exec_values(struct exec_value ret[EXEC_VALUES], const struct program *p)
{
	const struct exec_value values[EXEC_VALUES] = {
		VALUE(p->result, own),
		VALUE(p->result_sum, sum),
		VALUE(p->grad_norm, grad_norm),
		VALUE(p->optimizer, state),
		VALUE(p->votes, votes),
	};

	memcpy(ret, values, sizeof(values));
}

bool exec_clears(const struct program *p)
{
	return p->result && p->result->kind == TENSOR_INPUT;
}

int64_t exec_losses_most(const struct prepared *p)
{
	int64_t most = 0;

	for (int i = 0; i < p->n_programs; i++) {
		const struct program *q = p->program[i];
		const int64_t n = q->losses ? q->schedule.slots * shape_count(&q->losses->shape) : 0;

		most = n > most ? n : most;
	}
	return most;
}
