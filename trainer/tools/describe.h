/* describe.h: commands that run nothing and start no rank. */
#ifndef DPT_TOOLS_DESCRIBE_H
#define DPT_TOOLS_DESCRIBE_H

#include "trainer/run/engine.h"

int describe_plan(const struct job *job, struct buf *out, struct err *err);

/* Trained numbers of the run's model; settles what its configuration left open. Knows neither backend nor plan. */
int describe_parameters(const struct job *job, int64_t *ret, struct err *err);
void describe_backends(struct buf *out);

/* The first GPU here as a hardware file (schema/hardware): what plans for it must know. */
int describe_gpu(struct buf *out, struct err *err);

/* Writes the token files of `dptrain tokenize`, and what they hold to out. */
int describe_tokenize(const struct run_config *cfg, struct buf *out, struct err *err);

#endif
