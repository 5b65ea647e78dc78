/* probe.h: one node by itself, with memory of its own: how long its kernel takes on this rank's threads. */
#ifndef DPT_TOOLS_PROBE_H
#define DPT_TOOLS_PROBE_H

#include "trainer/program/prepare.h"

enum { PROBE_OPERANDS = 4 };

struct probe {
	const struct program_opts *opts;
	struct graph *graph; /* the caller adds tensors and one node to it */
	const struct kernel *kernel;
	void *state, *memory, *numbers; /* numbers: what operands are filled with */
	size_t bytes;
	void *in[PROBE_OPERANDS], *out[PROBE_OPERANDS];
	struct kernel_args args;
	struct event_handle *from, *to; /* of args.stream, on devices */
};

int probe_init(struct probe *p, const struct program_opts *o, struct err *err); /* ERR_NOMEM */

/* Prepares n, of at most PROBE_OPERANDS inputs and outputs, all floats, which hold ordinary numbers: of zeros a GPU
 * makes products faster. NULL n is the graph's failure. */
int probe_prepare(struct probe *p, struct node *n, struct err *err);

/* The best of what fits into seconds: one run at least, and on a busy machine, where few fit, some more. */
int probe_best(struct probe *p, double seconds, double *ret_s, struct err *err);

void probe_done(struct probe *p); /* of a zeroed one too */

#endif
