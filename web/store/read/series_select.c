/* SPDX-License-Identifier: Apache-2.0 */
/* series_select.c: looks up runs and series by name, and what is hidden of them. */
#include "web/store/read/read_inside.h"

#include <stdlib.h>

struct picker {
	struct db *d;
	const struct points_sel *sel;
	struct arena *arena;
	struct series_select_run *r;
	struct hide_list hides;
	struct err *err;
};

/* Adds the series of a row if its rank is selected. */
static void add_picked_series(struct picker *p, struct db_rows *q)
{
	const char *key = db_str(q, COL_series_of_run_name), *last;
	struct series_select_run *r = p->r;
	struct series_select_series *s;

	if (p->sel->rank != POINTS_ALL_RANKS && p->sel->rank != db_i32(q, COL_series_of_run_rank))
		return;
	r->series = list_room(p->arena, r->series, r->count, sizeof(*r->series));
	s = &r->series[r->count];
	s->id = db_i64(q, COL_series_of_run_id);
	last = r->count ? r->series[r->count - 1].key : "";
	s->key = r->count && !strcmp(last, key) ? last : arena_strdup(p->arena, key);
	s->rank = db_i32(q, COL_series_of_run_rank);
	s->segment = db_i32(q, COL_series_of_run_segment);
	s->hide = p->sel->all_segments ? HIDE_NONE : hide_from(hide_get(&p->hides, s->segment), key);
	sum_row_read(q, COL_series_of_run_count, &s->folded);
	s->ordered = db_i32(q, COL_series_of_run_ordered);
	s->chunks = db_i64(q, COL_series_of_run_chunks);
	r->count++;
}

static int take_picked_series(struct picker *p, struct db_rows *q)
{
	int rc;

	while ((rc = db_next(p->d, q, p->err)) > 0)
		add_picked_series(p, q);
	return rc;
}

static int compare_picked_keys(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Reads series by key: a run may have millions of others. */
static int load_picked_keys(struct picker *p)
{
	size_t n = p->sel->key_count, i;
	const char **keys = arena_array(p->arena, n + 1, sizeof(*keys));
	bool all = p->sel->rank == POINTS_ALL_RANKS;
	int64_t from = all ? INT32_MIN : p->sel->rank, to = all ? INT32_MAX : p->sel->rank;
	struct db_rows *q;
	int rc = 0;

	memcpy(keys, p->sel->keys, n * sizeof(*keys));
	qsort(keys, n, sizeof(*keys), compare_picked_keys);
	for (i = 0; !rc && i < n; i++) {
		if (i && !strcmp(keys[i], keys[i - 1]))
			continue;
		rc = db_start(p->d, &q, DB_series_of_run_key, p->err, "itii", p->r->id, keys[i], from, to);
		if (!rc)
			rc = take_picked_series(p, q);
	}
	return rc;
}

static int load_picked_series(struct picker *p)
{
	struct db_rows *q;
	int rc = hide_load(&p->hides, p->d, p->r->id, p->arena, p->err);

	if (rc || p->sel->keys)
		return rc ? rc : load_picked_keys(p);
	rc = db_start(p->d, &q, DB_series_of_run, p->err, "i", p->r->id);
	return rc ? rc : take_picked_series(p, q);
}

int series_select_run(struct db *d, const struct series_select_want *want, struct arena *a,
		      struct series_select_run *ret, struct err *err)
{
	struct series_select_run r = { .uuid = want->uuid, .start_s = NAN, .steps_per_epoch = 1 };
	double per_epoch;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_run_head, err, "t", want->uuid);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	if (!permitted(d, db_i64(q, COL_run_head_experiment_id))) {
		db_stop(q);
		return 0;
	}
	r.id = db_i64(q, COL_run_head_id);
	r.rev = db_i64(q, COL_run_head_rev);
	r.name = db_text(a, q, COL_run_head_name);
	if (db_time(q, COL_run_head_start_ms) != INT64_MIN)
		r.start_s = (double)db_i64(q, COL_run_head_start_ms) / 1e3;
	if (filter_number(db_text(a, q, COL_run_head_steps_per_epoch), &per_epoch) && per_epoch > 0 &&
	    isfinite(per_epoch))
		r.steps_per_epoch = per_epoch;
	db_stop(q);
	rc = load_picked_series(&(struct picker){ .d = d, .sel = want->sel, .arena = a, .r = &r, .err = err });
	if (rc)
		return rc;
	*ret = r;
	return 1;
}
