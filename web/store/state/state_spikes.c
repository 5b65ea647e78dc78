/* state_spikes.c: finds spikes when points arrive, where folding (which finds them otherwise) may be minutes away. */
#include "web/store/state/state_inside.h"

#include <string.h>

#include "web/store/points/scan.h"
#include "web/store/points/tail.h"

static void keep_recent_points(struct state_recent *r, const struct sum_point *p, size_t n)
{
	size_t from = n > SPIKE_CONTEXT ? n - SPIKE_CONTEXT : 0, add = n - from, old = SPIKE_CONTEXT - add;

	old = r->count < old ? r->count : old;
	memmove(r->points, r->points + r->count - old, old * sizeof *p);
	memcpy(r->points + old, p + from, add * sizeof *p);
	r->count = (unsigned)(old + add);
}

static int keep_scanned(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	(void)at;
	(void)err;
	keep_recent_points(arg, points, n);
	return 0;
}

/* all: previous and new points. */
static int store_spike(struct state *st, const struct state_run *r, struct state_recent *rec, int64_t key_id,
		       const struct point_tail *all, struct err *err)
{
	double weight;
	long at = spike_find(all->points, all->count, &weight);

	if (at < 0 || weight <= rec->weight)
		return 0;
	rec->weight = weight;
	return db_run(st->db, DB_alert_put, err, "iitidd", r->id, key_id, "spike", all->points[at].step,
		      all->points[at].value, weight);
}

int state_watch(struct state *st, const struct state_run *r, const struct state_series_key *k, int64_t series,
		const struct sum_point *p, size_t n, struct err *err)
{
	int64_t name[2] = { r->slot, series };
	struct state_recent *rec = map_put(st->recent, name, sizeof name);
	struct point_tail all = { 0 };
	int rc = rec ? 0 : state_no_memory(err);

	if (!rc && !rec->loaded)
		rc = scan_newest(st->db, &(struct series_scan){ r->id, &series, 1, keep_scanned, rec }, err);
	if (!rc && (tail_add(&all, rec->points, rec->count) || tail_add(&all, p, n)))
		rc = state_no_memory(err);
	if (!rc)
		rc = store_spike(st, r, rec, k->key_id, &all, err);
	if (!rc) {
		rec->loaded = true;
		keep_recent_points(rec, p, n);
	}
	tail_done(&all);
	return rc;
}
