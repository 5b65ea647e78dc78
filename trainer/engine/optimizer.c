/* optimizer.c: which nodes each optimiser is made of. */
#include "trainer/engine/optimizer.h"

#include "trainer/ops/norm/norm.h"
#include "trainer/ops/sgd/sgd.h"

struct optimizer_opts optimizer_opts_of(const struct run_config *cfg)
{
	return (struct optimizer_opts){ .kind = (enum config_opt)cfg->opt,
					.momentum = cfg->momentum,
					.weight_decay = cfg->wd,
					.nesterov = cfg->nesterov };
}

int optimizer_add(struct graph *g, const struct optimizer_opts *o, struct err *err)
{
	const struct sgd_attr sgd = { .momentum = o->momentum, .weight_decay = o->weight_decay, .nesterov = o->nesterov };

	norm_add_all(g);
	sgd_add_all(g, &sgd);
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
