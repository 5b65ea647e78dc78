/* SPDX-License-Identifier: Apache-2.0 */
/* costing.c: sums the nodes of planned programs; the cost of a block is the difference between two sizes. */
#include "trainer/tools/costing.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/ops/layernorm/layernorm.h"
#include "trainer/program/planning.h"

#define PRECISIONS 4
#define FEW 2 /* blocks of the smaller graph */

struct cached_model {
	struct model_variant variant;
	int rc;
	struct advise_model model;
};

/* A node with what determines its seconds on a machine. */
struct node_work {
	enum { WORK_FRONT, WORK_BLOCKS, WORK_BACK, WORK_UPDATE } part;
	bool forward;
	const char *op;
	struct costing_node cost;
};

struct work_list {
	struct node_work *work;
	int n, room;
};

struct costing {
	const struct run_config *cfg;
	const struct workload *workload;
	const struct hardware *h;
	struct rank rank[PRECISIONS]; /* opened when first needed */
	bool open[PRECISIONS];
	struct cached_model *known;
	int n, room;
	struct planned_program *program; /* also for other machines */
	int n_programs, program_room;
};

struct program_shape {	/* dimensions of a planned program */
	int64_t layers; /* 0: those of the model */
	int64_t micro;
	int recompute, precision;
	bool pipeline; /* two stages; else two ranks with ddp */
};

/* Sums over one program. */
struct program_sums {
	struct advise_part front, blocks, back; /* blocks: of all */
	double tied_bytes, tied_trained, moments, trained_bytes, cross, back_cross, work[PLAN_CATEGORY_COUNT];
	int n_blocks;
};

struct planned_program {
	struct program_shape shape;
	struct program_sums sums; /* its seconds are unset */
	struct work_list list;
	struct graph *model; /* NULL: an earlier program has it */
};

struct costing_node costing_node(const struct node *n)
{
	const struct tensor *first = n->n_in ? n->in[0] : NULL;
	struct costing_node w = { .dtype = "" };

	first = first || !n->n_out ? first : n->out[0];
	w.dtype = first ? dtype_name(first->dtype) : "";
	w.flops = op_flops(n);
	w.bytes = op_operands(n);
	return w;
}

/* ---- one program ---- */

struct part_bounds {	  /* node numbers where the parts of a program begin */
	int turn;	  /* the loss */
	int first, after; /* the first node of a block; after the last one of the backward pass */
};

static struct part_bounds find_part_bounds(const struct graph *g)
{
	struct part_bounds p = { .turn = g->loss && g->loss->producer ? g->loss->producer->id : g->n_nodes,
				 .first = g->n_nodes };

	for (int i = 0; i < g->n_nodes; i++) {
		if (!g->nodes[i]->block)
			continue;
		p.first = i < p.first ? i : p.first;
		p.after = i + 1;
	}
	return p;
}

static struct advise_part *node_part(struct program_sums *s, const struct part_bounds *p, const struct node *n)
{
	if (n->block)
		return &s->blocks;
	if (n->id <= p->turn)
		return n->id < p->first ? &s->front : &s->back;
	return n->id < p->after ? &s->back : &s->front;
}

/* Returns the parameter that a node reads, directly or through a cast or a pack; NULL: none. */
static const struct tensor *source_param(const struct tensor *t)
{
	while (t && t->producer && (t->producer->op->id == OP_cast || t->producer->op->id == OP_pack))
		t = t->producer->in[0];
	return t && t->life == LIFE_PERSISTENT && (t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT) ? t : NULL;
}

static bool copies_param(const struct node *n)
{
	return n->op->id == OP_cast || n->op->id == OP_pack;
}

