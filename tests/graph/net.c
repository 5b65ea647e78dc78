/* net.c: see net.h. */
#include "tests/graph/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/engine/optimizer.h"
#include "trainer/graph/pass.h"

void net_make(struct net *ret, const struct net_opts *o)
{
	const struct model *m = model_find(o->model);
	struct model_config c;
	struct err err = ERR_INIT;
	struct graph *g = graph_new(o->training);
	const struct optimizer_opts sgd = { .kind = CONFIG_OPT_SGD, .momentum = 0.9, .weight_decay = 1e-4 };

	assert_non_null(m);
	assert_non_null(g);
	c = m->defaults;
	c.act = o->gelu ? MODEL_GELU : MODEL_RELU;
	if (o->image)
		c.image_h = c.image_w = o->image;
	if (model_build(m, g, &c, o->batch, &err) || pass_shape(g, &err) || (o->training && pass_grad(g, &err)) ||
	    pass_fuse(g, &err) || pass_precision(g, &o->precision, &err) || pass_recompute(g, &err) ||
	    (o->training && optimizer_add(g, &sgd, &err)) ||
	    pass_shape(g, &err) || schedule_make(&ret->schedule, g, &err))
		fail_msg("%s: %s", o->model, err.text);
	ret->g = g;
	ret->program = (struct plan_program){ o->training ? "train" : "eval", g, &ret->schedule };
}

void net_free(struct net *n)
{
	graph_free(n->g);
}
