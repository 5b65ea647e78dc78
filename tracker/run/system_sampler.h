/* SPDX-License-Identifier: Apache-2.0 */
/* system_sampler.h: the thread that records system statistics (schema/event/system.def) at a fixed interval. It logs
 * like any thread of the caller. */
#ifndef DPT_RUN_SYSTEM_SAMPLER_H
#define DPT_RUN_SYSTEM_SAMPLER_H

#include "tracker/base/err.h"

struct system_sampler;
struct dptrack_run;

/* run: borrowed until system_sampler_stop; its rank's series are written, with its newest step. */
int system_sampler_start(struct system_sampler **ret, struct dptrack_run *run, double interval_s, struct err *err);

/* Takes a last sample, unless the interval is too short, and ends the thread. NULL is fine. */
void system_sampler_stop(struct system_sampler *s);

#endif
