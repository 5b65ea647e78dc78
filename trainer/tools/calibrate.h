/* calibrate.h: `dptrain bench --calibrate`: measures this machine for a hardware file. */
#ifndef DPT_TOOLS_CALIBRATE_H
#define DPT_TOOLS_CALIBRATE_H

#include "trainer/run/engine.h"

/* Times the nodes of small models of both families and the collectives of --nproc-per-node ranks, in child processes,
 * and writes the file. Returns the exit code, or a negative code with err. */
int calibrate_main(const struct job *job, struct err *err);

#endif
