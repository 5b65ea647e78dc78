/* recorded.h: the folder of a run that a job has just recorded. */
#ifndef DPT_TOOLS_RECORDED_H
#define DPT_TOOLS_RECORDED_H

#include "tracker/dptrack.h"
#include "trainer/run/engine.h"

int recorded_run(const struct job *job, const char *run_id, struct dptrack_found *ret, struct err *err); /* ERR_IO */

#endif
