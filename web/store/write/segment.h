/* segment.h: what a restart does to a run: opens segments, decides which points of older ones are hidden, and keeps the
 * visible summaries and the run's status in step with that. Runs on the writer's thread. */
#ifndef DPT_STORE_SEGMENT_H
#define DPT_STORE_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/state/state.h"

#define SEGMENT_LOST_MS INT64_C(60000) /* a journal of a run that lives speaks every 10 s */

struct segment_open {
	int number;
	int64_t first_step, first_epoch;
	int64_t start_ms;
	int world_size; /* 0: unknown */
	const char *status;
};

/* Makes the segment unless it is there; segments may come in any order. */
int segment_open(struct state *st, struct state_run *r, const struct segment_open *o, struct err *err);

/* weight: 1 a rank or a client, 2 the launcher, whose word is final. end_ms INT64_MIN: none. */
int segment_status(struct state *st, struct state_run *r, int number, const struct state_segment *news,
		   struct err *err);

/* The journal speaks again after the run was taken for killed. */
int segment_alive(struct state *st, struct state_run *r, struct err *err);

/* Nothing was heard: killed (or, for foreign folders, finished), until it speaks again. */
int segment_lost(struct state *st, struct state_run *r, const char *status, struct err *err);

#endif
