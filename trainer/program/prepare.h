/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.h: all set-up that happens once: a program for every shape of the run, one plan over all, one slab for each
 * space. Nothing is allocated afterwards. */
#ifndef DPT_PROGRAM_PREPARE_H
#define DPT_PROGRAM_PREPARE_H

#include "trainer/data/loader/sampler.h"
#include "trainer/graph/plan.h"
#include "trainer/program/program.h"

#define PROGRAMS_MAX (2 * SAMPLER_SHAPES_MAX)

struct prepared {
	struct program_opts opts;
	struct graph *model; /* has every persistent tensor, whole (program_model); borrowed if opts.known_model */
	struct program *program[PROGRAMS_MAX]; /* training programs first */
	int n_programs;
	struct plan plan;
	unsigned char *slab[SPACE_COUNT]; /* NULL until prepare_memory */
	size_t slab_bytes[SPACE_COUNT];
	size_t snapshot_bytes;	/* room for the part that this rank owns (trainer/state/tensors.h); 0: none */
	size_t snapshot_offset; /* in the pinned slab */
	size_t loader_bytes[SPLIT_COUNT], loader_offset[SPLIT_COUNT]; /* the same for the loaders' slots */
	size_t feed_offset;					      /* offset of prepared_feed in the private slab */
};

/* Shapes of micro-batches of training and of evaluation; either list may be empty. */
struct prepare_shapes {
	struct micro_shape train[SAMPLER_SHAPES_MAX], eval[SAMPLER_SHAPES_MAX];
	int n_train, n_eval;
	size_t loader_bytes[SPLIT_COUNT]; /* room for the loaders' slots */
	size_t data_bytes;		  /* memory that reading the set needs besides them */
	bool snapshot;			  /* reserve room for a copy of all persistent tensors that this rank owns */
};

/* Makes programs and plan; needs no memory for tensors and (with env.comm NULL) no other ranks. *opts is copied. */
int prepare_programs(struct prepared *ret, const struct program_opts *opts, const struct prepare_shapes *shapes,
		     struct err *err);

/* allocates the slabs, zeroed; collective with several ranks */
int prepare_memory(struct prepared *p, struct err *err);
void prepare_done(struct prepared *p); /* accepts a zeroed struct */

/* Finds the program; NULL: none was prepared. */
struct program *prepared_program(const struct prepared *p, enum program_kind kind, int64_t batch);

/* Returns the next persistent tensor of the model; *at begins with 0. NULL: no more. */
const struct tensor *prepared_next(const struct prepared *p, int *at);

/* Returns the tensor of this rank's programs for a tensor of the model; NULL: none. */
const struct tensor *prepared_own(const struct prepared *p, const char *name);

/* Returns true if programs of that kind have collectives: then all ranks run equally many. */
bool prepared_meets(const struct prepared *p, enum program_kind kind);

/* Returns the part of a tensor of the model that the rank owns. */
struct strategy_part prepared_held(const struct prepared *p, const struct tensor *t, int rank);

/* Returns true if all persistent tensors are whole and at the start of the private slab. */
bool prepared_in_one_piece(const struct prepared *p);

/* Returns the offset in a snapshot of this rank's part of the model's tensor; NULL: the end. */
size_t prepared_copy_at(const struct prepared *p, const char *name);

/* Returns the address of a tensor in the backend (host backends: plain memory). */
void *prepared_address(const struct prepared *p, const struct tensor *t);
void *prepared_slot(const struct prepared *p, const struct tensor *t, int slot); /* the same for a micro-batch slot */

/* Backends with streams: returns where the next batch's inputs or targets (t: which of program's) wait for their run,
 * outside of all programs' memory. All micro-batches, one after another. */
void *prepared_feed(const struct prepared *p, const struct program *program, const struct tensor *t);

/* Copies from, to or between slabs; pages of the offload file are not kept resident. Complete on return. */
int prepared_copy(const struct prepared *p, void *to, const void *from, size_t bytes, struct err *err);

/* Copies between host and a tensor of one program (persistent ones: trainer/state/tensors.h); complete on return. */
int prepared_put(const struct prepared *p, const struct tensor *t, const void *from, size_t bytes, struct err *err);
int prepared_get(const struct prepared *p, const struct tensor *t, void *to, size_t bytes, struct err *err);

/* Returns the memory of a loader's slots; NULL: none was planned. */
void *prepared_loader(const struct prepared *p, enum split split);

#endif
