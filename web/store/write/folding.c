/* SPDX-License-Identifier: Apache-2.0 */
/* folding.c: when to fold, for one process and for several. */
#include "web/store/write/group_commit.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "web/store/points/fold.h"
#include "web/store/write/apply.h"

/* --- backlog of several processes ----------------------------------------------------------------------------- */

/* Rows of the log have no time, but ascending numbers: marks record the newest row at certain times. */

static void mark_backlog_rate(struct backlog *b, double now_s)
{
	unsigned last = (b->mark_count + BACKLOG_MARKS - 1) % BACKLOG_MARKS, at = b->mark_count % BACKLOG_MARKS;

	if (b->mark_count && now_s < b->marks[last].at_s + BACKLOG_MARK_S)
		return;
	b->marks[at].at_s = now_s;
	b->marks[at].row = b->newest;
	b->mark_count++;
}

/* Reads the ends of the log if a look is due. */
static int backlog_look(struct backlog *b, struct db *d, double now_s, struct err *err)
{
	int64_t before = b->newest;
	struct db_rows *q;
	int rc;

	if (b->looked_s > 0 && now_s < b->looked_s + BACKLOG_LOOK_S)
		return 0;
	b->looked_s = now_s;
	rc = db_start(d, &q, DB_log_ends, err, "");
	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	b->oldest = db_i64(q, COL_log_ends_oldest);
	b->newest = db_i64(q, COL_log_ends_newest);
	db_stop(q);
	if (b->newest != before)
		b->newest_s = now_s;
	mark_backlog_rate(b, now_s);
	return 0;
}

/* The newest row to fold now; 0: none. */
static int64_t backlog_bound(const struct backlog *b, double now_s)
{
	int64_t bound = 0;
	unsigned i;

	if (now_s >= b->newest_s + BACKLOG_QUIET_S)
		return b->newest;
	for (i = 0; i < BACKLOG_MARKS && i < b->mark_count; i++)
		if (now_s >= b->marks[i].at_s + BACKLOG_AGE_S && b->marks[i].row > bound)
			bound = b->marks[i].row;
	return bound;
}

static bool backlog_due(const struct backlog *b, double now_s)
{
	return b->oldest && b->oldest <= backlog_bound(b, now_s);
}

#define FOLD_IDLE_S 0.25
#define FOLD_FEW_POINTS 4096 /* fewer wait until they are FOLD_AGE_S old */
#define FOLD_AGE_S 2.0
#define FOLD_BUSY_AGE_S 5.0
#define COUNT_EVERY_S 30.0 /* what others log */

void folding_ask(struct folding *f)
{
	atomic_store(&f->asked, true);
}

void folding_done(struct folding *f)
{
	atomic_store(&f->asked, false);
}

int folding_count(struct folding *f, struct err *err)
{
	struct db *d = f->t->db;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_log_totals, err, "");

	f->counted_s = clock_mono_s();
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		f->rows = (uint64_t)db_i64(q, COL_log_totals_rows);
		f->points = (uint64_t)db_i64(q, COL_log_totals_points);
		db_stop(q);
	}
	return rc < 0 ? rc : 0;
}

void folding_look(struct folding *f)
{
	if (f->shared && !db_lost(f->t->db))
		backlog_look(&f->backlog, f->t->db, clock_mono_s(), NULL);
}

void folding_recount(struct folding *f)
{
	if (f->shared && !db_lost(f->t->db) && clock_mono_s() >= f->counted_s + COUNT_EVERY_S)
		folding_count(f, NULL);
}

