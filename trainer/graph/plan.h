/* plan.h: gives every tensor of a set of scheduled programs a byte range in one slab per space. Persistent tensors are
 * shared by all programs (same name, same bytes); what a program needs during a step overlaps with what the others
 * need. Works from lifetimes alone, without any kernel; same input, same output. */
#ifndef DPT_GRAPH_PLAN_H
#define DPT_GRAPH_PLAN_H

#include "trainer/graph/schedule.h"

#define PLAN_ALIGN_BYTES 64u

enum plan_category {
	PLAN_PARAMETERS,
	PLAN_GRADIENTS,
	PLAN_OPTIMIZER,
	PLAN_ACTIVATIONS,
	PLAN_WORKSPACE,
	PLAN_INPUTS,
	PLAN_DATA,     /* what reading the set holds, in none of the slabs */
	PLAN_SHARDS,   /* ranges of parameters that other ranks hold the rest of */
	PLAN_GATHERED, /* parameters of all ranks, to be read */
	PLAN_BUCKETS,  /* gradients on their way to the ranks that hold them */
	PLAN_OFFLOADED, /* what is copied from and to SPACE_OFFLOAD */
	PLAN_SNAPSHOT, /* room for a copy of everything persistent, to be saved while training goes on */
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
	size_t persistent_bytes;                      /* at the start of the private slab */
	/* of each space at its peak in the program that needs most of it */
	size_t category_bytes[PLAN_CATEGORY_COUNT];
	size_t lower_bound_bytes;                     /* their sum: no placement needs less */
	size_t data_bytes; /* of PLAN_DATA; set by the caller */
	size_t shm_usage_bytes; /* of other ranks' SPACE_COMM on this machine, that are touched; set by the caller */
	bool offload_in_file; /* the bytes of SPACE_OFFLOAD are none of the machine's memory; set by the caller */
};

/* Writes ->offset of every tensor and ->workspace_offset of every node, and the same of every slot. */
int plan_make(struct plan *ret, struct plan_program *programs, int n_programs, struct err *err);

size_t plan_offset(const struct tensor *t, int slot); /* in the slab of its space */
size_t plan_workspace(const struct node *n, int slot);

void plan_dump(const struct plan *p, const struct plan_program *programs, int n_programs, struct buf *out);

#endif
