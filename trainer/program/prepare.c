/* prepare.c: programs, plan and slabs. */
#include "trainer/program/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/graph/slab.h"

struct program *prepared_program(const struct prepared *p, enum program_kind kind, int64_t batch)
{
	for (int i = 0; i < p->n_programs; i++)
		if (p->program[i]->kind == kind && p->program[i]->batch == batch)
			return p->program[i];
	return NULL;
}

static int add_program(struct prepared *p, int64_t batch, enum program_kind kind, struct err *err)
{
	int rc;

	if (prepared_program(p, kind, batch))
		return 0;
	if (p->n_programs == PROGRAMS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d batch sizes in one run", PROGRAMS_MAX);
	rc = program_new(&p->program[p->n_programs], &p->opts, batch, kind, err);
	if (!rc)
		p->n_programs++;
	return rc;
}

/* Room in the pinned slab; returns where. */
static size_t add_pinned(struct prepared *p, size_t bytes, enum plan_category category)
{
	size_t offset = p->plan.slab_bytes[SPACE_PINNED];

	p->plan.slab_bytes[SPACE_PINNED] += bytes;
	p->plan.category_bytes[category] += bytes;
	p->plan.lower_bound_bytes += bytes;
	return offset;
}

struct strategy_part prepared_held(const struct prepared *p, const struct tensor *t, int rank)
{
	const struct strategy *s = p->opts.strategy;

	return s->holds ? s->holds(t, &p->opts.sharing, rank) : (struct strategy_part){ 0, shape_count(&t->shape) };
}

/* With a strategy that gives every rank everything, that lies at the start of the private slab, and its copy is in the
 * same order. */
size_t prepared_copy_at(const struct prepared *p, const char *name)
{
	const struct tensor *t;
	size_t bytes = 0;
	int at = 0;

	if (!p->opts.strategy->holds)
		return name ? prepared_own(p, name)->offset : p->plan.persistent_bytes;
	while ((t = prepared_next(p, &at)) && !(name && !strcmp(t->name, name))) {
		struct strategy_part held = prepared_held(p, t, p->opts.sharing.rank);

		bytes += slab_align((size_t)(held.end - held.begin) * dtype_bytes(t->dtype), PLAN_ALIGN_BYTES);
	}
	return bytes;
}

static void plan_pinned(struct prepared *p, const struct prepare_shapes *shapes)
{
	for (int s = 0; s < SPLIT_COUNT; s++) {
		p->loader_bytes[s] = slab_align(shapes->loader_bytes[s], PLAN_ALIGN_BYTES);
		p->loader_offset[s] = add_pinned(p, p->loader_bytes[s], PLAN_INPUTS);
	}
	if (!shapes->snapshot)
		return;
	p->snapshot_bytes = prepared_copy_at(p, NULL);
	p->snapshot_offset = add_pinned(p, p->snapshot_bytes, PLAN_SNAPSHOT);
}

static int make_model(struct prepared *p, const struct prepare_shapes *shapes, struct err *err)
{
	int rc = program_model(&p->model, &p->opts, 1, shapes->n_train ? PROGRAM_STEP : PROGRAM_EVAL, err);

	p->opts.sharing.model = p->model;
	return rc;
}

int prepare_programs(struct prepared *ret, const struct program_opts *opts, const struct prepare_shapes *shapes,
		     struct err *err)
{
	struct plan_program list[PROGRAMS_MAX];
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	ret->opts = *opts;
	for (int i = 0; i < shapes->n_train; i++)
		ret->opts.accumulate |= !shapes->train[i].last;
	rc = make_model(ret, shapes, err);
	for (int i = 0; !rc && i < shapes->n_train; i++)
		rc = add_program(ret, shapes->train[i].size, shapes->train[i].last ? PROGRAM_STEP : PROGRAM_MICRO, err);
	for (int i = 0; !rc && i < shapes->n_eval; i++)
		rc = add_program(ret, shapes->eval[i].size, PROGRAM_EVAL, err);
	for (int i = 0; i < ret->n_programs; i++)
		list[i] = (struct plan_program){ ret->program[i]->name, ret->program[i]->graph,
						 &ret->program[i]->schedule };
	if (!rc)
		rc = plan_make(&ret->plan, list, ret->n_programs, err);
	if (!rc)
		plan_pinned(ret, shapes);
	if (rc)
		prepare_done(ret);
	return rc;
}

const struct tensor *prepared_next(const struct prepared *p, int *at)
{
	while (*at < p->model->n_tensors) {
		const struct tensor *t = p->model->tensors[(*at)++];

		if (t->life == LIFE_PERSISTENT)
			return t;
	}
	return NULL;
}

const struct tensor *prepared_own(const struct prepared *p, const char *name)
{
	const struct tensor *t = NULL;

	for (int i = 0; !t && i < p->n_programs; i++)
		t = graph_find(p->program[i]->graph, name);
	return t;
}

bool prepared_meets(const struct prepared *p, enum program_kind kind)
{
	for (int i = 0; i < p->n_programs; i++)
		for (int k = 0; p->program[i]->kind == kind && k < p->program[i]->schedule.n; k++)
			if (p->program[i]->schedule.items[k].node->op->collective)
				return true;
	return false;
}

void *prepared_address(const struct prepared *p, const struct tensor *t)
{
	return prepared_slot(p, t, 0);
}

void *prepared_slot(const struct prepared *p, const struct tensor *t, int slot)
{
	return t ? p->slab[t->space] + plan_offset(t, slot) : NULL;
}

int prepared_put(const struct prepared *p, const struct tensor *t, const void *from, size_t bytes, struct err *err)
{
	return p->opts.backend->copy(p->opts.module, prepared_address(p, t), from, bytes, err);
}

int prepared_get(const struct prepared *p, const struct tensor *t, void *to, size_t bytes, struct err *err)
{
	return p->opts.backend->copy(p->opts.module, to, prepared_address(p, t), bytes, err);
}

void *prepared_loader(const struct prepared *p, enum split split)
{
	return p->loader_bytes[split] ? p->slab[SPACE_PINNED] + p->loader_offset[split] : NULL;
}

/* The system gives pages when they are touched: now, not while the first copy holds up a step or when --workers auto
 * first tries more slots, and memory that others have taken meanwhile is missed at the start. */
static void touch(struct prepared *p, size_t offset, size_t bytes)
{
	if (bytes)
		memset(p->slab[SPACE_PINNED] + offset, 0, bytes);
}

int prepare_memory(struct prepared *p, struct err *err)
{
	for (int s = 0; s < SPACE_COUNT; s++) {
		void *memory;
		int rc;

		if (s == SPACE_COMM && p->opts.comm && !p->opts.backend->streams) {
			rc = p->opts.comm->ops->alloc(p->opts.comm, p->plan.slab_bytes[s], &memory, err);
			if (rc)
				return rc;
			p->slab[s] = memory;
			continue;
		}
		if (!p->plan.slab_bytes[s])
			continue;
		rc = p->opts.backend->alloc(p->opts.module, (enum space)s, p->plan.slab_bytes[s], &memory, err);
		if (rc)
			return rc;
		p->slab[s] = memory;
		p->slab_bytes[s] = p->plan.slab_bytes[s]; /* ours to release */
	}
	for (int s = 0; s < SPLIT_COUNT; s++)
		touch(p, p->loader_offset[s], p->loader_bytes[s]);
	touch(p, p->snapshot_offset, p->snapshot_bytes);
	return 0;
}

void prepare_done(struct prepared *p)
{
	for (int i = 0; i < p->n_programs; i++)
		program_free(p->program[i], &p->opts);
	p->n_programs = 0;
	graph_free(p->model);
	p->model = NULL;
	for (int s = 0; s < SPACE_COUNT; s++)
		if (p->slab[s] && p->slab_bytes[s])
			p->opts.backend->release(p->opts.module, (enum space)s, p->slab[s], p->slab_bytes[s]);
	memset(p->slab, 0, sizeof(p->slab));
}