static uint64_t subtract_clamped(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

void folding_note(struct folding *f, const struct folding_logged *l)
{
	if (!f->points && l->points)
		f->oldest_s = clock_mono_s();
	f->rows = subtract_clamped(f->rows + l->rows, l->rows_gone);
	f->points = subtract_clamped(f->points + l->points, l->points_gone);
}

/* As folding_due, with other writers. */
static bool shared_due(const struct folding *f, double now_s)
{
	const int64_t *runs;

	return state_full(f->t->state, &runs) || backlog_due(&f->backlog, now_s) ||
	       (atomic_load(&f->asked) && f->backlog.oldest);
}

bool folding_due(const struct folding *f, double quiet_s, double now_s)
{
	if (f->never || now_s < f->after_s)
		return false;
	if (f->shared)
		return shared_due(f, now_s);
	if (!f->points || atomic_load(&f->asked))
		return f->points;
	return now_s - quiet_s >= FOLD_IDLE_S && (f->points >= FOLD_FEW_POINTS || now_s - f->oldest_s >= FOLD_AGE_S);
}

double folding_due_at(const struct folding *f, double quiet_s, double now_s)
{
	double at = quiet_s + FOLD_IDLE_S;

	if (folding_due(f, quiet_s, now_s))
		return now_s;
	if (f->shared)
		return db_lost(f->t->db) ? INFINITY : f->backlog.looked_s + BACKLOG_LOOK_S;
	if (!f->points || f->never)
		return INFINITY;
	if (f->points < FOLD_FEW_POINTS && at < f->oldest_s + FOLD_AGE_S)
		at = f->oldest_s + FOLD_AGE_S;
	return at < f->after_s ? f->after_s : at;
}

bool folding_pressing(const struct folding *f, double now_s)
{
	if (f->never || now_s < f->after_s)
		return false;
	if (f->shared)
		return shared_due(f, now_s);
	return f->points >= FOLDING_BUSY_POINTS || (f->points && now_s - f->oldest_s >= FOLD_BUSY_AGE_S);
}

bool folding_left(const struct folding *f)
{
	return f->points && !f->never && !f->shared;
}

static void mark_alerted(struct state *st, const struct fold_result *f)
{
	struct state_run *r;
	size_t i;

	for (i = 0; i < f->alerted_count; i++)
		if (!state_run_by_id(st, f->alerted[i], &r, NULL))
			state_mark(st, r, true);
}

/* Folds inside a transaction. 1: done; 0: another process is folding. */
static int fold_shared_log(struct folding *f, uint64_t max_points, struct fold_result *done, struct err *err)
{
	struct db *d = f->t->db;
	struct fold_bound bound = { .points = max_points };
	int64_t ours = 0; /* for the rest of the transaction */
	int rc = db_int(d, &ours, DB_fold_mine, err, "");

	if (rc < 0)
		return rc;
	bound.last_row = atomic_load(&f->asked) ? INT64_MAX : backlog_bound(&f->backlog, clock_mono_s());
	bound.run_count = state_full(f->t->state, &bound.runs);
	rc = ours ? fold_some(d, &bound, done, err) : 0;
	if (!rc)
		mark_alerted(f->t->state, done);
	return rc ? rc : (int)ours;
}

/* Updates the counters after the commit. ours: result of fold_shared_log, or an error. */
static void note_folded(struct folding *f, int ours, const struct fold_result *done)
{
	double now_s = clock_mono_s();

	f->backlog.looked_s = 0;
	if (ours <= 0)
		f->after_s = now_s + (ours ? 5 : 1);
	if (ours < 0)
		return;
	f->rows = subtract_clamped(f->rows, done->rows);
	f->points = subtract_clamped(f->points, done->points);
	f->oldest_s = now_s;
	if (!ours)
		return;
	state_folded(f->t->state);
	if (!done->rows)
		f->after_s = now_s + 0.1; /* its runs are locked by writers */
}

int folding_some(struct folding *f, uint64_t max_points, uint64_t *ret_rev, struct err *err)
{
	struct fold_result done = { 0 };
	int rc = transaction_begin(f->t, err), ours = 0;

	*ret_rev = 0;
	if (!rc)
		rc = ours = fold_shared_log(f, max_points, &done, err);
	if (rc >= 0)
		rc = state_flush(f->t->state, ret_rev, err);
	rc = transaction_finish(f->t, rc, err);
	note_folded(f, rc ? rc : ours, &done);
	free(done.alerted);
	return rc;
}
