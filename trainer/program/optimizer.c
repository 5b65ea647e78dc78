/* optimizer.c: the nodes around the parameter updates: gradient norm, step guard, statistics, averages. */
#include "trainer/program/optimizer.h"

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/ema/ema.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"
#include "trainer/program/watching.h"

struct optimizer_opts optimizer_opts_of(const struct run_config *cfg)
{
	return (struct optimizer_opts){ .kind = (enum optimizer_id)cfg->opt,
					.momentum = cfg->momentum,
					.beta1 = cfg->beta1,
					.beta2 = cfg->beta2,
					.eps = cfg->eps,
					.weight_decay = cfg->wd,
					.norm_decay = cfg->norm_weight_decay,
					.bias_decay = cfg->bias_weight_decay,
					.trust = cfg->trust_coef,
					.nesterov = cfg->nesterov,
					.scaling = cfg->precision == CONFIG_PRECISION_FP16,
					.ema_decay = cfg->model_ema && !cfg->test_only ? cfg->model_ema_decay : 0,
					.max_grad_norm = cfg->clip_grad_norm,
					.watch = cfg->watch_steps > 0 && cfg->command != COMMAND_BENCH };
}

static void add_optimizer_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_opts *o)
{
	const struct optimizer_attr a = { .momentum = o->momentum,
					  .beta1 = o->beta1,
					  .beta2 = o->beta2,
					  .eps = o->eps,
					  .trust = o->trust,
					  .weight_decay = p->decay ? o->weight_decay :
							  p->of_norm ? o->norm_decay : o->bias_decay,
					  .nesterov = o->nesterov,
					  .adapts = p->decay };

	struct tensor *held = o->watch ? watching_begin(g, p) : NULL;

	optimizers_table[o->kind]->add(g, p, step, &a);
	watching_end(g, p, held);
}

static bool is_averaged(const struct tensor *t)
{
	return (t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT) && t->life == LIFE_PERSISTENT;
}

int optimizer_use_averages(struct graph *g, const struct optimizer_opts *o, struct err *err)
{
	for (int i = 0; o->ema_decay > 0 && i < g->n_tensors && !graph_failed(g); i++)
		if (is_averaged(g->tensors[i]))
			graph_rename(g, g->tensors[i], graph_printf(g, "%s.ema", g->tensors[i]->name));
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}

static void add_running_statistics(struct graph *g, struct tensor *step)
{
	const int n = g->n_nodes;

	for (int i = 0; i < n && !graph_failed(g); i++)
		if (g->nodes[i]->op == &op_bn_running)
			bn_keep_add(g, g->nodes[i], step);
}

int optimizer_add(struct graph *g, const struct optimizer_opts *o, struct err *err)
{
	const struct step_guard_attr guard = { .max_norm = o->max_grad_norm, .scaling = o->scaling };
	const struct ema_attr ema = { o->ema_decay };
	enum phase before = g->phase;
	struct tensor *step;
	int n;

	g->phase = PHASE_OPTIMIZER;
	step = step_guard_add(g, &(struct step_guard_in){ norm_add_all(g, o->pipeline), o->losses, o->votes }, &guard);
	n = g->n_tensors; /* moments are added after these */
	for (int i = 0; i < n && !graph_failed(g); i++)
		if (g->tensors[i]->kind == TENSOR_PARAM && g->tensors[i]->grad)
			add_optimizer_step(g, g->tensors[i], step, o);
	add_running_statistics(g, step);
	for (int i = 0; ema.decay > 0 && i < n && !graph_failed(g); i++)
		if (is_averaged(g->tensors[i]))
			ema_add(g, g->tensors[i], step, &ema);
	g->phase = before;
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
