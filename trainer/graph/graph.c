/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c: builds and edits a graph. It knows ops only through struct op. */
#include "trainer/graph/graph.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "trainer/graph/op.h"
#include "trainer/graph/rng.h"

/* Hash table of tensor names with open addressing. The number of slots is a power of two; at most half are used. */
struct graph_names {
	struct tensor **slot;
	size_t n_slots, used;
};

const char *phase_name(enum phase p)
{
	static const char *const names[PHASE_COUNT] = { "forward", "backward", "comm", "optimizer" };

	return names[p];
}

const char *stream_name(enum stream s)
{
	static const char *const names[STREAM_COUNT] = { "compute",	 "comm",	  "gather",
							 "copy-in",	 "copy-out",	  "send-forward",
							 "recv-forward", "send-backward", "recv-backward" };

	return names[s];
}

enum stream stream_meets(enum stream s)
{
	return s == STREAM_RECV_FORWARD ? STREAM_SEND_FORWARD : s == STREAM_RECV_BACKWARD ? STREAM_SEND_BACKWARD : s;
}

const char *group_name(enum group g)
{
	static const char *const names[GROUP_COUNT] = { "world", "shard", "replica", "pipeline", "ends" };

	return names[g];
}

struct graph *graph_new(bool training)
{
	struct arena *arena = arena_new();
	struct graph *g = arena_alloc(arena, sizeof(*g));

	g->names = arena_alloc(arena, sizeof(*g->names));
	g->arena = arena;
	g->training = training;
	return g;
}

void graph_free(struct graph *g)
{
	if (g)
		arena_free(g->arena);
}

bool graph_failed(const struct graph *g)
{
	return g->err.code != 0;
}

void graph_fail(struct graph *g, int code, const char *fmt, ...)
{
	char text[sizeof(g->err.text)];
	va_list ap;

	if (graph_failed(g))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&g->err, code, "%s", text);
}

#define GRAPH_TENSOR_MAX (INT64_C(1) << 40) /* elements */

void *graph_array(struct graph *g, int n, size_t bytes_each)
{
	return arena_array(g->arena, (size_t)n + 1, bytes_each);
}

/* Makes room for one more element in an arena array of pointers. The old array remains in the arena. */
static void grow_pointer_array(struct graph *g, void ***array, int n, int *cap)
{
	int wanted = *cap ? *cap * 2 : 64;
	void **bigger;

	if (n < *cap)
		return;
	bigger = arena_array(g->arena, (size_t)wanted, sizeof(void *));
	if (n)
		memcpy(bigger, *array, (size_t)n * sizeof(void *));
	*array = bigger;
	*cap = wanted;
}

static struct tensor **find_name_slot(const struct graph_names *names, const char *name)
{
	size_t i = rng_stream(name) & (names->n_slots - 1);

	while (names->slot[i] && strcmp(names->slot[i]->name, name) != 0)
		i = (i + 1) & (names->n_slots - 1);
	return &names->slot[i];
}

/* Fills an empty table with every tensor of the graph. */
static void fill_name_table(struct graph_names *names, const struct graph *g)
{
	memset(names->slot, 0, names->n_slots * sizeof(struct tensor *));
	for (int i = 0; i < g->n_tensors; i++)
		*find_name_slot(names, g->tensors[i]->name) = g->tensors[i];
}

static void add_tensor_name(struct graph *g, struct tensor *t)
{
	struct graph_names *names = g->names, bigger = { .n_slots = names->n_slots ? names->n_slots * 2 : 256 };

	if (names->used * 2 >= names->n_slots) {
		bigger.slot = arena_array(g->arena, bigger.n_slots, sizeof(struct tensor *));
		fill_name_table(&bigger, g);
		bigger.used = names->used;
		*names = bigger;
	}
	*find_name_slot(names, t->name) = t;
	names->used++;
}

struct tensor *graph_find(const struct graph *g, const char *name)
{
	return g->names->n_slots ? *find_name_slot(g->names, name) : NULL;
}

const char *graph_printf(struct graph *g, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (graph_failed(g))
		return NULL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return arena_strdup(g->arena, text);
}

