/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c: the nodes around the parameter updates: gradient norm, step guard, statistics, averages; and those of
 * watched steps, whose results are named "watch.<kind>.<what>". */
#include "trainer/program/optimizer.h"

#include <stdio.h>

#include "trainer/ops/bn/bn.h"
#include "trainer/ops/ema/ema.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/update/update.h"
#include "trainer/ops/watch/watch.h"
#include "trainer/ops/xent/xent.h"

/* ---- watched steps ---- */

static const char *const prefixes[WATCHING_KINDS] = {
	[WATCHING_WEIGHT] = "watch.weight.", [WATCHING_GRADIENT] = "watch.gradient.",
	[WATCHING_UPDATE] = "watch.update.", [WATCHING_OUTPUT] = "watch.output.",
	[WATCHING_TERM] = "watch.term.",
};

static struct tensor *add_watch_node(struct graph *g, enum watching_kind kind, const char *of, struct tensor *x,
				     struct tensor *before)
{
	return watch_add(g, x, before, graph_printf(g, "%s%s", prefixes[kind], of));
}

struct tensor *watching_begin(struct graph *g, struct tensor *p)
{
	add_watch_node(g, WATCHING_GRADIENT, p->name, p->grad, NULL);
	add_watch_node(g, WATCHING_WEIGHT, p->name, p, NULL);
	return watch_hold_add(g, p);
}

void watching_end(struct graph *g, struct tensor *p, struct tensor *held)
{
	if (held)
		add_watch_node(g, WATCHING_UPDATE, p->name, p, held);
}

/* Moves the node that made t, the last one so far, after `at`, with the phase, part and block of that node. */
static void move_after_node(struct graph *g, const struct tensor *t, const struct node *at)
{
	struct node *n = t ? t->producer : NULL;

	if (!n)
		return;
	n->phase = at->phase;
	n->part = at->part;
	n->block = at->block;
	graph_move(g, n->id, at->id + 1);
}

static bool is_rectifier(const struct node *n)
{
	return n->op == &op_relu || (n->op == &op_bn_apply && ((const struct bn_attr *)n->attr)->relu);
}

void watching_outputs(struct graph *g)
{
	for (int i = 0; i < g->n_nodes && !graph_failed(g); i++) {
		struct node *n = g->nodes[i];

		if (n->phase == PHASE_FORWARD && is_rectifier(n))
			move_after_node(g, add_watch_node(g, WATCHING_OUTPUT, n->out[0]->name, n->out[0], NULL), n);
	}
}

void watching_terms(struct graph *g)
{
	const int n = g->n_tensors; /* results are added after these */

	for (int i = 0; i < n && !graph_failed(g); i++) {
		struct tensor *p = g->tensors[i];

		if (p->kind == TENSOR_PARAM && p->grad && p->grad->producer)
			move_after_node(g, add_watch_node(g, WATCHING_TERM, p->name, p->grad, NULL), p->grad->producer);
	}
}

void watching_losses(struct graph *g)
{
	struct node *n = g->loss ? g->loss->producer : NULL;
	const int at = !n ? -1 : n->op == &op_xent ? XENT_OUT_LOSSES : n->op == &op_lmhead ? LMHEAD_LOSSES : -1;

	if (at < 0 || n->out[at])
		return;
	n->out[at] = graph_tensor(g, &(struct tensor){ .name = WATCHING_LOSSES,
						       .kind = TENSOR_RESULT,
						       .dtype = DTYPE_F64,
						       .shape = SHAPE(n->in[0]->shape.dim[0]),
						       .life = LIFE_MICRO });
	if (n->out[at])
		n->out[at]->producer = n;
}

const char *watching_of(const struct tensor *t, enum watching_kind *ret)
{
	for (int k = 0; t->kind == TENSOR_RESULT && k < WATCHING_KINDS; k++) {
		const size_t n = strlen(prefixes[k]);

		if (!strncmp(t->name, prefixes[k], n)) {
			*ret = (enum watching_kind)k;
			return t->name + n;
		}
	}
	return NULL;
}

const struct tensor *watching_find(const struct graph *g, enum watching_kind kind, const char *of)
{
	char name[512];

	snprintf(name, sizeof(name), "%s%s", prefixes[kind], of);
	return graph_find(g, name);
}

/* ---- updates ---- */

#define APEX_SCALE_MAX 0x1p24 /* apex/amp/frontend.py */

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
					.scaling = cfg->precision == CONFIG_PRECISION_FP16 && cfg->loss_scale != 1,
					.fixed_scale = cfg->loss_scale > 1 ? (double)cfg->loss_scale : 0,
					.max_scale = cfg->opt_level ? APEX_SCALE_MAX : 0,
					.ema_decay = cfg->model_ema && !cfg->test_only ? cfg->model_ema_decay : 0,
					.ema_every = cfg->model_ema_steps,
					.max_grad_norm = cfg->clip_grad_norm,
					.watch = cfg->watch_steps > 0 && cfg->command != COMMAND_BENCH };
}

static void add_optimizer_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_opts *o)
{
	const struct update_attr a = { .rule = (enum update_rule)o->kind,
				       .o = { .momentum = o->momentum,
					      .beta1 = o->beta1,
					      .beta2 = o->beta2,
					      .eps = o->eps,
					      .trust = o->trust,
					      .weight_decay = p->decay ? o->weight_decay :
							      p->of_norm ? o->norm_decay : o->bias_decay,
					      .nesterov = o->nesterov } };
	struct tensor *held = o->watch ? watching_begin(g, p) : NULL;

	update_add(g, p, step, &a, p->decay); /* layer-wise rates are for neither gains nor biases */
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
	const struct step_guard_attr guard = { .max_norm = o->max_grad_norm,
					       .scaling = o->scaling,
					       .fixed = o->fixed_scale > 0,
					       .max_scale = o->max_scale };
	const struct ema_attr ema = { o->ema_decay, o->ema_every };
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
