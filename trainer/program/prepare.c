/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c: programs, plan and slabs; a slab in a file without a name, whose unused pages are not resident and which
 * disappears with the process. */
#include "trainer/program/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "tracker/base/file.h"
#include "tracker/base/log.h"
#include "tracker/base/round.h"
#include "trainer/ops/copy/copy.h"

/* ---- a slab in a file ---- */

static void warn_of_memory(int fd, const char *dir)
{
	struct statfs s;

	if (fstatfs(fd, &s) == 0 && (s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC))
		log_warn("--offload-dir %s: is in memory itself (tmpfs), so no memory is saved", dir);
}

/* Maps zeroed bytes of a new file in the folder and reserves its room. ERR_USAGE when the folder is not writable or has
 * no such room. */
static int slab_file_open(void **ret, const char *dir, size_t bytes, struct err *err)
{
	int fd = file_nameless(dir), rc;
	void *at;

	if (fd < 0)
		return err_set(err, ERR_USAGE, "--offload-dir %s: cannot create a file there: %s", dir,
			       strerror(errno));
	warn_of_memory(fd, dir);
	rc = posix_fallocate(fd, 0, (off_t)bytes);
	if (rc) {
		close(fd);
		return err_set(err, ERR_USAGE, "--offload-dir %s: no room for %.0f MiB there: %s", dir,
			       (double)bytes / 1048576.0, strerror(rc));
	}
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = errno;
	close(fd);
	if (at == MAP_FAILED)
		return err_set_errno(err, rc, "--offload-dir %s: cannot map %.0f MiB", dir, (double)bytes / 1048576.0);
	*ret = at;
	return 0;
}