/* A parameter belongs to the part that reads it first; if another part reads it too, it is tied. */
static void add_reads(struct program_sums *s, struct advise_part **owner, const struct part_bounds *p,
		      const struct node *n)
{
	struct advise_part *part = node_part(s, p, n);

	for (int k = 0; k < n->n_in; k++) {
		const struct tensor *t = source_param(n->in[k]);
		const double elements = t ? (double)shape_count(&t->shape) : 0, bytes = t ? (double)tensor_bytes(t) : 0;
		const double trained = t && t->wants_grad ? elements : 0;

		if (!t || copies_param(n) || (owner[t->id] == part && t->kind == TENSOR_PARAM))
			continue;
		if (!owner[t->id]) {
			part->trained += trained;
			part->stored_bytes += bytes;
			part->copied_bytes += n->in[k]->dtype == t->dtype ? 0 : bytes;
		} else if (owner[t->id] != part) {
			s->tied_trained += trained;
			s->tied_bytes += bytes;
		}
		part->largest = trained > part->largest ? trained : part->largest;
		if (!owner[t->id] || owner[t->id] != part)
			part->read_bytes += elements * (double)dtype_bytes(n->in[k]->dtype);
		owner[t->id] = owner[t->id] ? owner[t->id] : part;
	}
}

static void add_node_work(struct work_list *l, struct program_sums *s, const struct part_bounds *p,
			  const struct node *n)
{
	const struct advise_part *part = node_part(s, p, n);
	struct node_work w = { .forward = n->phase == PHASE_FORWARD, .op = n->op->name, .cost = costing_node(n) };

	if (n->op->collective || (!w.forward && n->phase != PHASE_BACKWARD && n->phase != PHASE_OPTIMIZER))
		return;
	w.part = n->phase == PHASE_OPTIMIZER ? WORK_UPDATE : part == &s->front ? WORK_FRONT :
		 part == &s->blocks ? WORK_BLOCKS : WORK_BACK;
	mem_push(&l->work, &l->n, &l->room, w);
}

/* Adds the seconds of all nodes on a machine. */
static void add_work_seconds(struct program_sums *s, const struct work_list *l, const struct hardware *h)
{
	struct advise_part *const parts[] = { [WORK_FRONT] = &s->front, [WORK_BLOCKS] = &s->blocks,
					      [WORK_BACK] = &s->back };

	for (int i = 0; i < l->n; i++) {
		const struct node_work *w = &l->work[i];
		const double seconds = hardware_node_s(h, w->op, w->cost.dtype, w->cost.flops, w->cost.bytes);

		if (w->part == WORK_UPDATE)
			s->back.update_s += seconds; /* distributed by parameters at the end */
		else if (w->forward)
			parts[w->part]->forward_s += seconds;
		else
			parts[w->part]->backward_s += seconds;
	}
}

static bool read_after_turn(const struct graph *g, const struct tensor *t, int turn)
{
	for (int i = turn + 1; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++)
			if (g->nodes[i]->in[k] == t)
				return true;
	return false;
}

/* Counts a cast of a parameter that waits for the backward pass, unless recomputation repeats it there. */
static void add_cast(struct program_sums *s, const struct graph *g, const struct part_bounds *p, const struct node *n)
{
	if (n->op->id == OP_cast && n->id <= p->turn && source_param(n->out[0]) &&
	    read_after_turn(g, n->out[0], p->turn))
		node_part(s, p, n)->cast_bytes += (double)tensor_bytes(n->out[0]);
}

/* A sum that may be fused into n counts as one tensor. */
static bool reads_across(const struct node *n, const struct tensor *t)
{
	const int first = layernorm_may_part(n) ? 1 : 0;

	for (int j = first; n->phase == PHASE_FORWARD && j < n->n_in; j++)
		if (n->in[j] == t)
			return true;
	return false;
}

/* Adds the outputs of block 1 that block 2 reads; one gradient is returned. */
static void add_crossing_bytes(struct program_sums *s, const struct graph *g)
{
	for (int i = 0; i < g->n_tensors; i++) {
		const struct tensor *t = g->tensors[i];
		bool crosses = false;

		if (!t->producer || t->producer->phase != PHASE_FORWARD || t->producer->block != 1)
			continue;
		for (int k = t->producer->id; k < g->n_nodes && !crosses; k++)
			crosses = g->nodes[k]->block == 2 && reads_across(g->nodes[k], t);
		s->cross += crosses ? (double)tensor_bytes(t) : 0;
		s->back_cross = crosses ? (double)tensor_bytes(t) : s->back_cross;
	}
}

