/* optimizer.h: the nodes of a training graph that turn gradients into new parameters, as the configuration asks. Knows
 * ops and graphs, nothing of memory, ranks or the loop. */
#ifndef DPT_PROGRAM_OPTIMIZER_H
#define DPT_PROGRAM_OPTIMIZER_H

#include "trainer/config/config.h"
#include "trainer/graph/graph.h"
#include "trainer/optimizers/optimizers.h"

struct optimizer_opts {
	enum optimizer_id kind;
	double momentum, beta1, beta2, eps, trust;
	double weight_decay, norm_decay, bias_decay; /* of matrices; of norms' gains and biases; of other biases */
	bool nesterov;
	bool scaling;	      /* dynamic loss scale (fp16) */
	double max_grad_norm; /* 0: no clipping */
	double ema_decay;     /* of the averages "<name>.ema" of parameters and statistics; 0: no averages */
	bool watch;	       /* adds the nodes that record parameters, gradients and updates in watched steps */
	bool pipeline;	       /* the parameters are spread over the stages of a pipeline */
	struct tensor *losses; /* sums over all ranks that must be finite for a step to count; NULL: none */
	struct tensor *votes;  /* sum of the ranks' votes, see guard.h; NULL: none */
};

struct optimizer_opts optimizer_opts_of(const struct run_config *cfg);

/* Appends the nodes after those of a strategy: the norm of all gradients ("grad_norm"), the decision on the step
 * (trainer/ops/step_guard), then an update for each parameter that has a gradient, the running statistics, the
 * averages. */
int optimizer_add(struct graph *g, const struct optimizer_opts *o, struct err *err);

/* Makes an evaluation graph use the averages, when there are any: its parameters and statistics get their names. */
int optimizer_use_averages(struct graph *g, const struct optimizer_opts *o, struct err *err);

#endif
