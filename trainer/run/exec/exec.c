/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c: what all executors share: the kinds of time, and the values that a program returns. */
#include "trainer/run/exec/exec_inside.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

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

enum exec_time exec_time_of(const struct node *n)
{
	if (n->op->collective)
		return n->group == GROUP_PIPELINE || n->group == GROUP_ENDS ? EXEC_BUBBLE : EXEC_COMM_EXPOSED;
	switch (n->phase) {
	case PHASE_FORWARD:
		return EXEC_FORWARD;
	case PHASE_BACKWARD:
		return EXEC_BACKWARD;
	case PHASE_OPTIMIZER:
		return EXEC_OPTIMIZER;
	default:
		return EXEC_COMM_EXPOSED;
	}
}

enum exec_time exec_time_of_wait(enum stream s)
{
	switch (s) {
	case STREAM_COPY_IN:
	case STREAM_COPY_OUT:
		return EXEC_COPY_EXPOSED;
	case STREAM_SEND_FORWARD:
	case STREAM_RECV_FORWARD:
	case STREAM_SEND_BACKWARD:
	case STREAM_RECV_BACKWARD:
		return EXEC_BUBBLE;
	default:
		return EXEC_COMM_EXPOSED;
	}
}

const char *exec_time_name(enum exec_time kind)
{
	static const char *const names[EXEC_TIMES] = { [EXEC_H2D] = "h2d",
						       [EXEC_FORWARD] = "forward",
						       [EXEC_BACKWARD] = "backward",
						       [EXEC_COMM_EXPOSED] = "comm_exposed",
						       [EXEC_OPTIMIZER] = "optimizer",
						       [EXEC_BUBBLE] = "bubble",
						       [EXEC_COPY_EXPOSED] = "copy_exposed" };

	return names[kind];
}

void exec_time_begin(double **seconds, const struct program *p)
{
	size_t n = (size_t)p->graph->n_nodes;

	if (!*seconds)
		*seconds = mem_array(n + 1, sizeof(**seconds));
	memset(*seconds, 0, n * sizeof(**seconds));
}

/* ---- the executor of the backend ---- */