static void add_persistent(struct program_sums *s, const struct graph *model)
{
	for (int i = 0; i < model->n_tensors; i++) {
		const struct tensor *t = model->tensors[i];

		if (t->kind == TENSOR_PARAM && t->life == LIFE_PERSISTENT && !t->frozen)
			s->trained_bytes += (double)tensor_bytes(t);
		if (t->kind == TENSOR_MOMENT && t->life == LIFE_PERSISTENT)
			s->moments += (double)tensor_bytes(t);
	}
}

/* Sums all nodes of the first program, without seconds, and lists their work. */
static void sum_program(struct program_sums *ret, struct work_list *list, const struct prepared *p)
{
	const struct graph *g = p->program[0]->graph;
	const struct part_bounds place = find_part_bounds(g);
	struct advise_part **owner = mem_array((size_t)g->n_tensors + 1, sizeof(struct advise_part *));

	*ret = (struct program_sums){ .n_blocks = 0 };
	for (int i = 0; i < g->n_nodes; i++) {
		const struct node *n = g->nodes[i];

		ret->n_blocks = n->block > ret->n_blocks ? n->block : ret->n_blocks;
		if (n->id <= place.turn)
			add_reads(ret, owner, &place, n);
		add_node_work(list, ret, &place, n);
		add_cast(ret, g, &place, n);
	}
	free(owner);
	add_crossing_bytes(ret, g);
	add_persistent(ret, p->model);
	for (int c = 0; c < PLAN_CATEGORY_COUNT; c++)
		ret->work[c] = (double)p->plan.category_bytes[c];
}

/* ---- planning ---- */

static int open_costing_rank(struct costing *w, int precision, struct err *err)
{
	static struct shared_status shared_status; /* a plan is never stopped */
	static const struct rank_context context = {
		.world = 1, .local_world = 1, .nodes = 1, .shm_fd = -1, .signal_fd = -1, .shared_status = &shared_status
	};
	struct run_config cfg = *w->cfg;
	int rc;

	if (w->open[precision])
		return 0;
	cfg.precision = precision;
	cfg.world = cfg.local_world = 1;
	w->rank[precision] = rank_of(&cfg, &context);
	w->rank[precision].by_rule = w->rank[precision].sizes_only = true;
	rc = rank_open_backend(&w->rank[precision], err);
	w->open[precision] = !rc;
	return rc;
}

/* Batch sizes and recomputation do not change the model. */
static struct graph *find_known_model(const struct costing *w, const struct program_shape *o)
{
	for (int i = 0; i < w->n_programs; i++) {
		const struct program_shape *k = &w->program[i].shape;

		if (w->program[i].model && k->layers == o->layers && k->precision == o->precision &&
		    k->pipeline == o->pipeline)
			return w->program[i].model;
	}
	return NULL;
}

static int64_t count_epoch_samples(const struct dataset *d)
{
	return d->part ? d->epoch_samples : d->n_samples[SPLIT_TRAIN];
}

/* Plans a program of ret->shape and sums it. */
static int plan_program(struct costing *w, struct planned_program *ret, struct err *err)
{
	const struct program_shape *o = &ret->shape;
	struct run_config cfg = *w->cfg;
	/* On separate machines, so that shared memory is not counted. */
	struct rank_context context = { .world = 2, .local_world = 1, .nodes = 2, .shm_fd = -1, .signal_fd = -1 };
	struct workload s = *w->workload;
	struct rank r = w->rank[o->precision];
	struct prepared p;
	struct train_schedule c;
	int rc;

	cfg.command = COMMAND_BENCH; /* neither evaluates nor saves */
	cfg.world = cfg.local_world = 2;
	cfg.strategy = o->pipeline ? STRATEGY_pdp : STRATEGY_ddp;
	cfg.pp_stages = cfg.microbatches = 2;
	cfg.pp_partition = NULL;
	cfg.batch_size = o->micro;
	cfg.global_batch_size = 2 * o->micro;
	cfg.grad_accum_steps = 1;
	cfg.precision = o->precision;
	cfg.activation_checkpointing = o->recompute;
	cfg.deterministic = cfg.sync_bn = false;
	/* the first program is measured: without a program of the smaller batch that ends an epoch */
	cfg.drop_last |= count_epoch_samples(s.data) >= cfg.global_batch_size;
	cfg.activation_offload = cfg.param_offload = cfg.optim_offload = false;
	s.config.layers = o->layers ? o->layers : s.config.layers;
	r.cfg = &cfg;
	r.context = &context;
	r.known_model = find_known_model(w, o);
	rc = planning_make(&c, &p, &r, &s, err);
	if (rc)
		return rc;
	sum_program(&ret->sums, &ret->list, &p);
	if (!r.known_model) {
		ret->model = p.model;
		p.model = NULL;
	}
	prepare_done(&p);
	return 0;
}

