/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h: loads parameters and statistics of a graph from safetensors files and saves them. Names and shapes in
 * files are torchvision's and Hugging Face's (weight_layout.h). Callbacks access the memory, which may be on a
 * device. */
#ifndef DPT_WEIGHTS_WEIGHTS_H
#define DPT_WEIGHTS_WEIGHTS_H

#include "trainer/graph/graph.h"
#include "trainer/weights/safetensors.h"

struct weights_part_of {
	int64_t begin, end; /* elements */
	void *data;
};

struct weights_access {
	/* data: in t's type (f64 or f32) and storage order. get fills tensor_bytes(t) bytes; put receives large tensors
	 * in several consecutive parts. */
	int (*put)(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err);
	int (*get)(void *user, const struct tensor *t, void *data, struct err *err);
	void *user;
	/* Optional, in addition to get: fills elements [begin, end) of t. Large tensors are then fetched in parts if
	 * files have them in the graph's layout. */
	int (*get_part)(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err);
	/* Optional, replaces get: returns the address of t's bytes in host memory. */
	const void *(*peek)(void *user, const struct tensor *t);
};

/* Returns true for the parameters of a LoRA adapter, which have a file of their own. */
bool weights_is_adapter(const struct tensor *t);

enum weights_part {
	WEIGHTS_MODEL,	 /* every TENSOR_PARAM and TENSOR_STAT, without an adapter's */
	WEIGHTS_ADAPTER, /* those of an adapter */
	WEIGHTS_STATE,	 /* all other persistent tensors: the optimiser's moments, averages of weights */
};

struct weights_load_opts {
	const char *path;
	enum weights_part part;
	const char *skip; /* tensors whose names have this prefix stay unchanged; NULL: none */
	const char *head; /* prefix of the tensors that --reset-head skips, for the message; NULL: none */
	bool evaluates;	  /* --test-only, for the message */
};

/* Loads every tensor of the part. Converts F64, F32, F16 and BF16; ignores names of layout_ignorable. Missing or
 * unexpected names and other shapes: ERR_USAGE with the first name and the number of each; then put is not called. */
int weights_load(const struct graph *g, const struct weights_load_opts *o, const struct weights_access *a,
		 struct err *err);
/* Makes the same checks without loading. */
int weights_check(const struct graph *g, const struct weights_load_opts *o, struct err *err);

/* Writes every tensor of the part, in its own type unless `converts`, in the graph's order. */
struct weights_save_opts {
	const char *path;
	enum weights_part part;
	const struct st_meta *meta;
	size_t n_meta;
	struct st_sum *ret_sum; /* of the file; may be NULL */
	enum dtype as;		/* with converts: the type of every tensor in the file */
	bool converts;
};

int weights_save(const struct graph *g, const struct weights_save_opts *o, const struct weights_access *a,
		 struct err *err);

#endif
