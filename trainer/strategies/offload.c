/* SPDX-License-Identifier: Apache-2.0 */
/* offload.c: the program is cut into stretches: the parts of the model in the forward and in the
 * backward pass, then the update of one parameter each. An offloaded tensor (its home) has a stay in memory for each
 * stretch that uses it. The copy into memory begins when the stretch before the last is over; what a stretch writes is
 * copied back while the next one runs. So the stays of at most three stretches are in memory at a time. */

#include "trainer/ops/copy/copy.h"
#include "trainer/ops/ops.h"
#include "trainer/strategies/strategy_inside.h"

#define LEAST_BYTES 64 /* smaller moments are not offloaded: they gain nothing */
#define AHEAD 2	       /* stretches from the one that frees memory to the one that the copy is for */

struct stretch { /* compute nodes */
	struct node *first, *last;
};

struct stay { /* the time during which a tensor stays in a space */
	struct tensor *home, *here;
	struct tensor *cast; /* cast of `here` to another type; NULL until needed */
	struct node *first, *last;
	int from, to; /* stretches */
	bool written;
};

struct offload_use {
	struct node *node;
	int index; /* index among the node's inputs, then its outputs */
	int stay;
	enum dtype dtype; /* type in which it is read: a cast in between is skipped */
};

struct offloader {
	struct graph *g;
	const struct offload_opts *o;
	int n_nodes, n_tensors;	   /* before nodes and tensors were added */
	bool parts;		   /* micro-batches run in one schedule */
	struct tensor **home;	   /* [id]: in SPACE_OFFLOAD; NULL: not offloaded */
	struct stretch *stretches; /* in program order */
	int n_stretches;
	int *stretch_of; /* [node id, before nodes were added]: stretch of compute nodes */
	int *made_in;	 /* [id]: the stretch that makes a tensor */
	struct stay *stays;
	int n_stays;
	int *latest; /* [id]: a tensor's last stay, from 1 */
	struct offload_use *uses;
	int n_uses;
};

/* Returns operand k of a node: its inputs, then its outputs. */
static struct tensor **operand_slot(struct node *n, int k)
{
	return k < n->n_in ? &n->in[k] : &n->out[k - n->n_in];
}

/* ---- choice of tensors ---- */

static bool is_offloaded_kind(const struct offloader *f, const struct tensor *t)
{
	const bool weight = t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT;

	if (t->kind == TENSOR_MOMENT || (f->o->averages && weight))
		return f->o->optimizer && tensor_bytes(t) >= LEAST_BYTES;
	return t->kind == TENSOR_PARAM && f->o->params;
}

static bool backward_reads(const struct node *n, const struct tensor *t)
{
	for (int k = 0; n->phase == PHASE_BACKWARD && n->stream == STREAM_COMPUTE && k < n->n_in; k++)
		if (n->in[k] == t)
			return true;
	return false;
}

/* Marks the tensors that the backward pass reads. */
static bool *find_read(const struct offloader *f)
{
	bool *read = arena_array(f->g->arena, (size_t)f->n_tensors + 1, sizeof(*read));

	for (int i = 0; i < f->n_nodes; i++) {
		const struct node *n = f->g->nodes[i];

		for (int k = 0; k < n->n_in; k++)
			if (n->in[k])
				read[n->in[k]->id] |= backward_reads(n, n->in[k]);
	}
	return read;
}

static bool *find_viewed(const struct offloader *f)
{
	bool *viewed = arena_array(f->g->arena, (size_t)f->n_tensors + 1, sizeof(*viewed));

	for (int i = 0; i < f->n_tensors; i++)
		if (f->g->tensors[i]->base)
			viewed[f->g->tensors[i]->base->id] = true;
	return viewed;
}

/* Returns the end of the forward nodes whose results may be offloaded: the first node of the last block; in a pipeline,
 * whose other micro-batches run in between, the end of the program. */
static int end_of_early(const struct offloader *f)
{
	const int last = stages_last_block(f->g);
	int end = last ? f->n_nodes : 0;

	for (int i = f->n_nodes - 1; i >= 0; i--) {
		const struct node *n = f->g->nodes[i];

		if (n->part != PART_STEP)
			return f->n_nodes;
		if (last && n->block == last && n->phase == PHASE_FORWARD)
			end = i;
	}
	return end;
}