const char *graph_stem(struct graph *g, const char *name)
{
	const char *dot = strrchr(name, '.');

	return graph_printf(g, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

bool graph_frozen(const char *patterns, const char *name)
{
	bool frozen = false;

	while (patterns && *patterns) {
		size_t n = strcspn(patterns, ",");
		bool back = *patterns == '!';
		char one[256];

		snprintf(one, sizeof(one), "%.*s", (int)n - back, patterns + back);
		if (!fnmatch(one, name, 0))
			frozen = !back;
		patterns += n + (patterns[n] == ',');
	}
	return frozen;
}

/* The limit exceeds the memory of any machine and keeps sums of bytes within 64 bits. */
static int check_shape(struct graph *g, const struct tensor *t)
{
	int64_t n = 1;

	for (int i = 0; i < t->shape.ndim; i++) {
		if (t->shape.dim[i] < 0)
			graph_fail(g, ERR_USAGE, "tensor %s has a negative dimension", t->name);
		else if (__builtin_mul_overflow(n, t->shape.dim[i], &n) || n > GRAPH_TENSOR_MAX)
			graph_fail(g, ERR_USAGE, "tensor %s has more than 2^40 elements: use a smaller batch or model",
				   t->name);
	}
	return g->err.code;
}

struct tensor *graph_tensor(struct graph *g, const struct tensor *like)
{
	struct tensor *t;

	if (graph_failed(g))
		return NULL;
	if (check_shape(g, like))
		return NULL;
	if (graph_find(g, like->name)) {
		graph_fail(g, ERR_EXISTS, "tensor name %s is already used", like->name);
		return NULL;
	}
	grow_pointer_array(g, (void ***)&g->tensors, g->n_tensors, &g->cap_tensors);
	t = arena_alloc(g->arena, sizeof(*t));
	*t = *like;
	t->id = g->n_tensors;
	t->frozen = (t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT) && graph_frozen(g->freeze, t->name);
	t->name = arena_strdup(g->arena, like->name);
	add_tensor_name(g, t);
	g->tensors[g->n_tensors++] = t;
	return t;
}

int graph_rename(struct graph *g, struct tensor *t, const char *name)
{
	if (graph_failed(g))
		return g->err.code;
	if (graph_find(g, name)) {
		graph_fail(g, ERR_EXISTS, "tensor name %s is already used", name);
		return g->err.code;
	}
	t->name = graph_printf(g, "%s", name);
	fill_name_table(g->names, g);
	return g->err.code;
}

/* Returns `wanted`, or `wanted` with the first free suffix "#2", "#3", … when it is taken. */
static const char *pick_free_name(struct graph *g, const char *wanted)
{
	const char *name = wanted;

	for (int n = 2; name && graph_find(g, name); n++)
		name = graph_printf(g, "%s#%d", wanted, n);
	return name;
}

struct tensor *graph_act(struct graph *g, enum dtype dtype, struct shape shape, const char *fmt, ...)
{
	char wanted[256];
	struct tensor like = { .kind = TENSOR_ACT, .dtype = dtype, .shape = shape, .life = LIFE_MICRO };
	va_list ap;

	if (graph_failed(g))
		return NULL;
	va_start(ap, fmt);
	vsnprintf(wanted, sizeof(wanted), fmt, ap);
	va_end(ap);
	like.name = pick_free_name(g, wanted);
	return like.name ? graph_tensor(g, &like) : NULL;
}

int graph_out(struct graph *g, struct node *n, int index, struct tensor_type type, const char *suffix)
{
	struct tensor *t = n->out[index];
	bool same;

	if (graph_failed(g))
		return g->err.code;
	same = !t || shape_equal(&t->shape, &type.shape);
	if (!same)
		return graph_expect(g, n, false, "output shape does not match the op's shape rule");
	if (!t)
		n->out[index] = graph_act(g, type.dtype, type.shape, "%s%s", n->name, suffix);
	return g->err.code;
}

int graph_expect(struct graph *g, const struct node *n, bool ok, const char *what)
{
	if (!ok)
		graph_fail(g, ERR_USAGE, "%s (%s): %s", n->name, n->op->name, what);
	return g->err.code;
}

/* Allocates a node with copies of the operands and attributes of spec, in the graph's current phase and block. It is
 * not yet part of the graph. */
static struct node *alloc_node(struct graph *g, const struct node_spec *spec)
{
	struct node *n = arena_alloc(g->arena, sizeof(*n));

	n->in = graph_array(g, spec->n_in + spec->n_out, sizeof(struct tensor *));
	n->op = spec->op;
	n->phase = g->phase;
	n->block = g->block;
	n->stream = STREAM_COMPUTE;
	n->bucket = -1;
	n->n_in = spec->n_in;
	n->n_out = spec->n_out;
	n->out = n->in + spec->n_in;
	if (spec->n_in)
		memcpy(n->in, spec->in, (size_t)spec->n_in * sizeof(*n->in));
	if (spec->n_out && spec->out)
		memcpy(n->out, spec->out, (size_t)spec->n_out * sizeof(*n->out));
	if (spec->attr) {
		n->attr = arena_alloc(g->arena, spec->attr_bytes);
		memcpy(n->attr, spec->attr, spec->attr_bytes);
	}
	n->name = spec->name ? graph_printf(g, "%s", spec->name) : graph_printf(g, "%s.%d", spec->op->name, g->n_nodes);
	return n;
}

struct node *graph_node(struct graph *g, const struct node_spec *spec)
{
	struct node *n;

	if (graph_failed(g))
		return NULL;
	n = alloc_node(g, spec);
	grow_pointer_array(g, (void ***)&g->nodes, g->n_nodes, &g->cap_nodes);
	if (n->op->shape && n->op->shape(g, n) != 0) {
		graph_fail(g, ERR_USAGE, "%s (%s): shapes do not match", n->name, n->op->name);
		return NULL;
	}
	if (graph_failed(g))
		return NULL;
	n->id = g->n_nodes;
	g->nodes[g->n_nodes++] = n;
	for (int i = 0; i < n->n_out; i++)
		if (n->out[i] && !n->out[i]->producer && n->out[i]->life != LIFE_PERSISTENT)
			n->out[i]->producer = n;
	return n;
}

struct node *graph_clone(struct graph *g, const struct node *n, struct tensor *const *in, const char *suffix)
{
	struct node_spec spec = { .op = n->op, .in = in, .n_in = n->n_in, .n_out = n->n_out };
	struct node *clone;

	if (graph_failed(g))
		return NULL;
	spec.name = graph_printf(g, "%s.%s", n->name, suffix);
	clone = alloc_node(g, &spec);
	grow_pointer_array(g, (void ***)&g->nodes, g->n_nodes, &g->cap_nodes);
	clone->attr = n->attr;
	clone->block = n->block;
	for (int k = 0; k < n->n_out; k++) {
		const struct tensor *t = n->out[k];

		if (!t)
			continue;
		clone->out[k] = graph_act(g, t->dtype, t->shape, "%s.%s", t->name, suffix);
		if (!clone->out[k])
			return NULL;
		clone->out[k]->producer = clone;
	}
	clone->id = g->n_nodes;
	g->nodes[g->n_nodes++] = clone;
	return clone;
}

static void renumber_nodes(struct graph *g, int from, int to)
{
	for (int i = from; i <= to; i++)
		g->nodes[i]->id = i;
}

void graph_move(struct graph *g, int from, int to)
{
	struct node *n = g->nodes[from];

	if (from < to)
		memmove(&g->nodes[from], &g->nodes[from + 1], (size_t)(to - from) * sizeof(n));
	else
		memmove(&g->nodes[to + 1], &g->nodes[to], (size_t)(from - to) * sizeof(n));
	g->nodes[to] = n;
	renumber_nodes(g, from < to ? from : to, from < to ? to : from);
}

static bool has_after_edge(const struct node *n, const struct node *before)
{
	for (int i = 0; i < n->n_after; i++)
		if (n->after[i] == before)
			return true;
	return false;
}

void node_after(struct graph *g, struct node *n, struct node *before)
{
	struct node **after;

	if (graph_failed(g) || !n || !before || n == before || has_after_edge(n, before))
		return;
	after = graph_array(g, n->n_after, sizeof(struct node *));
	if (n->n_after)
		memcpy(after, n->after, (size_t)n->n_after * sizeof(struct node *));
	after[n->n_after++] = before;
	n->after = after;
	before->awaited = true;
}

static void drop_after_edge(struct node *n, const struct node *before)
{
	int kept = 0;

	for (int i = 0; i < n->n_after; i++)
		if (n->after[i] != before)
			n->after[kept++] = n->after[i];
	n->n_after = kept;
}

/* Nodes that had to run after `gone` run after the previous node of its stream instead. */
static void redirect_after_edges(struct graph *g, const struct node *gone)
{
	struct node *front = NULL;

	for (int i = gone->id - 1; i >= 0 && !front; i--)
		if (g->nodes[i]->stream == gone->stream)
			front = g->nodes[i];
	for (int i = 0; i < g->n_nodes; i++) {
		if (!has_after_edge(g->nodes[i], gone))
			continue;
		drop_after_edge(g->nodes[i], gone);
		node_after(g, g->nodes[i], front);
	}
}

void graph_remove(struct graph *g, int position)
{
	const struct node *n = g->nodes[position];

	if (n->awaited)
		redirect_after_edges(g, n);
	for (int i = 0; i < n->n_out; i++)
		if (n->out[i] && n->out[i]->producer == n)
			n->out[i]->producer = NULL;
	memmove(&g->nodes[position], &g->nodes[position + 1], (size_t)(g->n_nodes - position - 1) * sizeof(n));
	g->n_nodes--;
	renumber_nodes(g, position, g->n_nodes - 1);
}

void graph_spread(struct graph *g, int from, const int *after)
{
	const int tail = g->n_nodes - from;
	struct node **order = graph_array(g, g->n_nodes, sizeof(struct node *));
	int *at = graph_array(g, from, sizeof(*at)); /* first the number of nodes to each position, then their end */

	if (graph_failed(g))
		return;
	for (int j = 0; j < tail; j++)
		at[after[j] + 1]++;
	for (int i = 0, moved = 0; i <= from; i++)
		at[i] = (moved += at[i]) + i;
	for (int i = 0; i < from; i++)
		order[at[i]] = g->nodes[i];
	for (int j = 0; j < tail; j++)
		order[--at[after[j] + 1]] = g->nodes[from + j];
	memcpy(g->nodes, order, (size_t)g->n_nodes * sizeof(struct node *));
	renumber_nodes(g, 0, g->n_nodes - 1);
}

void graph_replace_uses(struct graph *g, struct tensor *old, struct tensor *new_, int from_position)
{
	for (int i = from_position; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++)
			if (g->nodes[i]->in[k] == old)
				g->nodes[i]->in[k] = new_;
}

int *graph_use_counts(struct graph *g)
{
	int *uses = graph_array(g, g->n_tensors, sizeof(*uses));

	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++)
			if (g->nodes[i]->in[k])
				uses[g->nodes[i]->in[k]->id]++;
	return uses;
}

int graph_count_uses(const struct graph *g, const struct tensor *t)
{
	int uses = 0;

	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; k < g->nodes[i]->n_in; k++)
			uses += g->nodes[i]->in[k] == t;
	return uses;
}

