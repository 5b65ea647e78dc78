/* units.h: the units in which parameters are shared out: which parameters lie in one, behind one another, and what a
 * rank holds of it. A unit is a part of the model (what stands before its blocks, each block, what stands behind them)
 * or one of its matrices, and of that what nodes read in one type; a parameter that several parts read is a unit of its
 * own. Every program of a run has the same units: they are laid once, in the model. */
#ifndef DPT_STRATEGIES_UNITS_H
#define DPT_STRATEGIES_UNITS_H

#include "trainer/strategies/strategy.h"

/* Elements: ranges begin at multiples of it in the unit as in each tensor. */
#define UNIT_ALIGN 128

/* One read of a parameter. */
struct unit_use {
	struct node *node;
	int index; /* of the node's input */
	struct tensor *param;
	enum dtype dtype; /* in which it is read: a cast in between is left out */
	int place;	  /* part of the model: 0 before its blocks, then the block, then one behind the last; -1: the
			   * node stands behind the loss */
};

/* All of them, in program order, in the graph's arena; NULL once the graph failed. Casts of parameters are no uses. */
struct unit_use *units_uses(struct graph *g, int *ret_n);
int units_last_place(const struct graph *g);

int units_lay(struct graph *model, const struct strategy_opts *o, struct err *err);

/* The units of one program, in the order of their numbers, and what the program's rank is among those that share them.
 */
struct param_unit {
	int number;
	struct tensor **param; /* in the order in which they lie; shape: of the range */
	int n;
	int64_t each;	   /* elements of a rank */
	enum dtype dtype;  /* in which its parameters are read */
	int place;	   /* of its first use; -1 none */
};

struct units {
	struct param_unit *unit;
	int n;
	int ranks, own; /* that share a unit; which of them this one is */
};

/* Makes every parameter of a program's graph the range that this rank holds. Failures are the graph's. */
void units_cut(struct units *ret, struct graph *g, const struct strategy_opts *o);

/* The whole parameter's shape. */
struct shape units_shape(const struct strategy_opts *o, const struct tensor *p);

/* Which elements of a parameter this rank holds. */
struct strategy_part units_own(const struct units *u, const struct tensor *p, const struct strategy_opts *o);

/* What the n-th of the ranks that share it holds of a tensor of so many elements; all of it when it is whole. */
struct strategy_part units_part(const struct shard *s, int64_t count, int n);

#endif
