/* location.h: where the artifacts of a run or a logged model lie, as MLflow's clients are told. Pure. */
#ifndef DPT_STORE_LOCATION_H
#define DPT_STORE_LOCATION_H

#include <stdint.h>

#include "tracker/base/arena.h"

/* The address of what lies at below ("<run>/artifacts"), in the arena. location: the experiment's, "" where artifacts
 * are kept here. A query of the location stays at its end. NULL: out of memory. */
const char *location_of(struct arena *a, const char *location, int64_t experiment, const char *below);

#endif
