/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: runs the passes in order. */
#include "trainer/program/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/ops/accumulate/accumulate.h"
#include "trainer/ops/step_guard/step_guard.h"

struct program_build {
	const struct program_opts *o;
	int64_t batch;
	enum program_kind kind;
	struct graph *g;
	struct program *p; /* NULL: builds the model */
};

static int run_model(struct program_build *b, struct err *err)
{
	return model_build(b->o->model, b->g, &b->o->config, b->batch, err);
}

static int run_shape(struct program_build *b, struct err *err)
{
	return pass_shape(b->g, err);
}

static int run_grad(struct program_build *b, struct err *err)
{
	return pass_grad(b->g, &op_add, err);
}

static int run_fuse(struct program_build *b, struct err *err)
{
	return pass_fuse(b->g, err);
}

static int run_precision(struct program_build *b, struct err *err)
{
	const struct precision *p = &b->o->precision;

	return p->casts ? pass_cast_table(b->g, p->casts, &op_cast, err) : pass_precision(b->g, p, &op_cast, err);
}

static int run_recompute(struct program_build *b, struct err *err)
{
	return pass_recompute(b->g, b->o->recompute, err);
}

/* Records the losses of a step's samples, and the parts' own gradients where a step has several parts: their scatter
 * around the step's gradient is the noise. */
static int run_watch_terms(struct program_build *b, struct err *err)
{
	const struct strategy *s = b->o->strategy;
	const bool whole = s == strategies_table[STRATEGY_single] || s == strategies_table[STRATEGY_ddp];

	if (b->o->optimizer.watch)
		watching_losses(b->g);
	if (b->o->optimizer.watch && whole && !b->o->sharing.room && (b->o->sharing.world > 1 || b->o->accumulate))
		watching_terms(b->g);
	return graph_failed(b->g) ? err_set(err, b->g->err.code, "%s", b->g->err.text) : 0;
}

static int run_watch_outputs(struct program_build *b, struct err *err)
{
	if (b->o->optimizer.watch)
		watching_outputs(b->g);
	return graph_failed(b->g) ? err_set(err, b->g->err.code, "%s", b->g->err.text) : 0;
}

/* Accumulates what each micro-batch sends, after the strategy and as it comes back. Strategies with a pipeline schedule
 * do this themselves. */
static int run_accumulate(struct program_build *b, struct err *err)
{
	if (b->o->strategy->turns)
		return 0;
	if (b->o->accumulate && !b->o->sharing.sync_each_batch && !b->o->sharing.room)
		accumulate_grads(b->g);
	if (b->o->accumulate)
		accumulate_loss(b->g);
	return graph_failed(b->g) ? err_set(err, b->g->err.code, "%s", b->g->err.text) : 0;
}

static int run_strategy(struct program_build *b, struct err *err)
{
	struct strategy_opts o = b->o->sharing;
	int rc;

	o.more_follow = b->kind == PROGRAM_MICRO;
	o.accumulates = b->o->accumulate || b->o->strategy->turns;
	o.averages = b->kind == PROGRAM_EVAL && b->o->optimizer.ema_decay > 0;
	rc = b->o->strategy->rewrite(b->g, &o, err);
	if (!rc && b->g->training && b->o->accumulate && o.sync_each_batch)
		accumulate_grads(b->g);
	return rc || !graph_failed(b->g) ? rc : err_set(err, b->g->err.code, "%s", b->g->err.text);
}

static int run_partition(struct program_build *b, struct err *err)
{
	return b->o->strategy->lay ? b->o->strategy->lay(b->g, &b->o->sharing, err) : 0;
}

/* Runs after the strategy, so that its nodes see the gradients as the strategy leaves them. */
static int run_optimizer(struct program_build *b, struct err *err)
{
	struct optimizer_opts o = b->o->optimizer;

	o.losses = graph_find(b->g, STRATEGY_RESULT_SUM);
	if (!o.losses)
		o.losses = b->g->loss;
	o.votes = graph_find(b->g, STRATEGY_VOTES);
	o.pipeline = b->p && b->o->strategy->turns && b->o->sharing.stages > 1;
	for (int i = 0; b->o->keep_grads && i < b->g->n_tensors; i++)
		if (b->g->tensors[i]->grad)
			b->g->tensors[i]->grad->keep = true;
	return optimizer_add(b->g, &o, err);
}

static int run_averages(struct program_build *b, struct err *err)
{
	return b->kind == PROGRAM_EVAL ? optimizer_use_averages(b->g, &b->o->optimizer, err) : 0;
}

static int run_offload(struct program_build *b, struct err *err)
{
	struct offload_opts o = b->o->offload;

	o.averages = b->kind == PROGRAM_EVAL && b->o->optimizer.ema_decay > 0;
	return offload_add(b->g, &o, err);
}

