/* describe.h: commands that start no ranks. */
#ifndef DPT_TOOLS_DESCRIBE_H
#define DPT_TOOLS_DESCRIBE_H

#include "trainer/run/engine.h"

int describe_plan(const struct job *job, struct buf *out, struct err *err);

/* Counts the parameters of the run's model, and sets open values of its configuration. Needs no backend and no plan. */
int describe_parameters(const struct job *job, int64_t *ret, struct err *err);
void describe_backends(struct buf *out);

/* Adds the properties of the first GPU of this machine that plans need, as a hardware file (schema/hardware). */
int describe_gpu(struct buf *out, struct err *err);

/* Writes the token files of `dptrain tokenize`, and adds a summary to out. */
int describe_tokenize(const struct run_config *cfg, struct buf *out, struct err *err);

#endif
