/* SPDX-License-Identifier: Apache-2.0 */
/* state_series.c: the data below a run: keys, series, visible summaries, journals; spikes as points arrive. */

#include "tracker/event/event.h"
#include "tracker/mem/mem.h"
#include "web/store/points/scan.h"
#include "web/store/state/state_inside.h"

int state_key(struct state *st, const char *name, int64_t *ret, struct err *err)
{
	int64_t *known = map_get(st->keys, name, strlen(name)), id;
	struct db *alone;
	int rc;

	if (known) {
		*ret = *known;
		return 0;
	}
	rc = db_int(st->db, &id, DB_key_by_name, err, "t", name);
	if (rc < 0)
		return rc;
	if (!rc) {
		/* on a connection of its own: others with the same name wait for this statement only, not for the
		 * transaction */
		alone = db_alone(st->db);
		rc = db_run(alone, DB_key_add, err, "t", name);
		if (rc)
			return rc;
		id = db_last_id(alone);
	}
	*(int64_t *)map_put(st->keys, name, strlen(name)) = id;
	*ret = id;
	return 0;
}

int state_count_params(struct state *st, struct state_run *r, struct err *err)
{
	int rc = r->params >= 0 ? 0 : db_int(st->db, &r->params, DB_params_of_run_count, err, "i", r->id);

	return rc < 0 ? rc : 0;
}

/* Counts the key of a new series, unless another rank or segment has it. */
static int count_key(struct state *st, struct state_run *r, const struct state_series_key *k, struct err *err)
{
	int64_t name[2] = { r->slot, k->key_id }, any;
	int rc = map_get(st->run_keys, name, sizeof(name))
			 ? 1
			 : db_int(st->db, &any, DB_series_has_key, err, "ii", k->run_id, k->key_id);

	if (rc < 0)
		return rc;
	if (!rc && r->keys >= LIMIT_keys_per_run)
		return err_set(err, ERR_LIMIT, "run %s has %d metric keys, the maximum", r->uuid,
			       (int)LIMIT_keys_per_run);
	r->keys += !rc;
	map_put(st->run_keys, name, sizeof(name));
	return 0;
}

/* Adds a series, and its part if that is new. */
static int insert_series(struct state *st, struct state_run *r, const struct state_series_key *k, int64_t *ret,
			 struct err *err)
{
	int rc = count_key(st, r, k, err);

	if (!rc && (r->rank_seen != k->rank || r->segment_seen != k->segment))
		rc = db_run(st->db, DB_part_add, err, "iii", k->run_id, (int64_t)k->rank, (int64_t)k->segment);
	if (!rc)
		rc = db_run(st->db, DB_series_add, err, "iiii", k->run_id, k->key_id, (int64_t)k->rank,
			    (int64_t)k->segment);
	if (rc)
		return rc;
	r->rank_seen = k->rank;
	r->segment_seen = k->segment;
	*ret = db_last_id(st->db);
	return 0;
}

int state_series(struct state *st, struct state_run *r, const struct state_series_key *k, int64_t *ret, struct err *err)
{
	struct state_series_key name = { r->slot, k->key_id, k->rank, k->segment };
	int64_t *known = map_get(st->series, &name, sizeof(name)), id;
	int rc;

	if (known) {
		*ret = *known;
		return 0;
	}
	rc = db_int(st->db, &id, DB_series_find, err, "iiii", k->run_id, k->key_id, (int64_t)k->rank,
		    (int64_t)k->segment);
	if (rc < 0)
		return rc;
	if (!rc && (rc = insert_series(st, r, k, &id, err)))
		return rc;
	*(int64_t *)map_put(st->series, &name, sizeof(name)) = id;
	*ret = id;
	return 0;
}

int state_metric(struct state *st, const struct state_run *r, int64_t key_id, struct state_metric **ret,
		 struct err *err)
{
	int64_t name[2] = { r->slot, key_id };
	struct state_metric *m = map_put(st->metrics, name, sizeof(name));
	struct db_rows *q;
	int rc;

	if (!m->loaded) {
		m->run_id = r->id;
		m->key_id = key_id;
		sum_init(&m->sum);
		rc = db_start(st->db, &q, DB_metric_get, err, "ii", key_id, r->id);
		if (!rc && (rc = db_next(st->db, q, err)) > 0) {
			sum_row_read(q, COL_metric_get_count, &m->sum);
			m->stored = true;
			db_stop(q);
		}
		if (rc < 0)
			return rc;
		m->loaded = true;
	}
	*ret = m;
	return 0;
}

void state_metric_mark(struct state *st, struct state_metric *m)
{
	if (m->marked)
		return;
	m->marked = true;
	mem_push(&st->dirty_metrics.items, &st->dirty_metrics.count, &st->dirty_metrics.cap, m);
}

int state_writer(struct state *st, const struct state_run *r, const char *uuid, struct state_writer **ret,
		 struct err *err)
{
	char name[40];
	struct state_writer *w;
	struct db_rows *q;
	int rc;

	memcpy(name, &r->slot, 8);
	memcpy(name + 8, uuid, 32);
	w = map_put(st->writers, name, sizeof(name));
	if (!w->loaded) {
		rc = db_start(st->db, &q, DB_writer_get, err, "it", r->id, uuid);
		if (!rc && (rc = db_next(st->db, q, err)) > 0) {
			w->id = db_i64(q, COL_writer_get_id);
			w->rank = db_i32(q, COL_writer_get_rank);
			w->segment = db_i32(q, COL_writer_get_segment);
			w->durable = (uint64_t)db_i64(q, COL_writer_get_durable);
			w->ordered = db_i32(q, COL_writer_get_ordered);
			w->loaded = true;
			db_stop(q);
		}
		if (rc < 0)
			return rc;
	}
	*ret = w;
	return 0;
}

/* --- spikes --------------------------------------------------------------------------------------------------- */

/* Finds spikes when points arrive, where folding (which finds them otherwise) may be minutes away. */

static void keep_recent_points(struct state_recent *r, const struct sum_point *p, size_t n)
{
	size_t from = n > SPIKE_CONTEXT ? n - SPIKE_CONTEXT : 0, add = n - from, old = SPIKE_CONTEXT - add;

	old = r->count < old ? r->count : old;
	memmove(r->points, r->points + r->count - old, old * sizeof(*p));
	memcpy(r->points + old, p + from, add * sizeof(*p));
	r->count = (unsigned)(old + add);
}

static int keep_scanned(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	(void)at;
	(void)err;
	keep_recent_points(arg, points, n);
	return 0;
}

int state_watch(struct state *st, const struct state_run *r, const struct state_arrived *p, struct err *err)
{
	int64_t name[2] = { r->slot, p->series };
	struct state_recent *rec;
	struct point_tail all = { 0 };
	double weight;
	long at;
	int rc = 0;

	if (!st->shared)
		return 0;
	rec = map_put(st->recent, name, sizeof(name));
	if (!rec->loaded)
		rc = scan_newest(st->db, &(struct series_scan){ r->id, &p->series, 1, keep_scanned, rec }, err);
	if (rc)
		return rc;
	tail_add(&all, rec->points, rec->count);
	tail_add(&all, p->points, p->count);
	at = spike_find(all.points, all.count, &weight);
	if (at >= 0 && weight > rec->weight) {
		rec->weight = weight;
		rc = db_run(st->db, DB_alert_put, err, "iitidd", r->id, p->key_id, "spike", all.points[at].step,
			    all.points[at].value, weight);
	}
	if (!rc) {
		rec->loaded = true;
		keep_recent_points(rec, p->points, p->count);
	}
	tail_done(&all);
	return rc;
}