static int run_layout(struct program_build *b, struct err *err)
{
	const struct layout_backend l = { .kernels = b->o->backend->kernel,
					  .env = &b->o->env,
					  .pack = &op_pack,
					  .cast = &op_cast,
					  .plain_f16 = b->o->backend->emulate_f16 };

	return pass_layout(b->g, &l, err);
}

const struct kernel *program_kernel(const struct program_opts *o, const struct node *n)
{
	return backend_kernel(o->backend, n);
}

/* Makes the environment of n's kernel, with the communicator of its stream and group. Fails without one, because a sum
 * over too few ranks would not be noticed. */
static int node_env(const struct program_opts *o, const struct node *n, struct kernel_env *ret, struct err *err)
{
	*ret = o->env;
	if (!n->op->collective || !o->comm || o->comm->world == 1)
		return 0;
	ret->comm = o->lane[stream_meets(n->stream)][n->group];
	ret->devices = devices_lane(o->devices, stream_meets(n->stream), n->group);
	return ret->comm ? 0
			 : err_set(err, ERR_UNSUPPORTED,
				   "node %s uses group %s on stream %s, for which its strategy has no communicator",
				   n->name, group_name(n->group), stream_name(n->stream));
}

static int prepare_kernel(struct program_build *b, struct node *n, const struct kernel *k, struct err *err)
{
	struct kernel_env env;
	int rc = node_env(b->o, n, &env, err);

	if (rc || !k->prepare)
		return rc;
	rc = k->prepare(&env, n, &b->p->state[n->id], err);
	if (rc)
		err_prefix(err, "backend %s, %s (node %s)", b->o->backend->name, n->op->name, n->name);
	return rc;
}

static void prepare_kernel_ahead(struct program_build *b, struct node *n)
{
	const struct kernel *k = program_kernel(b->o, n);
	struct err ignored = ERR_INIT;
	struct kernel_env env;
	void *state = NULL;

	if (k && k->prepare && !node_env(b->o, n, &env, &ignored) && !k->prepare(&env, n, &state, &ignored) &&
	    k->release)
		k->release(state);
}

/* Preparing a kernel may take seconds of tuning: does it for all of them at once. */
static void prepare_ahead(struct program_build *b)
{
	const struct program_opts *o = b->o;

	if (!o->backend->ahead_begin || !o->module)
		return;
	o->backend->ahead_begin(o->module);
	for (int i = 0; i < b->g->n_nodes; i++)
		prepare_kernel_ahead(b, b->g->nodes[i]);
	o->backend->ahead_end(o->module, o->env.threads);
}