/* Returns true for activations made before `end`. Casts of parameters are not activations. */
static bool is_made_before(const struct tensor *t, int end)
{
	const struct node *n = t->producer;

	if (n && n->op == &op_cast && n->in[0]->kind == TENSOR_PARAM)
		return false;
	return n && n->phase == PHASE_FORWARD && n->stream == STREAM_COMPUTE && n->id < end;
}

static struct tensor *make_offload_home(struct offloader *f, const struct tensor *t)
{
	struct tensor like = *t;

	like.name = graph_printf(f->g, "%s.away", t->name);
	like.space = SPACE_OFFLOAD;
	like.producer = NULL;
	like.grad = NULL;
	return like.name ? graph_tensor(f->g, &like) : NULL;
}

/* Marks persistent tensors as offloaded, and makes homes for activations. */
static void choose_offloaded(struct offloader *f)
{
	const bool *read = find_read(f), *viewed = find_viewed(f);
	const int end = end_of_early(f);

	for (int i = 0; i < f->n_tensors && !graph_failed(f->g); i++) {
		struct tensor *t = f->g->tensors[i];

		if (t->space != SPACE_PRIVATE || t->base || viewed[i] || tensor_bytes(t) < OFFLOAD_LEAST_BYTES)
			continue;
		if (t->life == LIFE_PERSISTENT && is_offloaded_kind(f, t)) {
			t->space = SPACE_OFFLOAD;
			f->home[i] = t;
		} else if (f->o->activations && t->kind == TENSOR_ACT && t->life == LIFE_MICRO && !t->keep && read[i] &&
			   is_made_before(t, end)) {
			f->home[i] = make_offload_home(f, t);
		}
	}
}

static bool is_activation(const struct offloader *f, const struct tensor *t)
{
	return f->home[t->id] && f->home[t->id] != t;
}

/* Returns true for a cast of an offloaded parameter that nodes read instead: it is made again in each stay. */
static bool is_cast(const struct offloader *f, const struct node *n)
{
	const struct tensor *from = n->op == &op_cast ? n->in[0] : NULL;

	return from && from->kind == TENSOR_PARAM && from->id < f->n_tensors && f->home[from->id] &&
	       n->out[0]->life == LIFE_MICRO && !n->out[0]->base;
}

/* Returns the offloaded tensor of n's operand; NULL: none. */
static struct tensor *offloaded_operand(const struct offloader *f, const struct node *n, struct tensor *t)
{
	if (t && t->producer && is_cast(f, t->producer))
		return t->producer->in[0];
	if (!t || t->id >= f->n_tensors || !f->home[t->id] || is_cast(f, n))
		return NULL;
	return is_activation(f, t) && !backward_reads(n, t) ? NULL : t;
}

/* ---- stretches ---- */

struct stretch_cutter {
	int first[PHASE_COUNT], last[PHASE_COUNT]; /* first and last nodes of blocks */
	enum phase phase;			   /* phase of the stretch so far */
	int place;				   /* place in the model: the block; 0 outside of all blocks */
	int *touched;				   /* [id]: the last stretch that used it, from 1 */
};

static void find_blocks(struct stretch_cutter *c, const struct offloader *f)
{
	for (int p = 0; p < PHASE_COUNT; p++)
		c->first[p] = c->last[p] = -1;
	for (int i = 0; i < f->n_nodes; i++) {
		const struct node *n = f->g->nodes[i];

		if (n->block == 0 || n->stream != STREAM_COMPUTE)
			continue;
		c->first[n->phase] = c->first[n->phase] < 0 ? i : c->first[n->phase];
		c->last[n->phase] = i;
	}
}

/* Nodes without a block between nodes of blocks belong to the part before them. */
static bool begins_part(struct stretch_cutter *c, const struct node *n)
{
	const bool between = n->id > c->first[n->phase] && n->id < c->last[n->phase];
	const int before = c->place;

	if (n->phase == c->phase && n->block == 0 && between)
		return false;
	c->place = n->block;
	return n->phase != c->phase || before != c->place;
}

/* The update of a parameter lasts as long as nodes use its tensors. */
static bool begins_step(struct stretch_cutter *c, const struct offloader *f, struct node *n)
{
	bool any = false, same = false;

	for (int k = 0; k < n->n_in + n->n_out; k++) {
		const struct tensor *t = offloaded_operand(f, n, *operand_slot(n, k));

		any |= t != NULL;
		same |= t && c->touched[t->id] == f->n_stretches;
	}
	return n->phase != c->phase || (any && !same);
}

