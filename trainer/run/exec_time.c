/* exec_time.c: which kind of time a node takes. */
#include "trainer/run/exec_time.h"

enum exec_time exec_time_of(const struct node *n)
{
	if (n->op->collective)
		return EXEC_COMM_EXPOSED;
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
