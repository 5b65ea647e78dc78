/* SPDX-License-Identifier: Apache-2.0 */
/* net.h: a model processed by the passes, for the tests of this folder. */
#ifndef DPT_TESTS_NET_H
#define DPT_TESTS_NET_H

#include "trainer/graph/pass.h"
#include "trainer/graph/plan.h"
#include "trainer/models/models.h"
#include "trainer/strategies/strategy.h"

struct net {
	struct graph *g;
	struct graph *model; /* for strategies that lay out ranges; else NULL */
	struct schedule schedule;
	struct plan_program program;
};

struct net_opts {
	const char *model;
	int64_t batch;
	int image; /* 0: the model's own size */
	int layers; /* of a language model; 0: the model's own number */
	bool training, gelu;
	bool small; /* a language model of 2 layers and 2 heads, 32 wide, 16 positions, 61 tokens, dropout 0.1 */
	struct precision precision;
	enum recompute recompute;
	const struct strategy *strategy; /* with synchronised batch norm, in buckets of 100 KB; may be NULL */
	int world;	  /* its ranks */
	int zero_stage;	  /* for the strategies that have one */
	bool offload;	  /* activations, parameters and moments */
	bool accumulate;  /* a step has several micro-batches; */
	bool more_follow; /* this one is not the last */
};

/* Builds, differentiates, adds norm and SGD, fuses, types, schedules. Fails the running test on an error. */
void net_make(struct net *ret, const struct net_opts *o);
void net_free(struct net *n);

#endif
