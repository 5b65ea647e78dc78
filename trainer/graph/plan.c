/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: lays out one slab per space for a set of programs. Tensors that outlive a program come first, shared by name.
 * The transient memory of each program follows; all programs overlay the same bytes. */
#include "trainer/graph/plan.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"

#include <stdlib.h>

#include "trainer/graph/liveness.h"
#include "trainer/graph/slab.h"

struct peak { /* the moment with the most live bytes */
	size_t bytes;
	size_t by_category[PLAN_CATEGORY_COUNT];
};

struct planner {
	struct plan plan;
	struct plan_program *programs;
	int n;
	bool sizes_only;
	size_t persistent[SPACE_COUNT];		 /* tensors that outlive a program */
	size_t by_category[PLAN_CATEGORY_COUNT]; /* persistent bytes */
	struct peak peak[SPACE_COUNT];		 /* transient bytes of the program with the highest peak */
};

const char *plan_category_name(enum plan_category c)
{
	static const char *const names[] = { "parameters", "masters",	"gradients", "optimizer", "activations",
					     "workspace",  "inputs",	"data",	     "shards",	  "gathered",
					     "buckets",	   "offloaded", "snapshot" };
	_Static_assert(sizeof(names) / sizeof(names[0]) == PLAN_CATEGORY_COUNT, "every category has a name");

	return names[c];
}

/* The category under which the memory report counts a tensor. */
static enum plan_category pick_category(const struct tensor *t)
{
	if (t->space == SPACE_OFFLOAD)
		return PLAN_OFFLOADED;
	switch (t->kind) {
	case TENSOR_PARAM:
		return t->shard.each ? PLAN_SHARDS : t->master ? PLAN_MASTERS : PLAN_PARAMETERS;
	case TENSOR_STAT:
		return PLAN_PARAMETERS;
	case TENSOR_GATHERED:
		return PLAN_GATHERED;
	case TENSOR_BUCKET:
		return PLAN_BUCKETS;
	case TENSOR_GRAD:
		return PLAN_GRADIENTS;
	case TENSOR_MOMENT:
		return PLAN_OPTIMIZER;
	case TENSOR_INPUT:
		return PLAN_INPUTS;
	case TENSOR_ACT:
	case TENSOR_RESULT:
		break;
	}
	return t->copy ? PLAN_PARAMETERS : PLAN_ACTIVATIONS;
}

/* Finds the same tensor in an earlier program; NULL: this program is the first. */
static const struct tensor *find_earlier_tensor(const struct planner *p, int program, const char *name)
{
	const struct tensor *t;

	for (int i = 0; i < program; i++) {
		t = graph_find(p->programs[i].graph, name);
		if (t && lifetime_spans(t->life))
			return t;
	}
	return NULL;
}

static int place_persistent(struct planner *p, int program, struct tensor *t, struct err *err)
{
	const struct tensor *same = find_earlier_tensor(p, program, t->name);

	if (!same) {
		t->offset = p->persistent[t->space];
		p->persistent[t->space] += round_up_bytes(tensor_bytes(t), PLAN_ALIGN_BYTES);
		p->by_category[pick_category(t)] += round_up_bytes(tensor_bytes(t), PLAN_ALIGN_BYTES);
		return 0;
	}
	if (tensor_bytes(same) != tensor_bytes(t) || same->space != t->space)
		return err_set(err, ERR_USAGE, "%s has a different size in program %s than in an earlier one", t->name,
			       p->programs[program].name);
	t->offset = same->offset;
	return 0;
}

/* A tensor that has another kind in an earlier program (an average that evaluation uses as a parameter) is placed with
 * that kind. */
static enum tensor_kind kind_to_place(const struct planner *p, int program, const struct tensor *t)
{
	const struct tensor *same = find_earlier_tensor(p, program, t->name);

	return same ? same->kind : t->kind;
}

/* Orders by kind, so that all parameters, then all statistics, then all moments are contiguous. */
static int place_lifetime(struct planner *p, enum lifetime life, struct err *err)
{
	static const enum tensor_kind order[] = { TENSOR_PARAM,	 TENSOR_STAT,	  TENSOR_MOMENT,
						  TENSOR_INPUT,	 TENSOR_GRAD,	  TENSOR_ACT,
						  TENSOR_RESULT, TENSOR_GATHERED, TENSOR_BUCKET };
	_Static_assert(sizeof(order) / sizeof(order[0]) == TENSOR_KINDS, "every kind has a place");

	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
		for (int i = 0; i < p->n; i++)
			for (int j = 0; j < p->programs[i].graph->n_tensors; j++) {
				struct tensor *t = p->programs[i].graph->tensors[j];

				if (t->life != life || t->base || kind_to_place(p, i, t) != order[k])
					continue;
				if (place_persistent(p, i, t, err) != 0)
					return err->code;
			}
	return 0;
}

