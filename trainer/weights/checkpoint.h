/* checkpoint.h: everything that a run needs to go on, as a folder <run folder>/checkpoints/step-<S>/:
 *
 *	model.safetensors      parameters and statistics, named and shaped as in any weights file
 *	optimizer.safetensors  everything else that lives as long as the run, by tensor name
 *	state.json             where the run stands, its configuration, sizes and CRC-32C of the two files, its own
 * CRC-32C
 *
 * Tensors are whole, unpadded and in the type that the run keeps them in, so that any number of ranks can read them. A
 * folder is written under a hidden name, made durable and renamed: it is whole or not there. Knows nothing of ranks,
 * threads and what the configuration means. */
#ifndef DPT_WEIGHTS_CHECKPOINT_H
#define DPT_WEIGHTS_CHECKPOINT_H

#include <stdbool.h>

#include "trainer/weights/weights.h"

#define CHECKPOINT_MODEL "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define CHECKPOINT_VALUES 8

/* A number of the run's that lies in no tensor, by name. */
struct checkpoint_value {
	char name[32]; /* "" behind the last one */
	double value;
};

struct checkpoint_state { /* no pointers: ranks send it to each other */
	char run_id[33];
	char model[64];
	char data_hash[64]; /* "" unknown */
	int segment;	    /* that wrote it */
	int world;	    /* ranks that wrote it; for people */
	int64_t global_batch;
	uint64_t seed;
	int64_t step;	     /* optimiser steps done */
	int64_t epoch;	     /* from 0: of the next batch */
	int64_t in_epoch;    /* batches of that epoch that are done */
	bool epoch_is_open;  /* the sums below count; also when only the evaluation at its end is missing */
	bool evaluation_is_open; /* of --eval-steps, due after this step, is missing */
	double loss_sum;     /* over the epoch's samples so far */
	int64_t samples;
	double seconds;	     /* of training in that epoch */
	bool has_best;
	double best;	     /* of the metric that chooses the best checkpoint */
	int64_t best_step;
	struct checkpoint_value value[CHECKPOINT_VALUES];
};

struct checkpoint_write_opts {
	const char *folder; /* "<run folder>/checkpoints"; made when absent */
	const struct checkpoint_state *state;
	const struct st_meta *config; /* names and values of the configuration */
	size_t n_config;
	const struct st_meta *kernels; /* what was chosen by the clock, and its choices */
	size_t n_kernels;
	const struct st_meta *meta; /* of the model's file */
	size_t n_meta;
	const struct graph *graph;
	const struct weights_access *access; /* only get is used */
	void (*ready)(void *user); /* optional: called when all is written, before it gets its name */
	void *user;
};

/* On failure nothing is left behind and older checkpoints are as they were. A checkpoint of the same step is replaced
 * in one move. */
int checkpoint_write(const struct checkpoint_write_opts *o, struct err *err);

struct checkpoint; /* an opened one */

/* Reads state.json. ERR_USAGE, one line with path and reason, when it is missing, damaged or of another format. */
int checkpoint_open(struct checkpoint **ret, const char *path, struct err *err);
void checkpoint_close(struct checkpoint *c); /* NULL is fine */
const struct checkpoint_state *checkpoint_state(const struct checkpoint *c);
const char *checkpoint_config(const struct checkpoint *c, const char *name); /* NULL: not recorded */
/* Calls fn for each of the kernels that were written. */
void checkpoint_kernels(const struct checkpoint *c, void (*fn)(void *user, const char *key, const char *name),
			void *user);

/* Whether the files are as they were written, and hold what g wants: of a graph without training the model alone.
 * Reads them whole. */
int checkpoint_verify(const struct checkpoint *c, const struct graph *g, struct err *err);

/* Whether the weights of the folder are as its state.json says; a folder without one (others' weights) is as it is. */
int checkpoint_verify_model(const char *folder, struct err *err);

/* Puts every persistent tensor of g. */
int checkpoint_load(const struct checkpoint *c, const struct graph *g, const struct weights_access *a, struct err *err);

struct checkpoint_entry {
	int64_t step;
	int segment; /* -1: state.json cannot be read */
};

/* The checkpoints in a folder: unreadable ones, then the others, newest first (by segment, then by step). *ret is the
 * caller's to free; no folder is an empty list. */
int checkpoint_list(struct checkpoint_entry **ret, size_t *ret_n, const char *folder, struct err *err);

int checkpoint_path(char *ret, size_t n, const char *folder, int64_t step, struct err *err);
int checkpoint_remove(const char *folder, int64_t step, struct err *err);

/* Removes what interrupted writers left. Only the folder's one writer may. */
void checkpoint_sweep(const char *folder);

#endif
