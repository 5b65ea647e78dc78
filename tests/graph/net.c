/* net.c: see net.h. */
#include "tests/graph/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/graph/pass.h"
#include "trainer/ops/norm/norm.h"
#include "trainer/ops/sgd/sgd.h"

static int add_training(struct graph *g, struct err *err)
{
	const struct sgd_attr sgd = { .momentum = 0.9, .weight_decay = 1e-4 };
	int rc = pass_grad(g, err);

	if (!rc && (norm_add_all(g) != 0 || sgd_add_all(g, &sgd) != 0))
		rc = err_set(err, g->err.code, "%s", g->err.text);
	return rc;
}

void net_make(struct net *ret, const struct net_opts *o)
{
	const struct model *m = model_find(o->model);
	struct model_config c;
	struct err err = ERR_INIT;
	struct graph *g = graph_new(o->training);

	assert_non_null(m);
	assert_non_null(g);
	c = m->defaults;
	c.act = o->gelu ? MODEL_GELU : MODEL_RELU;
	if (o->image)
		c.image_h = c.image_w = o->image;
	if (model_build(m, g, &c, o->batch, &err) || pass_shape(g, &err) || (o->training && add_training(g, &err)) ||
	    pass_fuse(g, &err) || pass_precision(g, &o->precision, &err) || pass_recompute(g, &err) ||
	    pass_shape(g, &err) || schedule_make(&ret->schedule, g, &err))
		fail_msg("%s: %s", o->model, err.text);
	ret->g = g;
	ret->program = (struct plan_program){ o->training ? "train" : "eval", g, &ret->schedule };
}

void net_free(struct net *n)
{
	graph_free(n->g);
}
