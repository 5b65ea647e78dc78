/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.h: everything needed to resume a run, as a folder <run folder>/checkpoints/step-<S>/:
 *
 *	model.safetensors      parameters and statistics, with names and shapes of weights files
 *	config.json            of a GPT, for Hugging Face's transformers
 *	adapter/               with LoRA, instead of both: the adapter as PEFT has it (adapter_file.h)
 *	optimizer.safetensors  all other persistent tensors, by tensor name
 *	state.json             progress and configuration of the run, sizes and CRC-32C of both files, its own CRC-32C
 *
 * Tensors are whole, unpadded and in the type of the run, so that any number of ranks can read them. A folder is
 * written under a hidden name, made durable and renamed: it is complete or absent. Independent of ranks, threads
 * and the meaning of the configuration. */
#ifndef DPT_WEIGHTS_CHECKPOINT_H
#define DPT_WEIGHTS_CHECKPOINT_H

#include "trainer/weights/adapter_file.h"
#include "trainer/weights/gpt_file.h"
#include "trainer/weights/weights.h"

#define CHECKPOINT_MODEL "model.safetensors"
#define CHECKPOINT_ADAPTER ADAPTER_FOLDER "/" ADAPTER_MODEL
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define CHECKPOINT_VALUES 8

/* A named number of the run that is not in a tensor. */
struct checkpoint_value {
	char name[32]; /* "" ends the list */
	double value;
};

struct checkpoint_state { /* no pointers: ranks send it to each other */
	char run_id[33];
	char model[64];
	char data_hash[64]; /* "" unknown */
	int segment;	    /* segment in which it was written */
	int world;	    /* ranks that wrote it; for information */
	int64_t global_batch;
	uint64_t seed;
	int64_t step;		 /* optimiser steps done */
	int64_t epoch;		 /* epoch of the next batch, from 0 */
	int64_t in_epoch;	 /* finished batches of that epoch */
	bool epoch_is_open;	 /* the sums below are valid, even if only the evaluation at its end is missing */
	bool evaluation_is_open; /* the evaluation of --eval-steps after this step is missing */
	double loss_sum;	 /* over the epoch's samples so far */
	int64_t samples;
	double seconds; /* training time in that epoch */
	bool has_best;
	double best; /* best value of the metric that selects checkpoints */
	int64_t best_step;
	struct checkpoint_value value[CHECKPOINT_VALUES];
};

struct checkpoint_write_opts {
	const char *folder; /* "<run folder>/checkpoints"; made when absent */
	const struct checkpoint_state *state;
	const struct st_meta *config; /* names and values of the configuration */
	size_t n_config;
	const struct st_meta *kernels; /* nodes whose kernel was selected by timing, and the kernels */
	size_t n_kernels;
	const struct st_meta *meta; /* metadata of the model's file */
	size_t n_meta;
	const struct hf_config *gpt; /* NULL: no language model; with lora the adapter alone is written */
	const struct graph *graph;
	const struct weights_access *access; /* for reading: put is not used */
	void (*ready)(void *user); /* optional: called when everything is written, before the folder is renamed */
	void *user;
};

/* On failure no files remain and older checkpoints are unchanged. A checkpoint of the same step is replaced
 * atomically. */
int checkpoint_write(const struct checkpoint_write_opts *o, struct err *err);

/* Writes the path of the model's weights in the folder of a run or checkpoint: of its adapter if it has one. */
int checkpoint_model_path(char *ret, size_t n, const char *folder, struct err *err);

struct checkpoint; /* an opened one */

/* Reads state.json. ERR_USAGE with path and reason if it is missing, damaged or of another format. */
int checkpoint_open(struct checkpoint **ret, const char *path, struct err *err);
void checkpoint_close(struct checkpoint *c); /* NULL is fine */
const char *checkpoint_folder(const struct checkpoint *c); /* as opened */
const struct checkpoint_state *checkpoint_state(const struct checkpoint *c);
const char *checkpoint_config(const struct checkpoint *c, const char *name); /* NULL: not recorded */
/* Calls fn for each recorded kernel. */
void checkpoint_kernels(const struct checkpoint *c, void (*fn)(void *user, const char *key, const char *name),
			void *user);

/* Verifies checksums, names and shapes of the files against g; for a graph without training only the model's file.
 * Reads the files completely. */
int checkpoint_verify(const struct checkpoint *c, const struct graph *g, struct err *err);

/* Verifies the checksum of the weights in a folder; a folder without state.json (weights of other programs) passes. */
int checkpoint_verify_model(const char *folder, struct err *err);

/* Loads every persistent tensor of g. */
int checkpoint_load(const struct checkpoint *c, const struct graph *g, const struct weights_access *a, struct err *err);

struct checkpoint_entry {
	int64_t step;
	int segment; /* -1: state.json cannot be read */
};

/* Lists the checkpoints in a folder: unreadable ones, then the others, newest first (by segment, then by step). The
 * caller frees *ret. A missing folder gives an empty list. */
int checkpoint_list(struct checkpoint_entry **ret, size_t *ret_n, const char *folder, struct err *err);

int checkpoint_path(char *ret, size_t n, const char *folder, int64_t step, struct err *err);
int checkpoint_remove(const char *folder, int64_t step, struct err *err);

/* Removes the hidden folders of interrupted writers. Only the one writer of the folder may call it. */
void checkpoint_sweep(const char *folder);

/* ---- state.json as text and back; for the files of this folder ---- */

enum { STATE_MODEL, STATE_OPTIMIZER, STATE_FILES };

struct state_file {
	struct checkpoint_state state;
	struct st_sum sum[STATE_FILES];
	bool adapter;			 /* STATE_MODEL is an adapter's */
	struct json_t *config, *kernels; /* name → text; owned; kernels may be NULL */
};

/* Returns the text to write, which the caller frees; NULL: out of memory, or a text is not UTF-8. */
char *state_text(const struct checkpoint_write_opts *o, const struct st_sum sum[STATE_FILES]);

/* Parses n bytes of text; path is for messages. ERR_USAGE. state_done frees *ret. */
int state_parse(struct state_file *ret, const char *path, const char *text, size_t n, struct err *err);
void state_done(struct state_file *s);

#endif