/* Finds the peak of one space's buffers. */
static void find_live_peak(const struct liveness *l, enum space space, int moments, struct peak *ret)
{
	size_t *live = mem_array((size_t)moments + 2, sizeof(*live));
	int at = 0;

	for (int i = 0; i < l->n; i++) {
		size_t bytes =
			live_space(&l->buffers[i]) == space ? round_up_bytes(l->buffers[i].bytes, PLAN_ALIGN_BYTES) : 0;

		live[l->buffers[i].first] += bytes;
		live[l->buffers[i].last + 1] -= bytes;
	}
	for (int m = 1; m < moments; m++) {
		live[m] += live[m - 1];
		at = live[m] > live[at] ? m : at;
	}
	ret->bytes = live[at];
	free(live);
	for (int i = 0; i < l->n; i++) {
		const struct live_buffer *b = &l->buffers[i];

		if (live_space(b) == space && b->first <= at && at <= b->last)
			ret->by_category[b->tensor ? pick_category(b->tensor) : PLAN_WORKSPACE] +=
				round_up_bytes(b->bytes, PLAN_ALIGN_BYTES);
	}
}

/* Assigns offsets to one space's buffers. Returns the bytes they need. */
static size_t place_space(struct liveness *l, enum space space, size_t start)
{
	struct slab_range *ranges = mem_array((size_t)l->n, sizeof(*ranges));
	size_t bytes;
	int n = 0;

	for (int i = 0; i < l->n; i++)
		if (live_space(&l->buffers[i]) == space)
			ranges[n++] = (struct slab_range){ .bytes = l->buffers[i].bytes,
							   .first = l->buffers[i].first,
							   .last = l->buffers[i].last };
	bytes = n ? slab_place(ranges, n, PLAN_ALIGN_BYTES, NULL) : 0;
	n = 0;
	for (int i = 0; i < l->n; i++)
		if (live_space(&l->buffers[i]) == space)
			l->buffers[i].offset = start + ranges[n++].offset;
	free(ranges);
	return bytes;
}

static void write_slots(struct graph *g, const struct liveness *l, struct tensor *t, int slots)
{
	const struct live_buffer *b;

	if (slots > 1 && !t->slot_offset)
		t->slot_offset = arena_array(g->arena, (size_t)slots, sizeof(*t->slot_offset));
	for (int s = 0; s < slots; s++) {
		b = live_get(l, t, s);
		if (b && s == 0)
			t->offset = b->offset + t->base_offset;
		if (b && slots > 1)
			t->slot_offset[s] = b->offset + t->base_offset;
	}
}

static void write_workspaces(struct graph *g, const struct liveness *l, int slots)
{
	for (int i = 0; i < l->n; i++) {
		struct node *n = l->buffers[i].node;

		if (!n)
			continue;
		if (slots > 1 && !n->slot_workspace)
			n->slot_workspace = arena_array(g->arena, (size_t)slots, sizeof(*n->slot_workspace));
		if (slots > 1)
			n->slot_workspace[l->buffers[i].slot] = l->buffers[i].offset;
		if (l->buffers[i].slot == 0)
			n->workspace_offset = l->buffers[i].offset;
	}
}

static void write_offsets(const struct plan_program *p, const struct liveness *l)
{
	write_workspaces(p->graph, l, p->schedule->slots);
	for (int i = 0; i < p->graph->n_tensors; i++) {
		struct tensor *t = p->graph->tensors[i];

		if (t->base && lifetime_spans(t->base->life))
			t->offset = t->base->offset + t->base_offset;
		else if (!lifetime_spans(t->life))
			write_slots(p->graph, l, t, p->schedule->slots);
	}
}

/* Places the transient buffers of one program in one space, and updates the slab's size and the peak. */
static void place_program_space(struct planner *p, const struct plan_program *prog, struct liveness *l, enum space s)
{
	struct peak peak = { 0 };
	size_t bytes;

	find_live_peak(l, s, 2 * prog->schedule->n + 1, &peak);
	bytes = p->sizes_only ? peak.bytes : place_space(l, s, p->persistent[s]);
	if (p->persistent[s] + bytes > p->plan.slab_bytes[s])
		p->plan.slab_bytes[s] = p->persistent[s] + bytes;
	if (peak.bytes > p->peak[s].bytes)
		p->peak[s] = peak;
}

static void place_program(struct planner *p, int program)
{
	struct plan_program *prog = &p->programs[program];
	struct liveness l;

	live_make(&l, prog);
	for (int s = 0; s < SPACE_COUNT; s++)
		place_program_space(p, prog, &l, (enum space)s);
	if (!p->sizes_only)
		write_offsets(prog, &l);
	live_done(&l);
}

