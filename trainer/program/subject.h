/* subject.h: what a run is about: which model in which size, on which data. Flags come first, then the data, then the
 * model's own defaults; what was left open in the configuration is settled. */
#ifndef DPT_ENGINE_SUBJECT_H
#define DPT_ENGINE_SUBJECT_H

#include "trainer/run/engine.h"

const struct model *subject_model(const char *name, struct err *err); /* NULL, and err names the nearest */

/* Opens e->data: the folder of --data-path, the batch of --batch-from, or random samples of the kind that m reads. */
int subject_open_data(struct engine *e, const struct model *m, struct err *err);

/* Checks that data and flags fit the model and settles what they leave open. */
int subject_settle(struct engine *e, const struct model *m, struct err *err);

struct model_config subject_config(const struct engine *e, const struct model *m);

#endif