static bool same_shape(const struct program_shape *a, const struct program_shape *b)
{
	return a->layers == b->layers && a->micro == b->micro && a->recompute == b->recompute &&
	       a->precision == b->precision && a->pipeline == b->pipeline;
}

/* Returns the sums of a program with the seconds on this machine; plans it if it is new. */
static int plan_sums(struct costing *w, const struct program_shape *o, struct program_sums *ret, struct err *err)
{
	struct planned_program fresh = { .shape = *o };
	const struct planned_program *found = NULL;
	int rc;

	for (int i = 0; i < w->n_programs && !found; i++)
		found = same_shape(&w->program[i].shape, o) ? &w->program[i] : NULL;
	if (!found) {
		rc = plan_program(w, &fresh, err);
		if (rc) {
			free(fresh.list.work);
			graph_free(fresh.model);
			return rc;
		}
		mem_push(&w->program, &w->n_programs, &w->program_room, fresh);
		found = &w->program[w->n_programs - 1];
	}
	*ret = found->sums;
	add_work_seconds(ret, &found->list, w->h);
	return 0;
}

static struct advise_part subtract_part(struct advise_part a, struct advise_part b, double by)
{
	return (struct advise_part){ .trained = (a.trained - b.trained) / by,
				     .stored_bytes = (a.stored_bytes - b.stored_bytes) / by,
				     .copied_bytes = (a.copied_bytes - b.copied_bytes) / by,
				     .read_bytes = (a.read_bytes - b.read_bytes) / by,
				     .cast_bytes = (a.cast_bytes - b.cast_bytes) / by,
				     .forward_s = (a.forward_s - b.forward_s) / by,
				     .backward_s = (a.backward_s - b.backward_s) / by };
}

/* Adds the cost of the few blocks beyond n times the cost of one block to the back: the last block is not
 * recomputed. */
static void add_block_remainder(struct advise_part *back, const struct advise_part *few,
				const struct advise_part *block, int n)
{
	back->forward_s += few->forward_s - n * block->forward_s;
	back->backward_s += few->backward_s - n * block->backward_s;
	back->cast_bytes += few->cast_bytes - n * block->cast_bytes;
}

static double total_cast_bytes(const struct program_sums *s)
{
	return s->front.cast_bytes + s->blocks.cast_bytes + s->back.cast_bytes;
}

static void distribute_updates(struct advise_model *m, double update_s)
{
	const double all = advise_gradient_bytes(m) / m->master_bytes, each = all > 0 ? update_s / all : 0;

	m->front.update_s = each * m->front.trained;
	m->block.update_s = each * m->block.trained;
	m->back.update_s = each * m->back.trained;
}

/* Makes a model from the sums of FEW blocks and of one block more. few NULL: the number of blocks is fixed, and the
 * whole is distributed evenly. */
static struct advise_model model_from_sums(const struct program_sums *few, const struct program_sums *more,
					   const struct program_shape *o)
{
	const struct program_sums none = { .n_blocks = 0 }, *less = few ? few : &none;
	const double by = few ? 1 : more->n_blocks ? more->n_blocks : 1;
	const double acts = more->work[PLAN_ACTIVATIONS] - total_cast_bytes(more);
	const double less_acts = few ? few->work[PLAN_ACTIVATIONS] - total_cast_bytes(few) : 0;
	struct advise_model m = { .front = more->front, .back = more->back };
	double update_s;

	m.block = subtract_part(more->blocks, less->blocks, by);
	m.block.largest = more->blocks.largest;
	m.block.kept_bytes = (acts - less_acts) / by;
	m.work_bytes = few ? less_acts - FEW * m.block.kept_bytes : 0;
	m.blocks = more->n_blocks;
	if (few)
		add_block_remainder(&m.back, &few->blocks, &m.block, FEW);
	m.tied_bytes = more->tied_bytes;
	m.tied_trained = more->tied_trained;
	m.master_bytes = o->precision == CONFIG_PRECISION_FP64 ? 8 : 4;
	m.moments = more->trained_bytes > 0 ? more->moments / more->trained_bytes : 0;
	m.workspace_bytes = more->work[PLAN_WORKSPACE];
	m.input_bytes = more->work[PLAN_INPUTS];
	m.cross_bytes = more->cross;
	m.cross_back_bytes = more->back_cross;
	update_s = more->back.update_s;
	distribute_updates(&m, update_s);
	return m;
}

