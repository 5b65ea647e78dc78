/* prepare.h: everything that happens once: a program for every shape that the run will meet, one plan over all, one
 * slab per space. Afterwards nothing is allocated. */
#ifndef DPT_PROGRAM_PREPARE_H
#define DPT_PROGRAM_PREPARE_H

#include "trainer/data/dataset.h"
#include "trainer/data/loader/sampler.h"
#include "trainer/graph/plan.h"
#include "trainer/program/program.h"

#define PROGRAMS_MAX (2 * SAMPLER_SHAPES_MAX)

struct prepared {
	struct program_opts opts;
	struct graph *model; /* every persistent tensor, whole (program_model) */
	struct program *program[PROGRAMS_MAX]; /* training first */
	int n_programs;
	struct plan plan;
	unsigned char *slab[SPACE_COUNT]; /* NULL until prepare_memory */
	size_t slab_bytes[SPACE_COUNT];
	size_t snapshot_bytes;	/* 0: none; room for what this rank holds (trainer/state/snapshot.h) */
	size_t snapshot_offset; /* in the pinned slab */
	size_t loader_bytes[SPLIT_COUNT], loader_offset[SPLIT_COUNT]; /* the same of the loaders' slots */
	size_t feed_offset; /* in the private slab, of prepared_feed */
};

/* Shapes of micro-batches of training and of evaluation; either list may be empty. */
struct prepare_shapes {
	struct micro_shape train[SAMPLER_SHAPES_MAX], eval[SAMPLER_SHAPES_MAX];
	int n_train, n_eval;
	size_t loader_bytes[SPLIT_COUNT]; /* room for the loaders' slots */
	size_t data_bytes;		  /* that reading the set takes beside them */
	bool snapshot; /* plan room for a copy of everything persistent that this rank holds */
};

/* Programs and plan; needs no memory for tensors and (with env.comm NULL) no other ranks. *opts is copied. */
int prepare_programs(struct prepared *ret, const struct program_opts *opts, const struct prepare_shapes *shapes,
		     struct err *err);

int prepare_memory(struct prepared *p, struct err *err); /* slabs, zeroed; collective when there are several ranks */
void prepare_done(struct prepared *p); /* a zeroed struct is fine */

/* NULL: not prepared. */
struct program *prepared_program(const struct prepared *p, enum program_kind kind, int64_t batch);

/* The next persistent tensor of the model; *at begins with 0. NULL: no more. */
const struct tensor *prepared_next(const struct prepared *p, int *at);

/* What this rank's programs have in the place of a tensor of the model; NULL: nothing. */
const struct tensor *prepared_own(const struct prepared *p, const char *name);

/* Whether ranks meet in programs of that kind: then all of them run as many. */
bool prepared_meets(const struct prepared *p, enum program_kind kind);

/* What that rank holds of a tensor of the model. */
struct strategy_part prepared_held(const struct prepared *p, const struct tensor *t, int rank);

/* Whether everything persistent lies at the start of the private slab, whole. */
bool prepared_in_one_piece(const struct prepared *p);

/* Where this rank's part of the model's tensor of that name lies in a snapshot; NULL: behind the last one. */
size_t prepared_copy_at(const struct prepared *p, const char *name);

/* Address of a tensor's memory in the backend (host backends: plain memory). */
void *prepared_address(const struct prepared *p, const struct tensor *t);
void *prepared_slot(const struct prepared *p, const struct tensor *t, int slot); /* the same of a micro-batch slot */

/* Of backends with streams: where the next batch's inputs or targets (t: which of program's) wait for their run; of no
 * program's own. All micro-batches, one behind the other. */
void *prepared_feed(const struct prepared *p, const struct program *program, const struct tensor *t);

/* From or to the slabs, or between them; what of it lies in a file is not kept resident. Complete on return. */
int prepared_copy(const struct prepared *p, void *to, const void *from, size_t bytes, struct err *err);

/* Copies between host and a tensor of one program (persistent ones: trainer/state/tensors.h); complete on return. */
int prepared_put(const struct prepared *p, const struct tensor *t, const void *from, size_t bytes, struct err *err);
int prepared_get(const struct prepared *p, const struct tensor *t, void *to, size_t bytes, struct err *err);

/* Memory of a loader's slots; NULL: none was planned. */
void *prepared_loader(const struct prepared *p, enum split split);

#endif
