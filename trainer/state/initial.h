/* initial.h: where a run's weights begin: what the file of --init-from says about itself, its tensors, and what
 * --freeze keeps as it is. */
#ifndef DPT_STATE_INITIAL_H
#define DPT_STATE_INITIAL_H

#include "trainer/program/workload.h"
#include "trainer/state/tensors.h"

/* A folder that --init-from names becomes the file in it: a run's weights.safetensors, a checkpoint's (or Hugging
 * Face's) model.safetensors, or that of the newest checkpoint of a run that was cut off. */
int initial_locate(struct run_config *cfg, struct err *err);

/* Before the ranks are started: --init-from is located, and flags that nobody gave (model, activation, sizes) become
 * what the file says. ERR_USAGE when neither the file nor the command line names the model. */
int initial_settle(struct run_config *cfg, struct err *err);

/* Loads --init-from, into every rank what it holds; images are then normalised as they were for those weights. */
int initial_load(const struct tensors *s, const struct run_config *cfg, struct workload *subject, struct err *err);

/* Whether initial_load fills this tensor. */
bool initial_gives(const struct run_config *cfg, const struct model *m, const struct tensor *t);

/* Every pattern of --freeze names something in g, and something is left to train. */
int initial_check_freeze(const struct graph *g, const struct run_config *cfg, const struct model *m, struct err *err);

/* --mean and --std; with neither of them nothing happens. */
int initial_given(struct workload *s, const struct run_config *cfg, struct err *err);

/* Takes the normalisation from a weights file that tells one, unless --mean or --std does. */
int initial_normalize(struct workload *s, const struct run_config *cfg, const char *path, struct err *err);

#endif
