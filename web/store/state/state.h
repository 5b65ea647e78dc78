/* state.h: what the writer's thread remembers of the store between batches: runs, series, keys, journals, visible
 * summaries. Changes are marked here and written by state_flush, once a commit. Private to the writer's thread. */
#ifndef DPT_STORE_STATE_H
#define DPT_STORE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "web/store/db/db.h"
#include "web/store/points/hide.h"
#include "web/store/points/series_summary.h"

#define STATE_RUN_LEVEL (-1) /* rank of a series of the run as a whole */

struct state_segment {
	int number;
	int64_t first_step, first_epoch;
	struct hide hide;
	int64_t start_ms, end_ms; /* INT64_MIN: unknown */
	char status[16];
	int final;                /* 0 nobody, 1 a rank or a client, 2 the launcher */
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
	bool marked, changed; /* marked: in the list to flush; changed: worth telling others */
	int64_t params; /* how many it has; -1: not counted yet (state_count_params) */
	int64_t keys;   /* of its series */
	int64_t slot;   /* under which what lies below it is remembered; a new one forgets all that */
	int64_t version, group; /* of the row, where other processes write too; the group that locked it last */
	int rank_seen, segment_seen; /* the part that had a new series last; rank INT_MIN: none */
	bool archived;        /* its chunks are no rows: nothing is added to it before they are again */
	bool gone;            /* removed for good; the row is in the table gone */
	int64_t log_rows, log_points; /* that came here since they were last folded, as far as is known */
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
	bool ordered; /* the order of its points across series is kept */
	bool loaded;
};

struct state;

/* cache_bytes: about what it keeps between commits, where other processes write too. */
int state_new(struct state **ret, struct db *db, size_t cache_bytes, struct err *err);
void state_free(struct state *st);
struct db *state_db(struct state *st);

/* Forgets everything: after a rollback, or to give memory back. */
void state_drop(struct state *st);

/* A transaction has begun: where other processes write too, nothing that was read in an earlier one holds without a
 * lock. state_lock takes those of the runs that a group names, ids that are NULL or no run's aside, in one order for
 * all; a run that was not named is locked when it is first looked for. */
void state_begin(struct state *st);
int state_lock(struct state *st, const char *const *uuids, size_t n, struct err *err);

/* So many runs are about to be made: their numbers come with what is asked next. */
int state_expect_runs(struct state *st, size_t n, struct err *err);
void state_trim(struct state *st); /* drops only when it has grown beyond its bound; nothing may be marked */

/* ERR_NOENT when there is no such run, ERR_GONE when it was removed for good. */
int state_run(struct state *st, const char *uuid, struct state_run **ret, struct err *err);
int state_run_by_id(struct state *st, int64_t id, struct state_run **ret, struct err *err);

struct state_new_run {
	const char *uuid, *experiment, *name, *status;
	int64_t experiment_id; /* when experiment is NULL */
	const char *user;      /* NULL: unknown */
	int64_t start_ms;
	bool beats;
};

/* Makes the run without segments. */
int state_run_add(struct state *st, const struct state_new_run *n, struct state_run **ret, struct err *err);
int state_run_rename(struct state *st, struct state_run *r, const char *name, struct err *err);
/* Into the experiment of that name, which is made where there is none. Its artifacts stay behind: callers see to it. */
int state_run_move(struct state *st, struct state_run *r, const char *experiment, struct err *err);
void state_mark(struct state *st, struct state_run *r, bool changed);

/* A row of the log was written. Of runs with many, those that have most to gain from folding, state_full gives the ids
 * (borrowed until state_folded, which says that they were folded). */
void state_logged(struct state *st, struct state_run *r, int64_t points);
size_t state_full(const struct state *st, const int64_t **ret);
void state_folded(struct state *st);

struct state_segment *state_segment(struct state_run *r, int number); /* NULL when absent */
struct state_segment *state_segment_add(struct state *st, struct state_run *r, const struct state_segment *s,
					struct err *err);
int state_segment_save(struct state *st, const struct state_run *r, const struct state_segment *s, struct err *err);

int state_experiment(struct state *st, const char *name, int64_t *ret, bool *ret_existed, struct err *err);
int state_key(struct state *st, const char *name, int64_t *ret, struct err *err);

struct state_series_key {
	int64_t run_id, key_id;
	int32_t rank, segment;
};

/* ERR_LIMIT, nothing done: the run has as many keys as it may. */
int state_series(struct state *st, struct state_run *r, const struct state_series_key *k, int64_t *ret,
		 struct err *err);

/* What is about to be asked for, in any order: where the database is not in this process it is looked up, and made, by
 * sets. Nothing fails for a limit here; what is left out is looked for when it is asked for. */
struct state_expected {
	const char *key;
	int rank;
};
int state_expect(struct state *st, struct state_run *r, const struct state_expected *all, size_t n, int segment,
		 struct err *err);
int state_expect_keys(struct state *st, const char *const *names, size_t n, struct err *err);

/* Sees to it that r->params is known. */
int state_count_params(struct state *st, struct state_run *r, struct err *err);
int state_metric(struct state *st, const struct state_run *r, int64_t key_id, struct state_metric **ret,
		 struct err *err);
void state_metric_mark(struct state *st, struct state_metric *m);

/* New points of a run-level series that is watched for spikes (spike_watches), before they are logged. */
int state_watch(struct state *st, const struct state_run *r, const struct state_series_key *k, int64_t series,
		const struct sum_point *p, size_t n, struct err *err);

/* *ret->loaded false: there is no such journal yet. */
int state_writer(struct state *st, const struct state_run *r, const char *uuid, struct state_writer **ret,
		 struct err *err);

/* Writes what is marked; each changed run takes the next number of the store's one count of changes. *ret_rev: the last
 * one that was given, 0 when nothing changed. */
int state_flush(struct state *st, uint64_t *ret_rev, struct err *err);
int state_flush_metrics(struct state *st, struct err *err);

#endif
