/* units.h: the units in which parameters are sharded: their parameters, in storage order, and the range that a rank
 * owns. A unit is a part of the model (before its blocks, each block, after them) or one of its matrices, restricted to
 * parameters that nodes read in one type; a parameter that several parts read is a unit of its own. Every program of a
 * run has the same units: they are defined once, in the model. */
#ifndef DPT_STRATEGIES_UNITS_H
#define DPT_STRATEGIES_UNITS_H

#include "trainer/strategies/strategy.h"

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
	int64_t each;	   /* elements of a rank */
	enum dtype dtype;  /* type in which its parameters are read */
	int place;	   /* of its first use; -1: none */
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

#endif
