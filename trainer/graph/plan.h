/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: assigns every tensor of a set of scheduled programs a byte range in one slab per space. All programs share
 * persistent tensors (same name, same bytes); their transient memory overlaps. Uses lifetimes alone, no kernels. The
 * same input gives the same output. */
#ifndef DPT_GRAPH_PLAN_H
#define DPT_GRAPH_PLAN_H

#include "trainer/graph/schedule.h"

#define PLAN_ALIGN_BYTES 64u

enum plan_category {
	PLAN_PARAMETERS,
	PLAN_MASTERS, /* fp32 parameters of which the model reads fp16 copies; those are PLAN_PARAMETERS */
	PLAN_GRADIENTS,
	PLAN_OPTIMIZER,
	PLAN_ACTIVATIONS,
	PLAN_WORKSPACE,
	PLAN_INPUTS,
	PLAN_DATA,	/* memory of the data loader, in none of the slabs */
	PLAN_SHARDS,	/* this rank's ranges of sharded parameters */
	PLAN_GATHERED,	/* gathered parameters of all ranks */
	PLAN_BUCKETS,	/* gradients before they are reduced to their owners */
	PLAN_OFFLOADED, /* tensors in SPACE_OFFLOAD */
	PLAN_SNAPSHOT,	/* a copy of all persistent tensors, saved while training continues */
	PLAN_CATEGORY_COUNT
};

const char *plan_category_name(enum plan_category c);

struct plan_program {
	const char *name; /* "train-128", "eval-16": for dumps */
	struct graph *graph;
	const struct schedule *schedule;
};

struct plan {
	size_t slab_bytes[SPACE_COUNT];
	size_t persistent_bytes; /* at the start of the private slab */
	/* at each space's peak, in the program with the highest peak */
	size_t category_bytes[PLAN_CATEGORY_COUNT];
	size_t lower_bound_bytes; /* sum of the categories: no placement needs less */
	size_t data_bytes;	  /* of PLAN_DATA; set by the caller */
	bool offload_in_file;	  /* SPACE_OFFLOAD is a file and uses no memory; set by the caller */
};

/* Writes ->offset of every tensor and ->workspace_offset of every node, and those of every slot. */
int plan_make(struct plan *ret, struct plan_program *programs, int n_programs, struct err *err);

/* Computes sizes alone, in a fraction of the time: slabs are as large as their lower bound, and nothing has offsets.
 * All other sizes are those of plan_make. */
int plan_measure(struct plan *ret, struct plan_program *programs, int n_programs, struct err *err);

size_t plan_offset(const struct tensor *t, int slot); /* in the slab of its space */
size_t plan_workspace(const struct node *n, int slot);

void plan_dump(const struct plan *p, const struct plan_program *programs, int n_programs, struct buf *out);

#endif
