/* SPDX-License-Identifier: Apache-2.0 */
/* initial.h: the initial weights of a run: drawn, or from the --init-from file, whose metadata also gives the model;
 * and the parameters that --freeze keeps unchanged. */
#ifndef DPT_STATE_INITIAL_H
#define DPT_STATE_INITIAL_H

#include "trainer/program/workload.h"
#include "trainer/state/tensors.h"
#include "trainer/weights/weights.h"

/* Replaces a folder in --init-from by the file in it: model.safetensors of a run, a checkpoint or Hugging Face,
 * weights.safetensors (its name in runs of older versions), or that of the newest checkpoint of an interrupted run. */
int initial_locate(struct run_config *cfg, struct err *err);

/* Called before config_resolve: reads the decoder of --init-from, whose recipe differs, into cfg->decoder, and sets
 * --seq-len if it was not given. */
int initial_begin(struct run_config *cfg, struct err *err);

/* Called before the ranks start: locates --init-from and sets flags that were not given (model, activation, sizes) from
 * the file's metadata. ERR_USAGE when neither the file nor the command line names the model. */
int initial_settle(struct run_config *cfg, struct err *err);

/* Loads --init-from, on every rank the part that it owns. Images are then normalised as they were for those weights. */
int initial_load(const struct tensors *s, const struct run_config *cfg, struct workload *workload, struct err *err);

/* Loads the weights of --init-from and the adapter of --adapter. With LoRA, rank 0 hashes the weights into base_hash;
 * ERR_USAGE if the adapter belongs to others. */
int initial_load_weights(const struct tensors *s, const struct run_config *cfg, const struct weights_load_opts *o,
			 char base_hash[65], struct err *err);

/* Returns true if initial_load fills this tensor. */
bool initial_gives(const struct run_config *cfg, const struct model *m, const struct tensor *t);

/* Checks that every pattern of --freeze matches a tensor of g, and that a trainable parameter remains. */
int initial_check_freeze(const struct graph *g, const struct run_config *cfg, const struct model *m, struct err *err);

/* Applies --mean and --std; does nothing without them. */
int initial_given(struct workload *s, const struct run_config *cfg, struct err *err);

/* Takes the normalisation from a weights file that has one, unless --mean or --std is given. */
int initial_normalize(struct workload *s, const struct run_config *cfg, const char *path, struct err *err);

/* Gives every persistent tensor its initial values, except those that initial_load fills. They are keyed by (seed,
 * name, element): the same for any number of ranks and threads, any partition and any processor. The slabs must exist,
 * zeroed. */
int draw_values(const struct tensors *s, const struct run_config *cfg, const struct model *m, struct err *err);

#endif
