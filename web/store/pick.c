/* pick.c: runs and series by name, with what is hidden of them. */
#include "web/store/pick.h"

#include <math.h>
#include <string.h>

#include "web/store/filter.h"
#include "web/store/segment.h"

struct hides {
	int number[64];
	int64_t step[64], epoch[64];
	size_t count;
};

static int load_hides(struct db *d, int64_t run_id, struct hides *h, struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_segment_list, err, "i", run_id);

	h->count = 0;
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		/* Of very many restarts the newest matter: what an old one hides is hidden by the next as well. */
		if (h->count == 64) {
			memmove(h->number, h->number + 1, 63 * sizeof h->number[0]);
			memmove(h->step, h->step + 1, 63 * sizeof h->step[0]);
			memmove(h->epoch, h->epoch + 1, 63 * sizeof h->epoch[0]);
			h->count--;
		}
		h->number[h->count] = sqlite3_column_int(q, 0);
		h->step[h->count] = sqlite3_column_int64(q, 3);
		h->epoch[h->count++] = sqlite3_column_int64(q, 4);
		rc = 0;
	}
	return rc;
}

static int64_t hide_of(const struct hides *h, int segment, const char *key)
{
	size_t i;

	for (i = 0; i < h->count; i++)
		if (h->number[i] == segment)
			return segment_counts_epochs(key) ? h->epoch[i] : h->step[i];
	return INT64_MAX;
}

static bool wanted(const struct points_sel *sel, const char *key, int rank)
{
	size_t i;

	if (sel->rank != POINTS_ALL_RANKS && sel->rank != rank)
		return false;
	for (i = 0; i < sel->key_count && sel->keys; i++)
		if (!strcmp(sel->keys[i], key))
			return true;
	return !sel->keys;
}

static int add_series(const struct points_sel *sel, const struct hides *h, sqlite3_stmt *q, struct arena *a,
		      struct pick_run *r, size_t *cap)
{
	const char *key = (const char *)sqlite3_column_text(q, 1);
	struct pick_series *s;

	if (!wanted(sel, key, sqlite3_column_int(q, 2)))
		return 0;
	if (r->count == *cap) {
		struct pick_series *grown = arena_array(a, *cap ? *cap * 2 : 16, sizeof *grown);

		if (!grown)
			return ERR_NOMEM;
		if (*cap)
			memcpy(grown, r->series, *cap * sizeof *grown);
		*cap = *cap ? *cap * 2 : 16;
		r->series = grown;
	}
	s = &r->series[r->count];
	s->id = sqlite3_column_int64(q, 0);
	s->key = r->count && !strcmp(r->series[r->count - 1].key, key) ? r->series[r->count - 1].key : db_text(a, q, 1);
	s->rank = sqlite3_column_int(q, 2);
	s->segment = sqlite3_column_int(q, 3);
	s->hide = sel->all_segments ? INT64_MAX : hide_of(h, s->segment, key);
	db_sum(q, 4, &s->folded);
	s->ordered = sqlite3_column_int(q, 17);
	s->chunks = sqlite3_column_int64(q, 18);
	r->count++;
	return 0;
}

static int load_series(struct db *d, const struct points_sel *sel, struct arena *a, struct pick_run *r, struct err *err)
{
	struct hides h;
	size_t cap = 0;
	sqlite3_stmt *q;
	int rc = load_hides(d, r->id, &h, err);

	if (!rc && sel->keys && sel->key_count == 1)
		rc = db_start(d, &q, DB_series_of_run_key, err, "it", r->id, sel->keys[0]);
	else if (!rc)
		rc = db_start(d, &q, DB_series_of_run, err, "i", r->id);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = add_series(sel, &h, q, a, r, &cap);
		if (rc) {
			db_stop(q);
			err_set(err, rc, "out of memory");
		}
	}
	return rc;
}

int pick_run(struct db *d, const struct points_sel *sel, const char *uuid, struct arena *a, struct pick_run *ret,
	     struct err *err)
{
	struct pick_run r = { .uuid = uuid, .start_s = NAN, .steps_per_epoch = 1 };
	double per_epoch;
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_run_head, err, "t", uuid);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	r.id = sqlite3_column_int64(q, 0);
	r.name = db_text(a, q, 1);
	if (db_time(q, 2) != INT64_MIN)
		r.start_s = (double)sqlite3_column_int64(q, 2) / 1e3;
	if (filter_number(db_text(a, q, 3), &per_epoch) && per_epoch > 0 && isfinite(per_epoch))
		r.steps_per_epoch = per_epoch;
	db_stop(q);
	rc = load_series(d, sel, a, &r, err);
	if (rc)
		return rc;
	*ret = r;
	return 1;
}
