/* doctor.h: `dptrain doctor`: diagnoses the run that a job has recorded, or the one of --run. */
#ifndef DPT_TOOLS_DOCTOR_H
#define DPT_TOOLS_DOCTOR_H

#include "trainer/run/engine.h"

/* run_id: of the run that the job has just recorded; ignored with --run. Prints the diagnosis; with --try also measures
 * the first action. Returns the exit code, or a negative code with err. */
int doctor_main(const struct job *job, const char *run_id, struct err *err);

#endif
