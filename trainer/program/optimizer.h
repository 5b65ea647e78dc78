/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.h: the nodes of a training graph that turn gradients into new parameters, as the configuration asks, and
 * those that record statistics of tensors. Knows ops and graphs, nothing of memory, ranks or the loop. */
#ifndef DPT_PROGRAM_OPTIMIZER_H
#define DPT_PROGRAM_OPTIMIZER_H

#include "trainer/config/config.h"
#include "trainer/graph/graph.h"
#include "trainer/optimizers/optimizers.h"

struct optimizer_opts {
	enum optimizer_id kind;
	double momentum, beta1, beta2, eps, trust;
	double weight_decay, norm_decay, bias_decay; /* for matrices; for norms' gains and biases; for other biases */
	bool nesterov;
	bool scaling;	       /* loss scale other than 1 (fp16) */
	double fixed_scale;    /* that never changes; 0: dynamic */
	double max_scale;      /* the dynamic scale stays at or below it; 0: no limit */
	double max_grad_norm;  /* 0: no clipping */
	int64_t ema_every;     /* steps of an epoch from one update of the averages to the next */
	double ema_decay;      /* decay of the averages "<name>.ema" of parameters and statistics; 0: none */
	bool watch;	       /* adds the nodes that record parameters, gradients and updates in watched steps */
	bool pipeline;	       /* the parameters are spread over the stages of a pipeline */
	struct tensor *losses; /* sums over all ranks that must be finite for a step to count; NULL: none */
	struct tensor *votes;  /* sum of the ranks' votes, see step_guard.h; NULL: none */
};

struct optimizer_opts optimizer_opts_of(const struct run_config *cfg);

/* Appends the nodes after those of a strategy: the norm of all gradients ("grad_norm"), the decision on the step
 * (trainer/ops/step_guard), then an update for each parameter that has a gradient, the running statistics, the
 * averages. */
int optimizer_add(struct graph *g, const struct optimizer_opts *o, struct err *err);

/* Makes an evaluation graph use the averages, when there are any: its parameters and statistics get their names. */
int optimizer_use_averages(struct graph *g, const struct optimizer_opts *o, struct err *err);

/* The nodes that record statistics of tensors in watched steps (trainer/ops/watch), and the names of their results. */
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
