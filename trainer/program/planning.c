/* planning.c: turns a configuration into options of programs and shapes of batches. */
#include "trainer/program/planning.h"

#include <string.h>

#include "trainer/program/kernels.h"
#include "trainer/program/loading.h"

/* The rank context of a plan has a rank and a world only. */
static struct neighbours find_neighbours(const struct rank_context *s)
{
	return s->nodes > 1 ? (struct neighbours){ s->rank - s->local_rank, s->local_world }
			    : (struct neighbours){ 0, s->world };
}

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
		.here = find_neighbours(r->seat),
		.optimizer = optimizer_opts_of(cfg),
		.freeze = cfg->freeze,
		.exact = cfg->deterministic,
		.keep_grads = cfg->dump_grads != NULL,
		.node_by_node = !cfg->cuda_graphs,
		.recompute = (enum recompute)cfg->activation_checkpointing,
		.offload = { .activations = cfg->activation_offload,
			     .params = cfg->param_offload,
			     .optimizer = cfg->optim_offload,
			     .file = cfg->offload_dir != NULL },
		.offload_dir = cfg->offload_dir,
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
	struct loading_opts l = { .rank = r, .subject = s, .course = c, .split = SPLIT_TRAIN };

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

int planning_make(struct train_schedule *ret_course, struct prepared *ret, const struct rank *r,
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
	*ret_course = c;
	return prepare_programs(ret, &o, &shapes, err);
}

int planning_together(struct train_schedule *ret_course, struct prepared *ret, const struct rank *r,
		      const struct workload *s, struct err *err)
{
	struct buf text;
	int rc = 0;

	if (r->seat->world == 1 || !r->backend->choose || r->by_rule)
		return planning_make(ret_course, ret, r, s, err);
	buf_init(&text, KERNELS_BYTES_MAX);
	if (rank_is_root(r)) {
		rc = planning_make(ret_course, ret, r, s, err);
		r->backend->choices(r->module, kernels_add, &text);
	}
	if (!rc)
		rc = kernels_share(r, &text, err);
	if (!rc && !rank_is_root(r))
		rc = planning_make(ret_course, ret, r, s, err);
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
				  .low_params = true,
				  .node_by_node = !r->cfg->cuda_graphs,
				  .sharing = { .world = 1 },
				  .env = rank_env(r),
				  .comm = r->comm };

	for (int i = 0; i < sizes->n; i++)
		shapes.eval[i] = (struct micro_shape){ .size = sizes->batch[i], .last = true };
	return prepare_programs(ret, &o, &shapes, err);
}
