/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h: what a restart does to a run. It opens segments, decides which points of older segments are hidden, and
 * keeps the visible summaries and the status of the run up to date. Writer's thread only. */
#ifndef DPT_STORE_SEGMENT_H
#define DPT_STORE_SEGMENT_H

#include "web/store/state/state.h"
#include "web/store/write/transaction.h"

#define SEGMENT_LOST_MS INT64_C(60000) /* a journal of a live run gets a record every 10 s */

struct segment_open {
	int number;
	int64_t first_step, first_epoch;
	int64_t start_ms;
	int world_size; /* 0: unknown */
	const char *status;
};

/* Adds the segment unless it exists; segments may arrive in any order. */
int segment_open(struct state *st, struct state_run *r, const struct segment_open *o, struct err *err);

/* Sets the status of a segment unless a more authoritative one is set: news->final is 1 for a rank or a client, 2
 * for the launcher. news->end_ms INT64_MIN: no end. */
int segment_status(struct state *st, struct state_run *r, int number, const struct state_segment *news,
		   struct err *err);

/* Sets the run back to running: its journal has new records after the run was assumed dead. */
int segment_alive(struct state *st, struct state_run *r, struct err *err);

/* Records that the run fell silent: killed (finished for foreign folders), until new records arrive. It ended with the
 * last record of its journals, by the clock of their writers. */
int segment_lost(struct state *st, struct state_run *r, const char *status, struct err *err);

/* Marks some running runs whose journals fell silent (stale runs) as killed, in a transaction of its own: 1 done, 0
 * there are none, negative: failed. *ret_more: there may be others. *ret_rev: revision of the change; 0: nothing
 * that watchers need to see. */
int stale_runs_mark(struct transaction *t, bool *ret_more, uint64_t *ret_rev, struct err *err);

#endif
