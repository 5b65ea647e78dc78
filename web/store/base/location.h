/* location.h: the address of the artifacts of a run or logged model, for MLflow's clients. Pure. */
#ifndef DPT_STORE_LOCATION_H
#define DPT_STORE_LOCATION_H

#include <stdint.h>

#include "tracker/base/arena.h"

/* The address of `below` ("<run>/artifacts"), in the arena. location: of the experiment, "" for artifacts in the
 * store. A query part of location stays at the end. NULL: out of memory. */
const char *location_of(struct arena *a, const char *location, int64_t experiment, const char *below);

#endif
