/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_inside.h: what the passes of this room share: sums over ranks, buckets of gradients, units of sharded
 * parameters, stages of pipelines. */
#ifndef DPT_STRATEGIES_STRATEGY_INSIDE_H
#define DPT_STRATEGIES_STRATEGY_INSIDE_H

#include "trainer/strategies/strategy.h"

/* ---- strategy.c: sums over the ranks other than those of gradients; failures are the graph's ---- */

/* Returns 0, or the graph's failure in err. */
int share_failed(const struct graph *g, struct err *err);

/* Computes batch norm over the samples of all ranks: the sums of the statistics, and of their gradient, are summed over
 * the ranks before use. Parameter gradients use the rank's own sums, because they are summed with the others. */
int share_batch_norms(struct graph *g, struct err *err);

/* Shares the loss's sums, and a vote of the host that all ranks receive together (a request to stop). In a program
 * before a step's last micro-batch, adds only what the later ones need. */
int share_results(struct graph *g, const struct strategy_opts *o, struct err *err);

/* Prepares a training graph whose micro-batches run in one schedule: sets every node's part, and accumulates every
 * gradient, and the loss where there is one, over the micro-batches; not where they are leaves (terms_of_gradients adds
 * those). */
void share_micros(struct graph *g, const struct strategy_opts *o);

/* Makes the gradient a view of flat at that byte, which the sum of that number covers. */
void share_place(struct tensor *grad, struct tensor *flat, size_t at, int bucket);

/* Makes the gradient to which the producer of such a view adds in place the same view, where it has no later reader: a
 * tied table has one gradient, not two. */
void share_place_of_term(struct graph *g, const struct tensor *grad);

/* Returns the samples of each of that many equal parts, or of more parts where that does not divide them: the largest
 * size that does. Where micro-batches are leaves: the samples of a leaf. */
int64_t share_part(const struct strategy_opts *o, int64_t samples, int parts);

/* Sums along the reduction tree (graph/reduction_tree.h) in programs, of values that every leaf has: their bits do not
 * depend on the ranks. Enabled by room > 0 in the options. */

/* Returns true if ranks keep terms; else each rank has at most one, which stays where it was made. */
bool terms_wanted(const struct strategy_opts *o);

/* Stores t, complete after position `at`, into terms; returns them. Advances *at. */
struct tensor *terms_put(struct graph *g, struct tensor *t, const struct strategy_opts *o, int *at);

/* Returns the view of the terms' sum for a gradient that is, or is part of, the tensor stored into the terms. */
struct tensor *terms_gradient(struct graph *g, struct tensor *terms, const struct tensor *grad);

/* Sums the loss: the step's last program stores it in STRATEGY_RESULT_SUM. */
void terms_of_results(struct graph *g, const struct strategy_opts *o);

/* Sums the inputs of running statistics, which are updated once a step, from the whole global batch. */
void terms_of_statistics(struct graph *g, const struct strategy_opts *o);

/* Sums the gradients of parameters, each in its own terms. */
void terms_of_gradients(struct graph *g, const struct strategy_opts *o);

/* ---- ddp.c: buckets ---- */

/* Sums the gradients of all parameters; in a program before a step's last micro-batch it only places them. Returns 0,
 * or the graph's failure in err. */
int buckets_sum(struct graph *g, const struct strategy_opts *o, enum group group, struct err *err);

/* ---- units.c ----
 *
 * The units in which parameters are sharded: their parameters, in storage order, and the range that a rank
 * owns. A unit is a part of the model (before its blocks, each block, after them) or one of its matrices, restricted to
 * parameters that nodes read in one type; a parameter that several parts read is a unit of its own. Every program of a
 * run has the same units: they are defined once, in the model. */

/* Elements: ranges begin at multiples of it, both in the unit and in each tensor. */
#define UNIT_ALIGN 128

/* One read of a parameter. */
struct unit_use {
	struct node *node;
	int index; /* of the node's input */
	struct tensor *param;
	enum dtype dtype; /* type in which it is read: a cast in between is skipped */
	/* part of the model: 0 before its blocks, then the block, then last block + 1; -1: a node after the loss */
	int place;
};

/* Lists all uses in program order, in the graph's arena; NULL once the graph failed. Casts of parameters are no
 * uses. */
struct unit_use *units_uses(struct graph *g, int *ret_n);
int units_last_place(const struct graph *g);

int units_lay(struct graph *model, const struct strategy_opts *o, struct err *err);

/* The units of one program, in the order of their numbers, and the program's rank among those that share them. */
struct param_unit {
	int number;
	struct tensor **param; /* in storage order; shape: of the range */
	int n;
	int64_t each;	  /* elements of a rank */
	enum dtype dtype; /* type in which its parameters are read */
	int place;	  /* of its first use; -1: none */
};

struct units {
	struct param_unit *unit;
	int n;
	int ranks, own; /* ranks that share a unit; which of them this one is */
};

/* Replaces every parameter of a program's graph by the range that this rank owns. Failures are the graph's. */
void units_cut(struct units *ret, struct graph *g, const struct strategy_opts *o);

/* Returns the shape of the whole parameter. */
struct shape units_shape(const struct strategy_opts *o, const struct tensor *p);

/* Returns which elements of a parameter this rank owns. */
struct strategy_part units_own(const struct units *u, const struct tensor *p, const struct strategy_opts *o);

/* Returns the part of a tensor of count elements that the n-th of the ranks owns; all of it when it is not sharded. */
struct strategy_part units_part(const struct shard *s, int64_t count, int n);

/* ---- gather.c, fsdp.c: gradients and parameters of units ---- */

/* Makes every node that reads a parameter read it from a flat tensor in which its unit is gathered: once a step and
 * kept until its end, or close to its use, some units ahead. Failures are the graph's. */
void gather_params(struct graph *g, const struct units *u, const struct strategy_opts *o);

/* Makes a parameter's gradient the range of the sum that this rank owns of the parameter. Failures are the graph's. */
void scatter_grads(struct graph *g, const struct units *u, const struct strategy_opts *o);

/* ---- stages.c ----
 *
 * The stages of a pipeline: assigns every node of a model to one. A model is cut between its blocks; the
 * first stage has what comes before them, the last stage what comes after them. */

#define STAGES_MAX 64
#define STAGE_ANY (-1) /* casts of parameters: wherever they are read */

struct stages {
	int n;
	int first[STAGES_MAX + 1]; /* first[i] .. first[i + 1] - 1: blocks of stage i, from 1 */
};

/* Cuts by o->partition (blocks of each stage) or, without one, by the work of the blocks: the stage with the most work
 * has as little as possible. Work: floating-point operations of the forward pass, and the cost of its operands' bytes.
 * Gives equal results for equal models. ERR_USAGE when there are fewer blocks than stages, or the partition does not
 * match. */
int stages_cut(struct stages *ret, const struct graph *model, const struct strategy_opts *o, struct err *err);

/* Returns the number of the last block, counted from 1; 0: a graph without blocks. */
int stages_last_block(const struct graph *g);

/* Sets ret[id]: the stage of each node of a training or evaluation graph, or STAGE_ANY. */
void stages_of_nodes(int *ret, const struct graph *g, const struct stages *s);

#endif