struct node *graph_user(const struct graph *g, const struct tensor *t, int op_id)
{
	for (int i = 0; i < g->n_nodes; i++)
		for (int k = 0; g->nodes[i]->op->id == op_id && k < g->nodes[i]->n_in; k++)
			if (g->nodes[i]->in[k] == t)
				return g->nodes[i];
	return NULL;
}

struct tensor *graph_grad_get(struct graph *g, const struct tensor *t)
{
	(void)g;
	return t->grad;
}

void graph_grad_add(struct graph *g, struct tensor *t, struct tensor *grad)
{
	struct tensor *sum = NULL;
	struct node *n;

	if (graph_failed(g) || !grad || !t->wants_grad)
		return;
	if (t->kind == TENSOR_PARAM) {
		grad->kind = TENSOR_GRAD;
		grad->life = LIFE_STEP;
	}
	if (!t->grad) {
		t->grad = grad;
		return;
	}
	if (t->kind == TENSOR_PARAM)
		sum = graph_param_grad(g, t);
	n = graph_node(g, &(struct node_spec){ .op = g->sum,
					       .name = graph_printf(g, "%s.dsum", t->name),
					       NODE_IN(t->grad, grad),
					       NODE_OUT(sum) });
	if (n)
		t->grad = n->out[0];
}

struct tensor *graph_param_grad(struct graph *g, const struct tensor *param)
{
	const char *wanted = graph_printf(g, "%s.grad", param->name);
	struct tensor like = { .kind = TENSOR_GRAD, .dtype = param->dtype, .shape = param->shape, .life = LIFE_STEP };

	like.name = wanted ? pick_free_name(g, wanted) : NULL;
	return like.name ? graph_tensor(g, &like) : NULL;
}