/* Places persistent tensors, then the transient buffers of each program, and adds up the categories. */
static int run_planner(struct planner *p, struct plan *ret, struct err *err)
{
	int rc = place_lifetime(p, LIFE_PERSISTENT, err);

	p->plan.persistent_bytes = p->persistent[SPACE_PRIVATE];
	if (!rc)
		rc = place_lifetime(p, LIFE_ACROSS, err);
	for (int s = 0; s < SPACE_COUNT; s++)
		p->plan.slab_bytes[s] = p->persistent[s];
	if (rc)
		return rc;
	for (int i = 0; i < p->n; i++)
		place_program(p, i);
	for (int c = 0; c < PLAN_CATEGORY_COUNT; c++) {
		p->plan.category_bytes[c] = p->by_category[c];
		for (int s = 0; s < SPACE_COUNT; s++)
			p->plan.category_bytes[c] += p->peak[s].by_category[c];
		p->plan.lower_bound_bytes += p->plan.category_bytes[c];
	}
	*ret = p->plan;
	return 0;
}

int plan_make(struct plan *ret, struct plan_program *programs, int n_programs, struct err *err)
{
	struct planner p = { .programs = programs, .n = n_programs };
	struct err local = ERR_INIT;

	return run_planner(&p, ret, err ? err : &local);
}

int plan_measure(struct plan *ret, struct plan_program *programs, int n_programs, struct err *err)
{
	struct planner p = { .programs = programs, .n = n_programs, .sizes_only = true };
	struct err local = ERR_INIT;

	return run_planner(&p, ret, err ? err : &local);
}

size_t plan_offset(const struct tensor *t, int slot)
{
	return t->slot_offset ? t->slot_offset[slot] : t->offset;
}

size_t plan_workspace(const struct node *n, int slot)
{
	return n->slot_workspace ? n->slot_workspace[slot] : n->workspace_offset;
}

/* Lists the tensors that reuse a buffer after its first tensor. */
static void dump_sharers(const struct liveness *l, int index, const struct graph *g, struct buf *out)
{
	const struct live_buffer *b = &l->buffers[index];

	for (int t = 0; b->tensor && t < l->n_tensors; t++)
		if (l->of[(size_t)b->slot * (size_t)l->n_tensors + (size_t)t] == index && t != b->tensor->id)
			buf_addf(out, " = %s", g->tensors[t]->name);
}

static void dump_buffers(const struct liveness *l, const struct graph *g, struct buf *out)
{
	static const char *const spaces[SPACE_COUNT] = { "private", "comm", "pinned", "offload" };

	for (int i = 0; i < l->n; i++) {
		const struct live_buffer *b = &l->buffers[i];
		size_t offset = b->tensor ? plan_offset(b->tensor, b->slot) : plan_workspace(b->node, b->slot);

		if (!b->bytes)
			continue;
		buf_addf(out, "  %s %zu+%zu live %d-%d %s%s", spaces[live_space(b)], offset, b->bytes, b->first / 2,
			 b->last / 2, b->tensor ? "" : "workspace of ", b->tensor ? b->tensor->name : b->node->name);
		if (b->slot)
			buf_addf(out, " slot %d", b->slot);
		dump_sharers(l, i, g, out);
		buf_addc(out, '\n');
	}
}

static bool in_earlier(const struct plan_program *programs, int program, const char *name)
{
	for (int i = 0; i < program; i++)
		if (graph_find(programs[i].graph, name))
			return true;
	return false;
}

static void dump_persistent(const struct plan_program *programs, int program, struct buf *out)
{
	const struct graph *g = programs[program].graph;

	for (int i = 0; i < g->n_tensors; i++)
		if (lifetime_spans(g->tensors[i]->life) && !g->tensors[i]->base &&
		    !in_earlier(programs, program, g->tensors[i]->name))
			buf_addf(out, "  persistent %zu+%zu %s\n", g->tensors[i]->offset, tensor_bytes(g->tensors[i]),
				 g->tensors[i]->name);
}

void plan_dump(const struct plan *p, const struct plan_program *programs, int n_programs, struct buf *out)
{
	struct liveness l;

	buf_addf(out, "plan private=%zu comm=%zu pinned=%zu persistent=%zu lower-bound=%zu",
		 p->slab_bytes[SPACE_PRIVATE], p->slab_bytes[SPACE_COMM], p->slab_bytes[SPACE_PINNED],
		 p->persistent_bytes, p->lower_bound_bytes);
	if (p->slab_bytes[SPACE_OFFLOAD])
		buf_addf(out, " offload=%zu", p->slab_bytes[SPACE_OFFLOAD]);
	buf_addc(out, '\n');
	for (int c = 0; c < PLAN_CATEGORY_COUNT; c++)
		if ((c <= PLAN_INPUTS && c != PLAN_MASTERS) || p->category_bytes[c])
			buf_addf(out, "%s%s=%zu", c ? " " : "", plan_category_name((enum plan_category)c),
				 p->category_bytes[c]);
	buf_addc(out, '\n');
	for (int i = 0; i < n_programs; i++) {
		buf_addf(out, "program %s: %d items, %d slots\n", programs[i].name, programs[i].schedule->n,
			 programs[i].schedule->slots);
		dump_persistent(programs, i, out);
		live_make(&l, &programs[i]);
		dump_buffers(&l, programs[i].graph, out);
		live_done(&l);
	}
}
