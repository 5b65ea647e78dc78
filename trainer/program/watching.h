/* watching.h: the nodes that record statistics of tensors in watched steps (trainer/ops/watch), and the names of their
 * results. */
#ifndef DPT_PROGRAM_WATCHING_H
#define DPT_PROGRAM_WATCHING_H

#include "trainer/graph/graph.h"

enum watching_kind {
	WATCHING_WEIGHT,   /* a parameter before the step, or the range of it that this rank updates */
	WATCHING_GRADIENT, /* its gradient over all samples, times the loss scale, before clipping */
	WATCHING_UPDATE,   /* its change by the step */
	WATCHING_OUTPUT,   /* output of a rectifier for the last micro-batch */
	WATCHING_TERM,	   /* the gradient of this rank's micro-batch alone */
	WATCHING_KINDS
};

/* Call watching_begin before the nodes that update p are added, and watching_end with its result afterwards. */
struct tensor *watching_begin(struct graph *g, struct tensor *p);
void watching_end(struct graph *g, struct tensor *p, struct tensor *held);

void watching_outputs(struct graph *g);
void watching_terms(struct graph *g); /* after the backward pass, before other nodes change the gradients */

/* Adds the loss of each row (image or token) of a micro-batch: f64 [rows], under that name, where the graph has the
 * loss. */
#define WATCHING_LOSSES "losses"
void watching_losses(struct graph *g);

/* Returns the name of the parameter or activation whose statistics t has; NULL: t is another tensor. */
const char *watching_of(const struct tensor *t, enum watching_kind *ret);

/* Finds the tensor of statistics in a graph; NULL: there is no such tensor. */
const struct tensor *watching_find(const struct graph *g, enum watching_kind kind, const char *of);

#endif