static int run_kernels(struct program_build *b, struct err *err)
{
	b->p->state = mem_array((size_t)b->g->n_nodes + 1, sizeof(*b->p->state));
	prepare_ahead(b);
	for (int i = 0; i < b->g->n_nodes; i++) {
		struct node *n = b->g->nodes[i];
		const struct kernel *k = program_kernel(b->o, n);
		int rc;

		if (!kernel_supported(k))
			return err_set(err, ERR_UNSUPPORTED, "backend %s has no kernel for %s (node %s)",
				       b->o->backend->name, n->op->name, n->name);
		rc = prepare_kernel(b, n, k, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int run_schedule(struct program_build *b, struct err *err)
{
	const struct strategy *s = b->o->strategy;
	int micros = b->p->micro ? (int)(b->p->batch / b->p->micro) : 1;
	struct schedule_order o = { .n = schedule_turns(micros),
				    .micros = micros,
				    .inputs_ahead = b->o->backend->streams != NULL };
	struct schedule_turn *turn;

	if (!s->turns || b->kind == PROGRAM_EVAL)
		return schedule_make(&b->p->schedule, b->g, err);
	o.turn = turn = arena_array(b->g->arena, (size_t)o.n, sizeof(*turn));
	s->turns(turn, &b->o->sharing, micros);
	return schedule_make_turns(&b->p->schedule, b->g, &o, err);
}

enum { STEP = 1 << PROGRAM_STEP, TRAINING = STEP | 1 << PROGRAM_MICRO, ALL = TRAINING | 1 << PROGRAM_EVAL };
enum { PROGRAMS = 1, MODEL, BOTH };

static const struct {
	const char *name;
	unsigned kinds; /* bit set of program kinds */
	unsigned of;	/* applies to programs, the model or both */
	int (*run)(struct program_build *b, struct err *err);
} passes[] = {
	{ "model", ALL, BOTH, run_model },
	{ "shape", ALL, BOTH, run_shape },
	{ "grad", TRAINING, BOTH, run_grad },
	{ "fuse", ALL, BOTH, run_fuse },
	{ "precision", ALL, BOTH, run_precision },
	{ "lay", ALL, MODEL, run_partition },
	{ "recompute", TRAINING, PROGRAMS, run_recompute },
	{ "watch terms", TRAINING, PROGRAMS, run_watch_terms },
	{ "accumulate", TRAINING, PROGRAMS, run_accumulate },
	{ "strategy", ALL, PROGRAMS, run_strategy },
	{ "optimizer", STEP, BOTH, run_optimizer },
	{ "watch outputs", STEP, BOTH, run_watch_outputs },
	{ "averages", ALL, PROGRAMS, run_averages },
	{ "offload", ALL, PROGRAMS, run_offload },
	{ "layout", ALL, PROGRAMS, run_layout },
	{ "kernels", ALL, PROGRAMS, run_kernels },
	{ "schedule", ALL, PROGRAMS, run_schedule },
};

/* Builds a new graph in b and runs the passes; the caller frees it, also after a failure. */
static int run_program_passes(struct program_build *b, unsigned of, struct err *err)
{
	int rc = 0;

	b->g = graph_new(b->kind != PROGRAM_EVAL);
	if (b->p)
		b->p->graph = b->g;
	b->g->freeze = b->o->freeze;
	b->g->low_frozen = b->o->low_frozen;
	b->g->exact = b->o->exact;
	for (size_t i = 0; !rc && i < sizeof(passes) / sizeof(passes[0]); i++)
		if (passes[i].kinds & 1u << b->kind && passes[i].of & of)
			rc = passes[i].run(b, err);
	return rc;
}

int program_model(struct graph **ret, const struct program_opts *o, int64_t batch, enum program_kind kind,
		  struct err *err)
{
	struct program_build b = { .o = o, .batch = batch, .kind = kind };
	int rc = run_program_passes(&b, MODEL, err);

	if (rc)
		graph_free(b.g);
	else
		*ret = b.g;
	return rc;
}

static void find_tensors(struct program *p)
{
	const struct graph *g = p->graph;

	bool tokens = graph_find(g, "tokens") != NULL;

	p->inputs = graph_find(g, tokens ? "tokens" : "images");
	p->targets = graph_find(g, tokens ? "targets" : "labels");
	p->logits = graph_find(g, "logits");
	p->best = graph_find(g, "best");
	p->result = g->loss;
	if (p->result && p->result->kind != TENSOR_INPUT) /* else another stage has the losses */
		p->losses = graph_find(g, WATCHING_LOSSES);
	p->result_sum = graph_find(g, STRATEGY_RESULT_SUM);
	if (!p->result_sum)
		p->result_sum = p->result;
	p->grad_norm = graph_find(g, "grad_norm");
	p->optimizer = graph_find(g, STEP_GUARD_STATE_NAME);
	p->vote = graph_find(g, STRATEGY_VOTE);
	p->votes = graph_find(g, STRATEGY_VOTES);
}

int program_new(struct program **ret, const struct program_opts *o, int64_t batch, enum program_kind kind,
		struct err *err)
{
	static const char *const names[] = { "train", "micro", "eval" };
	struct program *p = mem_zalloc(sizeof(*p));
	struct program_build b = { .o = o, .batch = batch, .kind = kind, .p = p };
	int rc;

	p->batch = p->micro = batch;
	if (o->strategy->micro && kind != PROGRAM_EVAL)
		p->micro = b.batch = o->strategy->micro(&o->sharing, batch);
	p->kind = kind;
	snprintf(p->name, sizeof(p->name), "%s-%lld", names[kind], (long long)batch);
	rc = run_program_passes(&b, PROGRAMS, err);
	if (rc)
		goto out;
	find_tensors(p);
	if (!p->inputs || !p->targets || !p->result) {
		rc = err_set(err, ERR_UNSUPPORTED, "model %s has no inputs, targets or result", o->model->name);
		goto out;
	}
	*ret = p;
	p = NULL;
out:
	program_free(p, o);
	return rc;
}

int program_check_norms(const struct program *p, int ranks, const struct program_opts *o, struct err *err)
{
	for (int i = 0; i < p->graph->n_nodes; i++) {
		const struct node *n = p->graph->nodes[i];
		const struct shape *s = n->op == &op_bn_stats ? &n->in[0]->shape : NULL;

		if (!s || shape_count(s) / s->dim[s->ndim - 1] * ranks != 1) /* 0: no samples here */
			continue;
		return err_set(err, ERR_USAGE,
			       "a batch of 1 sample: %s is a batch norm over one value for each channel (%lldx%lld "
			       "pixels), so nothing in front of it learns: raise --batch-size%s",
			       n->name, (long long)s->dim[1], (long long)s->dim[2],
			       o->sharing.sync_bn   ? ", or use --drop-last"
			       : o->sharing.world > 1 ? ", or use --sync-bn"
						      : " or --image-size");
	}
	return 0;
}

void program_free(struct program *p, const struct program_opts *o)
{
	if (!p)
		return;
	for (int i = 0; p->state && i < p->graph->n_nodes; i++) {
		const struct kernel *k = program_kernel(o, p->graph->nodes[i]);

		if (k && k->release && p->state[i])
			k->release(p->state[i]);
	}
	free(p->state);
	graph_free(p->graph);
	free(p);
}
