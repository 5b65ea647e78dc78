/* initial.h: where a run's weights begin: what the file of --init-from says about itself, its tensors, and what --freeze
 * keeps as it is. */
#ifndef DPT_ENGINE_INITIAL_H
#define DPT_ENGINE_INITIAL_H

#include "trainer/engine/engine.h"

/* Before the ranks are started: flags that nobody gave (model, activation, sizes) become what the file says. ERR_USAGE
 * when neither the file nor the command line names the model. */
int initial_settle(struct run_config *cfg, struct err *err);

/* Loads --init-from into every rank; images are then normalised as they were for those weights. */
int initial_load(struct engine *e, struct err *err);

/* Every pattern of --freeze names something, and something is left to train. */
int initial_check_freeze(const struct engine *e, struct err *err);

/* Takes the normalisation from a weights file that tells one. */
int initial_normalize(struct engine *e, const char *path, struct err *err);

#endif
