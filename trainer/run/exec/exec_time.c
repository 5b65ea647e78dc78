/* exec_time.c: kinds of time of nodes. */
#include "trainer/run/exec/exec_time.h"

#include <stdlib.h>
#include <string.h>

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

int exec_time_begin(double **seconds, const struct program *p, struct err *err)
{
	size_t n = (size_t)p->graph->n_nodes;

	if (!*seconds)
		*seconds = calloc(n + 1, sizeof(**seconds));
	if (!*seconds)
		return err_set(err, ERR_NOMEM, "out of memory: times of %s", p->name);
	memset(*seconds, 0, n * sizeof(**seconds));
	return 0;
}
