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

int state_watch(struct state *st, const struct state_run *r, const struct state_arrived *p, struct err *err)
{
	int64_t name[2] = { r->slot, p->series };
	struct state_recent *rec = map_put(st->recent, name, sizeof name);
	struct point_tail all = { 0 };
	int rc = rec ? 0 : state_no_memory(err);
	double weight;
	long at = -1;

	if (!rc && !rec->loaded)
		rc = scan_newest(st->db, &(struct series_scan){ r->id, &p->series, 1, keep_scanned, rec }, err);
	if (!rc && (tail_add(&all, rec->points, rec->count) || tail_add(&all, p->points, p->count)))
		rc = state_no_memory(err);
	if (!rc)
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