static void extend_stretches(struct stretch_cutter *c, struct offloader *f, struct node *n)
{
	const bool begins = n->phase == PHASE_OPTIMIZER ? begins_step(c, f, n) : begins_part(c, n);

	if (begins || f->n_stretches == 0)
		f->stretches[f->n_stretches++].first = n;
	c->phase = n->phase;
	f->stretches[f->n_stretches - 1].last = n;
	f->stretch_of[n->id] = f->n_stretches - 1;
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k] && n->out[k]->producer == n)
			f->made_in[n->out[k]->id] = f->n_stretches - 1;
	for (int k = 0; k < n->n_in + n->n_out; k++) {
		const struct tensor *t = offloaded_operand(f, n, *operand_slot(n, k));

		if (t)
			c->touched[t->id] = f->n_stretches;
	}
}

/* Where micro-batches run in one schedule, nodes of the step as a whole run after all of them, wherever they are in the
 * program: they end no stretch. (Those that add up terms; they read nothing that is offloaded.) */
static bool runs_after_micros(const struct offloader *f, const struct node *n)
{
	return f->parts && n->part == PART_STEP && n->phase != PHASE_OPTIMIZER;
}

static void cut_stretches(struct offloader *f)
{
	struct stretch_cutter c = { .phase = PHASE_COUNT };

	c.touched = graph_array(f->g, f->n_tensors, sizeof(*c.touched));
	find_blocks(&c, f);
	for (int i = 0; i < f->n_nodes; i++)
		f->parts |= f->g->nodes[i]->part != PART_STEP;
	for (int i = 0; i < f->n_nodes; i++) {
		struct node *n = f->g->nodes[i];

		if (n->stream == STREAM_COMPUTE && n->phase != PHASE_COMM && !runs_after_micros(f, n))
			extend_stretches(&c, f, n);
	}
}

/* ---- stays ---- */

static void add_stay_use(struct offloader *f, struct node *n, int k)
{
	struct tensor *t = offloaded_operand(f, n, *operand_slot(n, k));
	const int at = f->stretch_of[n->id];
	struct stay *s;

	if (!t)
		return;
	if (!f->latest[t->id] || f->stays[f->latest[t->id] - 1].to + 1 < at) {
		f->stays[f->n_stays++] = (struct stay){ .home = f->home[t->id], .first = n, .from = at };
		f->latest[t->id] = f->n_stays;
	}
	s = &f->stays[f->latest[t->id] - 1];
	s->last = n;
	s->to = at;
	s->written |= k >= n->n_in;
	f->uses[f->n_uses++] = (struct offload_use){ n, k, f->latest[t->id] - 1, (*operand_slot(n, k))->dtype };
}

static void find_stays(struct offloader *f)
{
	int most = 0;

	for (int i = 0; i < f->n_nodes; i++)
		most += f->g->nodes[i]->n_in + f->g->nodes[i]->n_out;
	f->uses = graph_array(f->g, most, sizeof(*f->uses));
	f->stays = graph_array(f->g, most, sizeof(*f->stays));
	for (int i = 0; i < f->n_nodes; i++)
		for (int k = 0; k < f->g->nodes[i]->n_in + f->g->nodes[i]->n_out; k++)
			add_stay_use(f, f->g->nodes[i], k);
}

/* ---- copies ---- */

/* Adds a copy on a copy stream at a position, with part and block of the node `like`. */
static struct node *copy_at(struct offloader *f, struct tensor *from, struct tensor *to, const struct node *like,
			    int position)
{
	const struct copy_attr attr = { .file = f->o->file };
	struct node *n = copy_add(f->g, from, to, &attr);

	if (!n)
		return NULL;
	n->stream = to->space == SPACE_OFFLOAD ? STREAM_COPY_OUT : STREAM_COPY_IN;
	n->phase = like->phase;
	n->part = like->part;
	n->block = like->block;
	graph_move(f->g, n->id, position);
	return n;
}

/* A copy out of a stretch ends before the next but one stretch begins. */
static void end_copy_before(struct offloader *f, struct node *copy, int stretch)
{
	if (copy && stretch + AHEAD < f->n_stretches)
		node_after(f->g, f->stretches[stretch + AHEAD].first, copy);
}

