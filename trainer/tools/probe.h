/* probe.h: times the kernel of one node alone, in separate memory, on this rank's threads. */
#ifndef DPT_TOOLS_PROBE_H
#define DPT_TOOLS_PROBE_H

#include "trainer/program/prepare.h"

enum { PROBE_OPERANDS = 4 };

struct probe {
	const struct program_opts *opts;
	struct graph *graph; /* the caller adds tensors and one node to it */
	const struct kernel *kernel;
	void *state, *memory, *numbers; /* numbers: contents of the operands */
	size_t bytes;
	void *in[PROBE_OPERANDS], *out[PROBE_OPERANDS];
	struct kernel_args args;
	struct event_handle *from, *to; /* of args.stream, on devices */
};

int probe_init(struct probe *p, const struct program_opts *o, struct err *err); /* ERR_NOMEM */

/* Prepares n, with at most PROBE_OPERANDS inputs and outputs, all floats. They hold random numbers, because GPUs
 * multiply zeros faster. NULL n: the graph's error. */
int probe_prepare(struct probe *p, struct node *n, struct err *err);

/* Returns the best time of the runs that fit into `seconds`: at least one run, and some more on a busy machine. */
int probe_best(struct probe *p, double seconds, double *ret_s, struct err *err);

void probe_done(struct probe *p); /* a zeroed struct is fine */

#endif
