/* calibrate.h: `dptrain bench --calibrate`: what this machine can do, as a hardware file. */
#ifndef DPT_TOOLS_CALIBRATE_H
#define DPT_TOOLS_CALIBRATE_H

#include "trainer/run/engine.h"

/* Times the nodes of small models of both families, and the collectives of --nproc-per-node ranks, in processes of its
 * own, and writes the file. The exit code; negative with err. */
int calibrate_main(const struct job *job, struct err *err);

#endif
