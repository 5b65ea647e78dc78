/* SPDX-License-Identifier: Apache-2.0 */
/* planning.c: turns a configuration into options of programs and shapes of batches; shares rank 0's choice of kernels;
 * adds up what the programs of a step send. */
#include "trainer/program/planning.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/ops/partial_sums/partial_sums.h"
#include "trainer/program/loading.h"

/* Sets the room for the terms of every step: full steps, and the last step of an epoch. */
static void set_leaves(struct strategy_opts *ret, const struct rank *r, const struct train_schedule *c)
{
	const int64_t steps = sampler_steps(&c->train);
	const struct reduction_tree full = sampler_leaves(&c->train, 0, rank_share(r));
	const struct reduction_tree last =
		c->train.endless ? full : sampler_leaves(&c->train, steps - 1, rank_share(r));
	int least;

	if (r->cfg->test_only || !c->train.leaf)
		return;
	ret->leaf = c->train.leaf;
	ret->room = reduction_tree_room(full.all, full.parts);
	least = reduction_tree_room(last.all, last.parts);
	ret->room = least > ret->room ? least : ret->room;
	ret->roots = reduction_tree_roots(full.first, full.n, NULL);
}

/* Makes the options of all programs from the configuration. */
static struct program_opts make_program_opts(const struct rank *r, const struct workload *s,
					     const struct train_schedule *c)
{
	const struct run_config *cfg = r->cfg;
	struct program_opts o = {
		.model = s->model,
		.config = s->config,
		.precision = rank_precision(r),
		.backend = r->backend,
		.module = r->module,
		.strategy = strategies_table[cfg->strategy],
		.sharing = rank_sharing(r),
		.optimizer = optimizer_opts_of(cfg),
		.freeze = cfg->freeze,
		.low_frozen = cfg->lora != NULL,
		.exact = cfg->deterministic,
		.keep_grads = cfg->dump_grads != NULL,
		.node_by_node = !cfg->cuda_graphs,
		.recompute = (enum recompute)cfg->activation_checkpointing,
		.offload = { .activations = cfg->activation_offload,
			     .params = cfg->param_offload,
			     .optimizer = cfg->optim_offload,
			     .file = cfg->offload_dir != NULL },
		.offload_dir = cfg->offload_dir,
		.sizes_only = r->sizes_only,
		.known_model = r->known_model,
		.env = rank_env(r),
		.comm = r->comm,
		.devices = r->devices,
	};

	memcpy(o.lane, r->lane, sizeof(o.lane));
	set_leaves(&o.sharing, r, c);
	return o;
}

static struct prepare_shapes make_prepare_shapes(const struct rank *r, const struct workload *s,
						 const struct train_schedule *c)
{
	const struct run_config *cfg = r->cfg;
	bool saves_on_the_way = c->saves && (cfg->save_steps || cfg->save_best);
	bool has_part = rank_is_root(r) || strategies_table[cfg->strategy]->holds;
	struct prepare_shapes shapes = { .snapshot = has_part && saves_on_the_way,
					 .data_bytes = (size_t)s->data->buffer_bytes };
	struct loading_opts l = { .rank = r, .workload = s, .train_schedule = c, .split = SPLIT_TRAIN };

	if (!cfg->test_only) {
		shapes.n_train = sampler_shapes(&c->train, shapes.train);
		shapes.loader_bytes[SPLIT_TRAIN] = loading_bytes(&l);
	}
	if (c->evaluates) {
		l.split = SPLIT_VAL;
		shapes.n_eval = sampler_shapes(&c->eval, shapes.eval);
		shapes.loader_bytes[SPLIT_VAL] = loading_bytes(&l);
	}
	return shapes;
}

int planning_make(struct train_schedule *ret_schedule, struct prepared *ret, const struct rank *r,
		  const struct workload *s, struct err *err)
{
	struct program_opts o;
	struct prepare_shapes shapes;
	struct train_schedule c;
	int rc = train_schedule_make(&c, r->cfg, s->data, err);

	if (rc)
		return rc;
	o = make_program_opts(r, s, &c);
	shapes = make_prepare_shapes(r, s, &c);
	*ret_schedule = c;
	return prepare_programs(ret, &o, &shapes, err);
}

int planning_together(struct train_schedule *ret_schedule, struct prepared *ret, const struct rank *r,
		      const struct workload *s, struct err *err)
{
	struct buf text;
	int rc = 0;

	if (r->context->world == 1 || !r->backend->choose || r->by_rule)
		return planning_make(ret_schedule, ret, r, s, err);
	buf_init(&text, KERNELS_BYTES_MAX);
	if (rank_is_root(r)) {
		rc = planning_make(ret_schedule, ret, r, s, err);
		r->backend->choices(r->module, kernels_add, &text);
	}
	if (!rc)
		rc = kernels_share(r, &text, err);
	if (!rc && !rank_is_root(r))
		rc = planning_make(ret_schedule, ret, r, s, err);
	buf_done(&text);
	return rc;
}

int planning_evaluation(struct prepared *ret, const struct rank *r, const struct workload *s,
			const struct planning_sizes *sizes, struct err *err)
{
	struct prepare_shapes shapes = { .n_eval = sizes->n };
	struct program_opts o = { .model = s->model,
				  .config = s->config,
				  .precision = rank_precision(r),
				  .backend = r->backend,
				  .module = r->module,
				  .strategy = strategies_table[STRATEGY_single],
				  .freeze = "*",
				  .low_frozen = true,
				  .node_by_node = !r->cfg->cuda_graphs,
				  .sharing = { .world = 1 },
				  .env = rank_env(r),
				  .comm = r->comm };

	for (int i = 0; i < sizes->n; i++)
		shapes.eval[i] = (struct micro_shape){ .size = sizes->batch[i], .last = true };
	return prepare_programs(ret, &o, &shapes, err);
}

