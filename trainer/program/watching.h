/* watching.h: which tensors of a training graph are looked at in watched steps (trainer/ops/watch), as nodes, and whose
 * the results are. */
#ifndef DPT_PROGRAM_WATCHING_H
#define DPT_PROGRAM_WATCHING_H

#include "trainer/graph/graph.h"

enum watching_kind {
	WATCHING_WEIGHT,   /* a parameter before the step, or the range of it that this rank updates */
	WATCHING_GRADIENT, /* its gradient, of all samples, times the loss scale, before clipping */
	WATCHING_UPDATE,   /* what the step added to it */
	WATCHING_OUTPUT,   /* what a rectifier leaves of the last micro-batch */
	WATCHING_TERM,	   /* the gradient of this rank's micro-batch alone */
	WATCHING_KINDS
};

/* Around the nodes that update p: in front of them, returns what watching_end wants; behind them. */
struct tensor *watching_begin(struct graph *g, struct tensor *p);
void watching_end(struct graph *g, struct tensor *p, struct tensor *held);

void watching_outputs(struct graph *g);
void watching_terms(struct graph *g); /* behind the backward pass, before anything else takes the gradients */

/* The loss of each row (image or token) of a micro-batch: f64 [rows], under that name, where the graph has the loss. */
#define WATCHING_LOSSES "losses"
void watching_losses(struct graph *g);

/* The name of the parameter or activation that t is the watched values of; NULL: t is something else. */
const char *watching_of(const struct tensor *t, enum watching_kind *ret);

/* The values' tensor in a graph; NULL: it has none. */
const struct tensor *watching_find(const struct graph *g, enum watching_kind kind, const char *of);

#endif
