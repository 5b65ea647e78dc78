/* sampler.h: the thread that records what the machine says of itself (schema/event/system.def) every so many seconds.
 * It logs as any thread of the caller's does. */
#ifndef DPT_RUN_SAMPLER_H
#define DPT_RUN_SAMPLER_H

#include "tracker/base/err.h"

struct sampler;
struct dptrack_run;

/* run: borrowed until sampler_stop; its rank's series are written, numbered by its newest step. */
int sampler_start(struct sampler **ret, struct dptrack_run *run, double interval_s, struct err *err);

/* Takes a last sample, where one is worth it, and ends the thread. NULL is fine. */
void sampler_stop(struct sampler *s);

#endif