/* ---- kernels: rank 0 broadcasts its choices as one text ---- */

void kernels_add(void *user, const char *key, const char *name)
{
	buf_add(user, key, strlen(key) + 1);
	buf_add(user, name, strlen(name) + 1);
}

/* A text that did not fit is empty: then every rank measures for itself. */
int kernels_share(const struct rank *r, const struct buf *text, struct err *err)
{
	struct comm *c = rank_comm(r);
	bool mine = rank_is_root(r) && !buf_failed(text);
	int64_t n = mine ? (int64_t)text->len : 0;
	char *all;
	int rc = c->ops->broadcast(c, &n, sizeof(n), 0, err);

	if (rc || !n)
		return rc;
	all = mem_array((size_t)n + 1, 1);
	if (mine)
		memcpy(all, text->data, (size_t)n);
	rc = c->ops->broadcast(c, all, (size_t)n, 0, err);
	for (int64_t at = 0; !rc && at < n;) {
		const char *key = all + at, *name = key + strlen(key) + 1;

		r->backend->choose(r->module, key, name);
		at += (int64_t)(strlen(key) + strlen(name)) + 2;
	}
	free(all);
	return rc;
}

/* ---- communication volume ---- */

#define SMALL_BYTES 16384 /* same limit as in communicators */
#define MIB 1048576.0

static const int kinds[COMM_VOLUME_KINDS] = { OP_allreduce, OP_all_gather, OP_reduce_scatter, OP_send };

/* Returns the number of ranks in this rank's group of that kind. */
static int count_group_ranks(const struct program_opts *o, enum group group)
{
	const struct strategy *s = o->strategy;
	int own, n = 0;

	if (group == GROUP_WORLD || !s->group_of)
		return o->sharing.world;
	own = s->group_of(&o->sharing, group, o->sharing.rank);
	for (int r = 0; r < o->sharing.world; r++)
		n += s->group_of(&o->sharing, group, r) == own;
	return n;
}

/* Returns the room for terms (trainer/ops/partial_sums); 0: a plain sum. */
static int terms_room(const struct node *n)
{
	const bool sum = n->op->id == OP_allreduce || n->op->id == OP_reduce_scatter;
	const struct partial_sums_attr *a = sum ? n->attr : NULL;

	return a ? a->room : 0;
}

static double bytes_sent_by_node(const struct program_opts *o, const struct node *n, bool first)
{
	const double ranks = count_group_ranks(o, n->group);
	const int room = terms_room(n);
	const double roots = room ? o->sharing.roots : 1; /* each root is sent */
	const double bytes = (double)tensor_bytes(n->in[0]) / (room ? room : 1);

	if (n->op->id == OP_send)
		return bytes;
	if (n->op->id == OP_allreduce)
		return bytes <= SMALL_BYTES ? roots * bytes * (ranks - 1) : (roots + 1) * bytes * (ranks - 1) / ranks;
	if (n->op->id == OP_reduce_scatter)
		return roots * bytes * (ranks - 1) / ranks;
	if (n->once && !first)
		return 0;
	return bytes * (ranks - 1) / ranks;
}

/* Returns how often a node runs in a program: messages once for each micro-batch, all else once. */
static int runs_per_program(const struct program *p, const struct node *n)
{
	return n->op->id == OP_send ? p->schedule.slots : 1;
}

/* The first program of a kind has the largest batch. */
static void add_program_traffic(const struct prepared *p, enum program_kind kind, bool first, double times,
				double sent[COMM_VOLUME_KINDS])
{
	const struct program *program = NULL;

	for (int i = p->n_programs - 1; i >= 0; i--)
		program = p->program[i]->kind == kind ? p->program[i] : program;
	for (int i = 0; program && i < program->graph->n_nodes; i++)
		for (size_t k = 0; k < COMM_VOLUME_KINDS; k++)
			if (program->graph->nodes[i]->op->id == kinds[k])
				sent[k] += times * runs_per_program(program, program->graph->nodes[i]) *
					   bytes_sent_by_node(&p->opts, program->graph->nodes[i], first);
}

void comm_volume_sent(const struct prepared *p, int64_t micros, double sent[COMM_VOLUME_KINDS])
{
	for (size_t k = 0; k < COMM_VOLUME_KINDS; k++)
		sent[k] = 0;
	if (p->opts.sharing.world == 1)
		return;
	add_program_traffic(p, PROGRAM_STEP, micros == 1, 1, sent);
	if (micros > 1) {
		add_program_traffic(p, PROGRAM_MICRO, true, 1, sent);
		add_program_traffic(p, PROGRAM_MICRO, false, (double)micros - 2, sent);
	}
}

void comm_volume_table(const struct prepared *p, int64_t micros, struct buf *out)
{
	double sent[COMM_VOLUME_KINDS];

	if (p->opts.sharing.world == 1)
		return;
	comm_volume_sent(p, micros, sent);
	buf_adds(out, "sent by a rank in a step:\n");
	for (size_t k = 0; k < COMM_VOLUME_KINDS; k++)
		if (sent[k] > 0)
			buf_addf(out, "  %-14s %8.1f MiB\n", ops_table[kinds[k]]->name, sent[k] / MIB);
}
