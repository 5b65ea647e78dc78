/* SPDX-License-Identifier: Apache-2.0 */
/* bn.h: batch normalisation over N, H, W of x [N,H,W,C], split into nodes so that statistics can be reduced between
 * ranks.
 *   bn_stats        in x                                               out stat
 *   bn_apply        in x, stat, gamma, beta, residual?                 out y
 *   bn_running      in stat, mean, var, next_mean, next_var            out next_mean, next_var  (updated)
 *   bn_keep         in step, next_mean, next_var, mean, var            out mean, var  (the same tensors, updated)
 *   bn_fixed        in mean, var                                       out stat         (evaluation, frozen statistics)
 *   bn_grad_stats   in dy, dy2?, x, stat, gamma, beta, y?              out dstat, g?
 *   bn_grad_apply   in g, x, stat, dstat, gamma, beta                  out dx
 *   bn_grad_params  in dstat                                           out dgamma, dbeta
 * stat is f64 [2C+1]: sums, sums of squares, count (N*H*W, summed over ranks by an all-reduce when synchronised). mean
 * = sum/count, var = sumsq/count - mean^2 (biased, for normalising), xhat = (x-mean)/sqrt(var+eps). y = act(gamma*xhat
 * + beta [+ residual]). running = (1-momentum)*running + momentum*new with the unbiased variance (var*count/(count-1);
 * the biased one for count 1).
 * bn_running writes the next running statistics to separate tensors: from mean and var at the first micro-batch, from
 * next_mean and next_var at later ones. (If mean and var are passed as next_mean and next_var, always from these.)
 * bn_keep copies them to mean and var at the end of the step, unless trainer/ops/step_guard skips it: a batch with
 * non-finite gradients changes no statistics.
 * bn_fixed makes the stat of a batch with count 2^100, with sums mean*count. Normalising with it equals normalising
 * with the running statistics, and no gradient flows through them.
 * g is the gradient at gamma*xhat+beta: dy [+ dy2], with relu set to zero where the output is not positive. With relu
 * but no residual the mask is recomputed from x (gamma*xhat+beta > 0); with a residual it is y > 0. bn_grad_stats
 * writes g only with attr.write_g (residual or joined gradients: g is also the residual's gradient). Otherwise
 * bn_grad_apply receives dy as g and masks it again from x (attr.relu stays set there, and only then). dstat is f64
 * [2C]: sum g, sum g*xhat. dx = gamma/sqrt(var+eps) * (g - dstat0/count - xhat*dstat1/count). dgamma = dstat1, dbeta =
 * dstat0 of the rank's own samples (before the all-reduce of a synchronised dstat). */
#ifndef DPT_OPS_BN_H
#define DPT_OPS_BN_H

#include "trainer/graph/graph.h"

struct bn_attr {	 /* of all these ops */
	double eps;	 /* 1e-5 */
	double momentum; /* 0.1 */
	bool relu;	 /* fused */
	bool residual;	 /* fused add in front of the activation */
	bool write_g;	 /* bn_grad_stats: writes g (its second output) */
};

struct bn_tensors { /* all of length C, master type */
	struct tensor *gamma, *beta, *mean, *var;
};

/* Adds stats, apply and running in a training graph; fixed and apply in others, and if the statistics are frozen. */
struct tensor *bn_add(struct graph *g, struct tensor *x, const struct bn_tensors *t);

/* Adds the update of the running statistics to the optimiser part of a training graph. running: a bn_running node;
 * step: output of guard. */
struct node *bn_keep_add(struct graph *g, const struct node *running, struct tensor *step);

#endif