/* Sets the bytes of a stage without the loss in addition to its two slots; negative if its peak does not include all of
 * the slots. */
static void add_stage_bytes(struct advise_model *m, const struct program_sums *stage)
{
	const double slot = m->front.kept_bytes + m->block.kept_bytes + m->block.cast_bytes;

	m->stage_bytes = stage->work[PLAN_ACTIVATIONS] - 2 * slot;
	m->stage_workspace_bytes = stage->work[PLAN_WORKSPACE];
}

/* Plans two or three small programs and makes the model. */
static int build_cost_model(struct costing *w, const struct program_shape *o, struct advise_model *ret, struct err *err)
{
	const bool grows = workload_reads_words(w->workload);
	struct program_shape few = *o, more = *o, pipe = *o;
	struct program_sums a, b, stage;
	struct err ignored = ERR_INIT;
	int rc = open_costing_rank(w, o->precision, err);

	few.layers = FEW;
	more.layers = grows ? FEW + 1 : 0;
	pipe.layers = grows ? FEW : 0;
	pipe.pipeline = true;
	if (!rc && grows)
		rc = plan_sums(w, &few, &a, err);
	if (!rc)
		rc = plan_sums(w, &more, &b, err);
	if (rc)
		return rc;
	*ret = model_from_sums(grows ? &a : NULL, &b, o);
	ret->stage_bytes = ret->work_bytes;
	ret->stage_workspace_bytes = ret->workspace_bytes;
	if (grows && !plan_sums(w, &pipe, &stage, &ignored))
		add_stage_bytes(ret, &stage);
	if (grows)
		ret->blocks = (int)w->workload->config.layers;
	return 0;
}

static struct cached_model *find_cached_model(struct costing *w, const struct model_variant *v)
{
	for (int i = 0; i < w->n; i++) {
		const struct model_variant *k = &w->known[i].variant;

		if (k->micro == v->micro && k->recompute == v->recompute && k->precision == v->precision)
			return &w->known[i];
	}
	return NULL;
}

int costing_model(void *user, const struct model_variant *v, struct advise_model *ret, struct err *err)
{
	struct costing *w = user;
	const struct program_shape o = { .micro = v->micro, .recompute = v->recompute, .precision = v->precision };
	struct cached_model *k = find_cached_model(w, v);

	if (!k) {
		mem_reserve(&w->known, &w->room, w->n + 1);
		k = &w->known[w->n++];
		*k = (struct cached_model){ .variant = *v };
		k->rc = build_cost_model(w, &o, &k->model, err);
	}
	*ret = k->model;
	return k->rc;
}

struct costing *costing_new(const struct run_config *cfg, const struct workload *s, const struct hardware *h)
{
	struct costing *w = mem_zalloc(sizeof(*w));

	*w = (struct costing){ .cfg = cfg, .workload = s, .h = h };
	return w;
}

void costing_set_machine(struct costing *w, const struct hardware *h)
{
	w->h = h;
	w->n = 0;
}

void costing_free(struct costing *w)
{
	for (int i = 0; w && i < w->n_programs; i++) {
		free(w->program[i].list.work);
		graph_free(w->program[i].model);
	}
	if (w)
		free(w->program);
	for (int i = 0; w && i < PRECISIONS; i++)
		if (w->open[i])
			rank_close(&w->rank[i]);
	if (w)
		free(w->known);
	free(w);
}
