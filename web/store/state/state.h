/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: the writer thread's cache of the store between batches: runs, series, keys, journals, visible summaries.
 * Changes are marked here, and state_flush writes them once per commit. Writer's thread only. */
#ifndef DPT_STORE_STATE_H
#define DPT_STORE_STATE_H

#include "web/store/points/series_summary.h"

#define STATE_RUN_LEVEL (-1) /* rank of a series of the whole run */

struct state_segment {
	int number;
	int64_t first_step, first_epoch;
	struct hide hide;
	int64_t start_ms, end_ms; /* INT64_MIN: unknown */
	char status[16];
	int final; /* who set the status: 0 none, 1 a rank or a client, 2 the launcher */
	int world_size;
};

struct state_run {
	int64_t id;
	char uuid[33];
	int64_t experiment_id;
	char *name;
	char status[16];
	bool inferred, beats;
	int64_t start_ms, end_ms, last_ms, last_step, deleted_ms;
	int segment, world_size;
	struct state_segment *segments; /* by number; addresses change when one is added */
	size_t segment_count;
	bool marked, changed;	/* marked: in the list to flush; changed: watchers should see it */
	int64_t params;		/* number of params; -1: not counted yet (state_count_params) */
	int64_t keys;		/* number of its series */
	int64_t slot;		/* part of the cache keys of everything below the run; a new slot invalidates them */
	int64_t version, group; /* version of the row, and the last group that locked it; with other writers */
	int rank_seen, segment_seen;  /* the part that last had a new series; rank INT_MIN: none */
	bool archived;		      /* its chunks are not rows: restore them before adding points */
	bool gone;		      /* removed for good; the row is in the table gone */
	int64_t log_rows, log_points; /* logged here since the last fold, as far as known */
};

struct state_metric {
	int64_t run_id, key_id;
	struct sum sum;
	bool marked, loaded, stored; /* stored: it has a row */
};

struct state_writer {
	int64_t id;
	int rank, segment;
	uint64_t durable;
	bool ordered;	/* the order of its points across series is stored */
	bool annotates; /* as in struct ingest_foreign, of its last bytes */
	bool loaded;
};

struct state;

/* cache_bytes: approximate size of the cache between commits. */
struct state *state_new(struct db *db, size_t cache_bytes);
void state_free(struct state *st);
struct db *state_db(struct state *st);

/* Drops the cache: after a rollback, or to free memory. */
void state_drop(struct state *st);

/* Call at the start of a transaction. With other writers, cached rows are invalid until they are locked: state_lock
 * locks the runs that a group names (NULL and unknown ids are skipped), in the same order in all processes. Other
 * runs are locked when first looked up. */
void state_begin(struct state *st);
int state_lock(struct state *st, const char *const *uuids, size_t n, struct err *err);

/* Announces n new runs: their numbers are read with the next query. */
int state_expect_runs(struct state *st, size_t n, struct err *err);
void state_trim(struct state *st); /* drops the cache only if it is too large; nothing may be marked */

/* ERR_NOENT: no such run; ERR_GONE: it was removed for good. */
int state_run(struct state *st, const char *uuid, struct state_run **ret, struct err *err);
int state_run_by_id(struct state *st, int64_t id, struct state_run **ret, struct err *err);

struct state_new_run {
	const char *uuid, *experiment, *name, *status;
	int64_t experiment_id; /* used if experiment is NULL */
	const char *user;      /* NULL: unknown */
	int64_t start_ms;
	bool beats;
};

/* Adds the run, without segments. */
int state_run_add(struct state *st, const struct state_new_run *n, struct state_run **ret, struct err *err);
int state_run_rename(struct state *st, struct state_run *r, const char *name, struct err *err);
/* Moves the run to the experiment of that name, which is created if missing. The caller must ensure that it has no
 * artifacts. */
int state_run_move(struct state *st, struct state_run *r, const char *experiment, struct err *err);
void state_mark(struct state *st, struct state_run *r, bool changed);

/* state_logged counts a row of the log. state_full returns runs with many rows, which gain most from folding
 * (borrowed until state_folded, which resets them). */
void state_logged(struct state *st, struct state_run *r, int64_t points);
size_t state_full(const struct state *st, const int64_t **ret);
void state_folded(struct state *st);

struct state_segment *state_segment(struct state_run *r, int number); /* NULL when absent */
int state_segment_add(struct state *st, struct state_run *r, const struct state_segment *s, struct err *err);
int state_segment_save(struct state *st, const struct state_run *r, const struct state_segment *s, struct err *err);

/* Creates a missing experiment in the transaction, as the entry of the audit log is: others who want the same name
 * wait. */
int state_experiment(struct state *st, const char *name, int64_t *ret, bool *ret_existed, struct err *err);
/* The name (borrowed from its caller) and number of the experiment that was created since the last call; NULL: none. */
const char *state_made_experiment(struct state *st, int64_t *ret);
int state_key(struct state *st, const char *name, int64_t *ret, struct err *err);

struct state_series_key {
	int64_t run_id, key_id;
	int32_t rank, segment;
};

/* ERR_LIMIT: the run has the maximum of keys; nothing is changed. */
int state_series(struct state *st, struct state_run *r, const struct state_series_key *k, int64_t *ret,
		 struct err *err);

/* Prefetches what will be looked up, in any order; on a remote database it is looked up and added in sets. Never
 * fails for a limit; the rest is looked up on demand. */
struct state_expected {
	const char *key;
	int rank;
};
struct state_batch {
	const struct state_expected *all;
	size_t count;
	int segment;
};
int state_expect(struct state *st, struct state_run *r, const struct state_batch *b, struct err *err);
int state_expect_keys(struct state *st, const char *const *names, size_t n, struct err *err);

/* Ensures that r->params is known. */
int state_count_params(struct state *st, struct state_run *r, struct err *err);
int state_metric(struct state *st, const struct state_run *r, int64_t key_id, struct state_metric **ret,
		 struct err *err);
void state_metric_mark(struct state *st, struct state_metric *m);

/* New points of a run-level series. */
struct state_arrived {
	int64_t key_id, series;
	const struct sum_point *points;
	size_t count;
};

/* Checks new points for spikes (spike_watches), before they are logged; a process alone finds them when it folds. */
int state_watch(struct state *st, const struct state_run *r, const struct state_arrived *p, struct err *err);

/* *ret->loaded false: there is no such journal yet. */
int state_writer(struct state *st, const struct state_run *r, const char *uuid, struct state_writer **ret,
		 struct err *err);

/* Writes what is marked. Each changed run takes the next number of the store's change counter. *ret_rev: the last
 * one taken; 0: nothing changed. */
int state_flush(struct state *st, uint64_t *ret_rev, struct err *err);
int state_flush_metrics(struct state *st, struct err *err);

#endif
