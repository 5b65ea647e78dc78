/* optimizer.h: the nodes of a training graph that turn gradients into new parameters, as a configuration asks for them.
 * It knows ops and graphs, nothing of memory, ranks or the loop. */
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
	bool scaling;	      /* the loss scale is found while training (fp16) */
	double max_grad_norm; /* 0: no clipping */
	double ema_decay;     /* of the averages "<name>.ema" of parameters and statistics; 0: none are kept */
	bool watch;	       /* the nodes that look at parameters, gradients and updates in watched steps too */
	bool pipeline;	       /* the parameters lie on the stages of one */
	struct tensor *losses; /* sums over all ranks that must be finite for a step to count; NULL: none */
	struct tensor *votes;  /* … of the ranks' votes, as guard.h has them; NULL: none */
};

struct optimizer_opts optimizer_opts_of(const struct run_config *cfg);

/* Appends them, behind what a strategy did to the gradients: the norm of all gradients ("grad_norm"), the decision on
 * the step (trainer/ops/step_guard), then one step per parameter that has a gradient, the running statistics, the averages.
 */
int optimizer_add(struct graph *g, const struct optimizer_opts *o, struct err *err);

/* Makes an evaluation graph use the averages, when they are kept: its parameters and statistics get their names. */
int optimizer_use_averages(struct graph *g, const struct optimizer_opts *o, struct err *err);

#endif
