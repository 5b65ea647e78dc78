/* bn.h: batch normalisation over N, H, W of x [N,H,W,C], split so that statistics can be reduced between ranks.
 *   bn_stats        in x                                               out stat
 *   bn_apply        in x, stat, gamma, beta, residual?                 out y
 *   bn_running      in stat, mean, var, next_mean, next_var            out next_mean, next_var  (updated)
 *   bn_keep         in step, next_mean, next_var, mean, var            out mean, var  (the same tensors, updated)
 *   bn_fixed        in mean, var                                       out stat         (of frozen statistics)
 *   bn_infer        in x, gamma, beta, mean, var, residual?            out y
 *   bn_grad_stats   in dy, dy2?, x, stat, gamma, beta, y?              out dstat, g?
 *   bn_grad_apply   in g, x, stat, dstat, gamma, beta                  out dx
 *   bn_grad_params  in dstat                                           out dgamma, dbeta
 * stat is f64 [2C+1]: sums, sums of squares, count (one number: N*H*W, summed over ranks by an all-reduce when
 * synchronised). mean = sum/count, var = sumsq/count - mean^2 (biased, for normalising), xhat = (x-mean)/sqrt(var+eps).
 * y = act(gamma*xhat + beta [+ residual]). running = (1-momentum)*running + momentum*new with the unbiased variance
 * (var*count/(count-1); count 1: the biased one).
 * The running statistics that a step would leave are made beside those that count (next, from mean and var at the
 * first micro-batch, from itself at later ones; where mean and var stand in its place, from these always) and take
 * their place at the end of the step, unless trainer/ops/step_guard skips it: a batch whose gradients are not finite moves
 * nothing.
 * bn_fixed gives the stat of a batch so large (2^100) that this one changes nothing: sums of mean*count, so that
 * normalising with it is normalising with the running statistics, and a gradient that does not flow through them.
 * g is the gradient at gamma*xhat+beta: (dy [+ dy2]) where the output was positive (relu) else (dy [+ dy2]). When relu
 * is set without residual the mask is recomputed from x (gamma*xhat+beta > 0), with residual it is y > 0.
 * bn_grad_stats writes g only when attr.write_g (residual or joined gradients: g is also the residual's gradient);
 * otherwise bn_grad_apply gets dy itself as g and masks it again from x (attr.relu stays set there, and only then).
 * dstat is f64 [2C]: sum g, sum g*xhat. dx = gamma/sqrt(var+eps) * (g - dstat0/count - xhat*dstat1/count).
 * dgamma = dstat1, dbeta = dstat0 of the rank's own samples (before the all-reduce of a synchronised dstat). */
#ifndef DPT_OPS_BN_H
#define DPT_OPS_BN_H

#include "trainer/graph/graph.h"

struct bn_attr { /* of every node here */
	double eps;      /* 1e-5 */
	double momentum; /* 0.1 */
	bool relu;       /* fused */
	bool residual;   /* fused add before the activation */
	bool write_g;    /* bn_grad_stats: materialises g (its second output) */
};

struct bn_tensors { /* all of length C, master type */
	struct tensor *gamma, *beta, *mean, *var;
};

/* Adds stats + apply + running in a training graph (fixed + apply when the statistics are frozen), infer otherwise. */
struct tensor *bn_add(struct graph *g, struct tensor *x, const struct bn_tensors *t);

/* What the optimiser's part of a training graph does with the running statistics; `running` is a bn_running node. */
struct node *bn_keep_add(struct graph *g, const struct node *running, struct tensor *step);

#endif