static void slab_file_close(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

/* ---- programs ---- */

struct program *prepared_program(const struct prepared *p, enum program_kind kind, int64_t batch)
{
	for (int i = 0; i < p->n_programs; i++)
		if (p->program[i]->kind == kind && p->program[i]->batch == batch)
			return p->program[i];
	return NULL;
}

static int prepare_program(struct prepared *p, int64_t batch, enum program_kind kind, struct err *err)
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

/* Reserves room in the pinned slab; returns its offset. */
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

bool prepared_in_one_piece(const struct prepared *p)
{
	return !p->opts.strategy->holds && !p->opts.offload.params && !p->opts.offload.optimizer;
}

/* Tensors in one piece at the start of the private slab are copied in the same order. */
size_t prepared_copy_at(const struct prepared *p, const char *name)
{
	const struct tensor *t;
	size_t bytes = 0;
	int at = 0;

	if (prepared_in_one_piece(p))
		return name ? prepared_own(p, name)->offset : p->plan.persistent_bytes;
	while ((t = prepared_next(p, &at)) && !(name && !strcmp(t->name, name))) {
		struct strategy_part held = prepared_held(p, t, p->opts.sharing.rank);

		bytes += round_up_bytes((size_t)(held.end - held.begin) * dtype_bytes(t->dtype), PLAN_ALIGN_BYTES);
	}
	return bytes;
}

static void plan_pinned(struct prepared *p, const struct prepare_shapes *shapes)
{
	for (int s = 0; s < SPLIT_COUNT; s++) {
		p->loader_bytes[s] = round_up_bytes(shapes->loader_bytes[s], PLAN_ALIGN_BYTES);
		p->loader_offset[s] = add_pinned(p, p->loader_bytes[s], PLAN_INPUTS);
	}
	p->plan.data_bytes = shapes->data_bytes;
	p->plan.category_bytes[PLAN_DATA] = shapes->data_bytes;
	p->plan.lower_bound_bytes += shapes->data_bytes;
	if (!shapes->snapshot)
		return;
	p->snapshot_bytes = prepared_copy_at(p, NULL);
	p->snapshot_offset = add_pinned(p, p->snapshot_bytes, PLAN_SNAPSHOT);
}

/* Returns the bytes of all micro-batches of a batch's inputs or targets, rounded up. */
static size_t fed_bytes(const struct program *p, const struct tensor *t)
{
	return round_up_bytes((size_t)p->schedule.slots * tensor_bytes(t), PLAN_ALIGN_BYTES);
}

/* On devices the next batch arrives while the program of the last one runs, which uses all other memory. */
static void plan_feed(struct prepared *p)
{
	size_t most = 0;

	for (int i = 0; p->opts.backend->streams && i < p->n_programs; i++) {
		const struct program *q = p->program[i];
		const size_t bytes = fed_bytes(q, q->inputs) + fed_bytes(q, q->targets);

		most = bytes > most ? bytes : most;
	}
	p->feed_offset = round_up_bytes(p->plan.slab_bytes[SPACE_PRIVATE], PLAN_ALIGN_BYTES);
	p->plan.slab_bytes[SPACE_PRIVATE] = most ? p->feed_offset + most : p->plan.slab_bytes[SPACE_PRIVATE];
	p->plan.category_bytes[PLAN_INPUTS] += most;
	p->plan.lower_bound_bytes += most;
}

static int build_whole_model(struct prepared *p, const struct prepare_shapes *shapes, struct err *err)
{
	int rc = 0;

	p->model = p->opts.known_model;
	if (!p->model)
		rc = program_model(&p->model, &p->opts, 1, shapes->n_train ? PROGRAM_STEP : PROGRAM_EVAL, err);
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
	rc = build_whole_model(ret, shapes, err);
	for (int i = 0; !rc && i < shapes->n_train; i++)
		rc = prepare_program(ret, shapes->train[i].size, shapes->train[i].last ? PROGRAM_STEP : PROGRAM_MICRO,
				     err);
	for (int i = 0; !rc && i < shapes->n_eval; i++)
		rc = prepare_program(ret, shapes->eval[i].size, PROGRAM_EVAL, err);
	if (opts->module && opts->backend->settled)
		opts->backend->settled(opts->module);
	for (int i = 0; i < ret->n_programs; i++)
		list[i] = (struct plan_program){ ret->program[i]->name, ret->program[i]->graph,
						 &ret->program[i]->schedule };
	if (!rc)
		rc = (opts->sizes_only ? plan_measure : plan_make)(&ret->plan, list, ret->n_programs, err);
	ret->plan.offload_in_file = opts->offload.file;
	if (!rc)
		plan_feed(ret);
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

void *prepared_feed(const struct prepared *p, const struct program *program, const struct tensor *t)
{
	const size_t at = t == program->targets ? fed_bytes(program, program->inputs) : 0;

	return p->slab[SPACE_PRIVATE] + p->feed_offset + at;
}

static void release_file_pages(const struct prepared *p, const void *at, size_t bytes)
{
	unsigned char *slab = p->slab[SPACE_OFFLOAD];
	const size_t offset = (uintptr_t)at - (uintptr_t)slab;

	if (p->opts.offload.file && slab && offset < p->plan.slab_bytes[SPACE_OFFLOAD])
		copy_give_back(slab + offset, bytes);
}

int prepared_copy(const struct prepared *p, void *to, const void *from, size_t bytes, struct err *err)
{
	int rc = 0;

	for (size_t at = 0, piece; !rc && at < bytes; at += piece) {
		unsigned char *t = (unsigned char *)to + at;
		const unsigned char *f = (const unsigned char *)from + at;

		piece = p->opts.offload.file && bytes - at > COPY_PIECE_BYTES ? COPY_PIECE_BYTES : bytes - at;
		rc = p->opts.backend->copy(p->opts.module, t, f, piece, err);
		release_file_pages(p, t, piece);
		release_file_pages(p, f, piece);
	}
	return rc;
}

int prepared_put(const struct prepared *p, const struct tensor *t, const void *from, size_t bytes, struct err *err)
{
	return prepared_copy(p, prepared_address(p, t), from, bytes, err);
}

int prepared_get(const struct prepared *p, const struct tensor *t, void *to, size_t bytes, struct err *err)
{
	return prepared_copy(p, to, prepared_address(p, t), bytes, err);
}

void *prepared_loader(const struct prepared *p, enum split split)
{
	return p->loader_bytes[split] ? p->slab[SPACE_PINNED] + p->loader_offset[split] : NULL;
}

/* The system allocates pages when they are touched. Touching them now keeps the first copy, or a new slot of --workers
 * auto, from delaying a step, and memory that other processes have taken is missed at the start. */
static void touch_pinned(struct prepared *p, size_t offset, size_t bytes)
{
	if (bytes)
		memset(p->slab[SPACE_PINNED] + offset, 0, bytes);
}

/* Returns the space that the backend knows. */
static enum space backend_space(enum space s)
{
	return s == SPACE_OFFLOAD ? SPACE_PINNED : s;
}

static bool is_file_slab(const struct prepared *p, enum space s)
{
	return s == SPACE_OFFLOAD && p->opts.offload_dir;
}

static int open_slab(struct prepared *p, enum space s, struct err *err)
{
	const struct program_opts *o = &p->opts;
	const size_t bytes = p->plan.slab_bytes[s];
	void *memory = NULL;
	int rc = 0;

	if (s == SPACE_COMM && o->comm && !o->backend->streams) {
		rc = o->comm->ops->alloc(o->comm, bytes, &memory, err);
	} else if (bytes) {
		rc = is_file_slab(p, s) ? slab_file_open(&memory, o->offload_dir, bytes, err)
					: o->backend->alloc(o->module, backend_space(s), bytes, &memory, err);
		p->slab_bytes[s] = rc ? 0 : bytes; /* released by prepare_done */
	}
	if (!rc)
		p->slab[s] = memory;
	return rc;
}

int prepare_memory(struct prepared *p, struct err *err)
{
	for (int s = 0; s < SPACE_COUNT; s++) {
		int rc = open_slab(p, (enum space)s, err);

		if (rc)
			return rc;
	}
	for (int s = 0; s < SPLIT_COUNT; s++)
		touch_pinned(p, p->loader_offset[s], p->loader_bytes[s]);
	touch_pinned(p, p->snapshot_offset, p->snapshot_bytes);
	return 0;
}

void prepare_done(struct prepared *p)
{
	for (int i = 0; i < p->n_programs; i++)
		program_free(p->program[i], &p->opts);
	p->n_programs = 0;
	if (p->model != p->opts.known_model)
		graph_free(p->model);
	p->model = NULL;
	for (int s = 0; s < SPACE_COUNT; s++)
		if (is_file_slab(p, (enum space)s))
			slab_file_close(p->slab[s], p->slab_bytes[s]);
		else if (p->slab[s] && p->slab_bytes[s])
			p->opts.backend->release(p->opts.module, backend_space((enum space)s), p->slab[s],
						 p->slab_bytes[s]);
	memset(p->slab, 0, sizeof(p->slab));
}