static void offload_activation(struct offloader *f, struct tensor *t)
{
	struct node *made = t->producer;

	end_copy_before(f, copy_at(f, t, f->home[t->id], made, made->id + 1), f->made_in[t->id]);
}

static void begin_stay(struct offloader *f, struct stay *s)
{
	struct tensor like = *s->home;
	struct node *n;

	like.name = graph_printf(f->g, "%s.here.%d", s->home->name, (int)(s - f->stays));
	like.space = SPACE_PRIVATE;
	like.life = s->first->phase == PHASE_OPTIMIZER ? LIFE_STEP : LIFE_MICRO;
	like.producer = NULL;
	like.grad = NULL;
	s->here = like.name ? graph_tensor(f->g, &like) : NULL;
	n = s->here ? copy_at(f, s->home, s->here, s->first, s->first->id) : NULL;
	if (n && s->from >= AHEAD)
		node_after(f->g, n, f->stretches[s->from - AHEAD].last);
}

static void end_stay(struct offloader *f, struct stay *s)
{
	if (s->written)
		end_copy_before(f, copy_at(f, s->here, s->home, s->last, s->last->id + 1), s->to);
}

static struct tensor *make_stay_cast(struct offloader *f, struct stay *s, const struct offload_use *u)
{
	struct tensor *out = s->cast ? NULL : graph_act(f->g, u->dtype, s->here->shape, "%s.%s", s->here->name,
							 dtype_name(u->dtype));
	struct node *n;

	if (!out)
		return s->cast;
	n = graph_node(f->g, &(struct node_spec){ .op = &op_cast, .name = out->name, NODE_IN(s->here), NODE_OUT(out) });
	if (!n)
		return NULL;
	n->phase = u->node->phase;
	n->part = u->node->part;
	n->block = u->node->block;
	graph_move(f->g, n->id, u->node->id);
	return s->cast = out;
}

static void redirect_use(struct offloader *f, const struct offload_use *u)
{
	struct stay *s = &f->stays[u->stay];
	struct tensor *to = s->here;

	if (to && u->dtype != to->dtype)
		to = make_stay_cast(f, s, u);
	*operand_slot(u->node, u->index) = to;
}

static void remove_casts(struct offloader *f)
{
	for (int i = f->g->n_nodes - 1; i >= 0; i--)
		if (is_cast(f, f->g->nodes[i]) && graph_count_uses(f->g, f->g->nodes[i]->out[0]) == 0)
			graph_remove(f->g, i);
}

static void move_all(struct offloader *f)
{
	for (int i = 0; i < f->n_tensors && !graph_failed(f->g); i++)
		if (is_activation(f, f->g->tensors[i]))
			offload_activation(f, f->g->tensors[i]);
	for (int i = 0; i < f->n_stays && !graph_failed(f->g); i++)
		begin_stay(f, &f->stays[i]);
	for (int i = 0; i < f->n_uses && !graph_failed(f->g); i++)
		redirect_use(f, &f->uses[i]);
	for (int i = 0; i < f->n_stays && !graph_failed(f->g); i++)
		end_stay(f, &f->stays[i]);
	if (!graph_failed(f->g))
		remove_casts(f);
}

int offload_add(struct graph *g, const struct offload_opts *o, struct err *err)
{
	struct offloader f = { .g = g, .o = o, .n_nodes = g->n_nodes, .n_tensors = g->n_tensors };

	if (graph_failed(g) || !(o->activations || o->params || o->optimizer))
		return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
	f.home = graph_array(g, f.n_tensors, sizeof(struct tensor *));
	f.latest = graph_array(g, f.n_tensors, sizeof(*f.latest));
	f.stretches = graph_array(g, f.n_nodes, sizeof(*f.stretches));
	f.stretch_of = graph_array(g, f.n_nodes, sizeof(*f.stretch_of));
	f.made_in = graph_array(g, f.n_tensors, sizeof(*f.made_in));
	choose_offloaded(&f);
	if (!graph_failed(g)) {
		cut_stretches(&f);
		find_stays(&f);
		move_all(&f);
	}
	return graph_failed(g) ? err_set(err, g->err.code, "%s", g->err.text) : 0;
}
