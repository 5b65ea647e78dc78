/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c: segments, hidden points and status of runs, and runs that fell silent. */
#include "web/store/write/segment.h"

#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/points/scan.h"

/* The run-level series of a run, by id: input of the recount of visible summaries. */
struct recount {
	int64_t *ids, *hide;
	struct state_metric **metrics;
	size_t count, ids_cap, hide_cap, metrics_cap;
};

static void recount_done(struct recount *rc)
{
	free(rc->ids);
	free(rc->hide);
	free(rc->metrics);
}

static void add_recounted(struct recount *rc, int64_t id, int64_t hide, struct state_metric *m)
{
	mem_reserve(&rc->ids, &rc->ids_cap, rc->count + 1);
	mem_reserve(&rc->hide, &rc->hide_cap, rc->count + 1);
	mem_reserve(&rc->metrics, &rc->metrics_cap, rc->count + 1);
	rc->ids[rc->count] = id;
	rc->hide[rc->count] = hide;
	rc->metrics[rc->count++] = m;
}

/* Reads the run-level series of the run and zeroes their summaries. */
static int recount_load(struct recount *rc, struct state *st, struct state_run *r, struct err *err)
{
	struct db *d = state_db(st);
	struct db_rows *q;
	int ret = db_start(d, &q, DB_series_run_level, err, "i", r->id);

	while (!ret && (ret = db_next(d, q, err)) > 0) {
		struct state_segment *s = state_segment(r, db_i32(q, COL_series_run_level_segment));
		const char *key = db_str(q, COL_series_run_level_name);
		struct state_metric *m = NULL;

		ret = state_metric(st, r, db_i64(q, COL_series_run_level_key_id), &m, err);
		if (ret) {
			db_stop(q);
			break;
		}
		sum_init(&m->sum);
		state_metric_mark(st, m);
		add_recounted(rc, db_i64(q, COL_series_run_level_id), hide_from(s ? &s->hide : NULL, key), m);
	}
	return ret;
}

static int recount_points(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct recount *rc = arg;
	size_t i;

	(void)err;
	for (i = 0; i < n; i++)
		if (!hide_has(rc->hide[at], points[i].step))
			sum_add(&rc->metrics[at]->sum, &points[i]);
	return 0;
}

static int recount_segment(struct state *st, struct state_run *r, struct err *err)
{
	struct recount rc = { 0 };
	int ret = state_flush_metrics(st, err);

	if (!ret)
		ret = recount_load(&rc, st, r, err);
	if (!ret)
		ret = scan_points(state_db(st), &(struct series_scan){ r->id, rc.ids, rc.count, recount_points, &rc },
				  err);
	recount_done(&rc);
	return ret;
}

static void copy_newest_segment(struct state *st, struct state_run *r)
{
	const struct state_segment *s = &r->segments[r->segment_count - 1];

	memcpy(r->status, s->status, sizeof(r->status));
	r->segment = s->number;
	r->end_ms = s->end_ms;
	r->inferred = false;
	if (s->world_size)
		r->world_size = s->world_size;
	state_mark(st, r, true);
}

/* Computes what later segments hide of each; sets *ret_changed when older points may have become hidden. */
static int update_hidden(struct state *st, struct state_run *r, bool *ret_changed, struct err *err)
{
	struct hide hide = { HIDE_NONE, HIDE_NONE };
	size_t i;
	int rc = 0;

	for (i = r->segment_count; i-- > 0 && !rc;) {
		struct state_segment *s = &r->segments[i];

		if (s->hide.step != hide.step || s->hide.epoch != hide.epoch) {
			s->hide = hide;
			*ret_changed = true;
			rc = state_segment_save(st, r, s, err);
		}
		hide_beyond(&hide, s->first_step, s->first_epoch);
	}
	return rc;
}

static int update_known_segment(struct state *st, struct state_run *r, struct state_segment *s,
				const struct segment_open *o, struct err *err)
{
	bool changed = false;

	if (o->world_size && !s->world_size) {
		s->world_size = o->world_size;
		changed = true;
	}
	if (o->start_ms != INT64_MIN && (s->start_ms == INT64_MIN || o->start_ms < s->start_ms)) {
		s->start_ms = o->start_ms;
		changed = true;
	}
	if (!changed)
		return 0;
	if (s->number == r->segment && s->world_size)
		r->world_size = s->world_size;
	state_mark(st, r, true);
	return state_segment_save(st, r, s, err);
}

int segment_open(struct state *st, struct state_run *r, const struct segment_open *o, struct err *err)
{
	struct state_segment s = {
		.number = o->number, .first_step = o->first_step, .first_epoch = o->first_epoch,
		.hide = { HIDE_NONE, HIDE_NONE }, .start_ms = o->start_ms, .end_ms = INT64_MIN,
		.world_size = o->world_size,
	};
	struct state_segment *old = state_segment(r, o->number);
	bool changed = false;
	int rc;

	if (old)
		return update_known_segment(st, r, old, o, err);
	memcpy(s.status, o->status, strlen(o->status) + 1);
	rc = state_segment_add(st, r, &s, err);
	if (!rc)
		rc = update_hidden(st, r, &changed, err);
	if (!rc && changed && r->segment_count > 1)
		rc = recount_segment(st, r, err);
	if (!rc)
		copy_newest_segment(st, r);
	return rc;
}

int segment_status(struct state *st, struct state_run *r, int number, const struct state_segment *news, struct err *err)
{
	struct state_segment *s = state_segment(r, number);

	if (!s || news->final < s->final)
		return 0;
	memcpy(s->status, news->status, sizeof(s->status));
	s->final = news->final;
	s->end_ms = news->end_ms;
	copy_newest_segment(st, r);
	return state_segment_save(st, r, s, err);
}

static int set_newest_status(struct state *st, struct state_run *r, const char *status, int64_t end_ms, struct err *err)
{
	struct state_segment *s = &r->segments[r->segment_count - 1];

	memset(s->status, 0, sizeof(s->status));
	memcpy(s->status, status, strlen(status));
	s->end_ms = end_ms;
	copy_newest_segment(st, r);
	return state_segment_save(st, r, s, err);
}

int segment_alive(struct state *st, struct state_run *r, struct err *err)
{
	if (!r->inferred || !r->segment_count)
		return 0;
	return set_newest_status(st, r, "running", INT64_MIN, err);
}

int segment_lost(struct state *st, struct state_run *r, const char *status, struct err *err)
{
	int64_t end_ms = 0;
	int rc;

	if (!r->segment_count)
		return 0;
	rc = db_int(state_db(st), &end_ms, DB_writer_last, err, "i", r->id);
	if (rc < 0)
		return rc;
	rc = set_newest_status(st, r, status, end_ms > 0 ? end_ms : r->last_ms, err);
	r->inferred = true;
	return rc;
}

/* --- stale runs ----------------------------------------------------------------------------------------------- */

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
