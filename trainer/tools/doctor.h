/* doctor.h: `dptrain doctor`: judges the run that a job has recorded, or one of --run. */
#ifndef DPT_TOOLS_DOCTOR_H
#define DPT_TOOLS_DOCTOR_H

#include "trainer/run/engine.h"

/* run_id: of the run that the job has just recorded; not looked at with --run. Prints; with --try also measures the
 * first action. The exit code; negative with err. */
int doctor_main(const struct job *job, const char *run_id, struct err *err);

#endif
