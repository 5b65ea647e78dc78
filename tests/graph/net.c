/* SPDX-License-Identifier: Apache-2.0 */
/* net.c: see net.h. */
#include "tests/graph/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/ops.h"
#include "trainer/program/optimizer.h"
#include "trainer/strategies/strategy.h"

/* From gradients to parameters, arranged as in trainer/program/program.c. */
static int add_update(struct graph *g, const struct net_opts *o, struct graph *model, struct err *err)
{
	const struct strategy_opts sharing = { .world = o->world,
					       .bucket_bytes = 100000,
					       .sync_bn = true,
					       .zero_stage = o->zero_stage,
					       .shard_degree = o->world,
					       .reshard = true,
					       .gather_prefetch = 1,
					       .sync_each_batch = o->zero_stage >= 2,
					       .model = model,
					       .stages = o->world ? o->world : 1,
					       .micros = 4,
					       .more_follow = o->more_follow };
	const struct optimizer_opts sgd = { .kind = OPTIMIZER_sgd, .momentum = 0.9, .weight_decay = 1e-4 };
	int rc = 0;

	if (o->accumulate && o->training) {
		accumulate_grads(g);
		accumulate_loss(g);
	}
	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	if (model)
		rc = o->strategy->lay(model, &sharing, err);
	if (!rc && o->strategy)
		rc = o->strategy->rewrite(g, &sharing, err);
	return rc || o->more_follow || !o->training ? rc : optimizer_add(g, &sgd, err);
}

static void make_small(struct model_config *c)
{
	c->layers = c->heads = 2;
	c->width = 32;
	c->context = c->seq_len = 16;
	c->vocab = 61;
	c->dropout = 0.1;
}

/* The part that is the same for one rank's model. */
static struct graph *make_typed(const struct net_opts *o)
{
	const struct model *m = model_find(o->model);
	struct graph *g = graph_new(o->training);
	struct err err = ERR_INIT;
	struct model_config c;

	assert_non_null(m);
	assert_non_null(g);
	c = m->defaults;
	c.act = o->gelu ? MODEL_GELU : MODEL_RELU;
	if (o->image)
		c.image_h = c.image_w = o->image;
	if (o->small)
		make_small(&c);
	if (o->layers)
		c.layers = o->layers;
	if (model_build(m, g, &c, o->batch, &err) || pass_shape(g, &err) ||
	    (o->training && pass_grad(g, &op_add, &err)) || pass_fuse(g, &err) ||
	    pass_precision(g, &o->precision, &op_cast, &err))
		fail_msg("%s: %s", o->model, err.text);
	return g;
}

void net_make(struct net *ret, const struct net_opts *o)
{
	struct graph *g = make_typed(o);
	struct err err = ERR_INIT;
	const struct offload_opts away = { .activations = o->offload, .params = o->offload, .optimizer = o->offload };

	ret->model = o->strategy && o->strategy->lay ? make_typed(o) : NULL;
	if (pass_recompute(g, o->recompute, &err) || add_update(g, o, ret->model, &err) ||
	    offload_add(g, &away, &err) || pass_shape(g, &err) || schedule_make(&ret->schedule, g, &err))
		fail_msg("%s: %s", o->model, err.text);
	ret->g = g;
	ret->program = (struct plan_program){ !o->training ? "eval" : o->more_follow ? "micro" : "train", g,
					      &ret->schedule };
}

void net_free(struct net *n)
{
	graph_free(n->model);
	graph_free(n->g);
}
