/* stale_runs.c: finds and marks stale runs. */
#include "web/store/write/stale_runs.h"

#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/state/state.h"
#include "web/store/write/segment.h"

#define LOST_RUNS 200 /* per transaction: a power failure may leave thousands */

/* Reads the ids of up to LOST_RUNS runs: their number, or negative. */
static int find_stale_runs(struct db *d, int64_t before_ms, int64_t ids[LOST_RUNS], struct err *err)
{
	struct db_rows *q;
	int n = 0, rc = db_start(d, &q, DB_run_lost, err, "i", before_ms);

	if (rc)
		return rc;
	while (n < LOST_RUNS && (rc = db_next(d, q, err)) > 0)
		ids[n++] = db_i64(q, COL_run_lost_id);
	if (n == LOST_RUNS)
		db_stop(q);
	return rc < 0 ? rc : n;
}

/* Marks the run under its lock, unless another process stored a newer record. */
static int mark_run_stale(struct transaction *t, int64_t id, int64_t before_ms, struct err *err)
{
	struct state_run *r;
	int64_t ours;
	int rc = db_int(t->db, &ours, DB_run_has_journal, err, "i", id);

	if (rc < 0 || state_run_by_id(t->state, id, &r, err) || r->last_ms >= before_ms || strcmp(r->status, "running"))
		return rc < 0 ? rc : 0;
	return segment_lost(t->state, r, rc ? "killed" : "finished", err);
}

static int mark_stale_runs(struct transaction *t, int64_t before_ms, bool *ret_more, struct err *err)
{
	int64_t ids[LOST_RUNS];
	int n = find_stale_runs(t->db, before_ms, ids, err), i, rc = n < 0 ? n : 0;

	*ret_more = n == LOST_RUNS;
	for (i = 0; i < n && rc >= 0; i++)
		rc = mark_run_stale(t, ids[i], before_ms, err);
	return rc < 0 ? rc : 0;
}

int stale_runs_mark(struct transaction *t, bool *ret_more, uint64_t *ret_rev, struct err *err)
{
	int64_t before_ms = clock_wall_ms() - SEGMENT_LOST_MS, any;
	int rc = db_int(t->db, &any, DB_run_lost, err, "i", before_ms);

	*ret_more = false;
	*ret_rev = 0;
	if (rc <= 0) /* unknown: the next call retries */
		return 0;
	rc = transaction_begin(t, err);
	if (!rc)
		rc = mark_stale_runs(t, before_ms, ret_more, err);
	if (!rc)
		rc = state_flush(t->state, ret_rev, err);
	rc = transaction_finish(t, rc, err);
	return rc ? rc : 1;
}
