/* SPDX-License-Identifier: Apache-2.0 */
/* detail.c: reads the rows of one run into structs, and derives its alerts. */

#include <stdlib.h>

#include "web/store/points/scan.h"
#include "web/store/read/read_inside.h"

#define DIVERGED_POINTS 20

/* The runs to load. */
struct runs {
	struct db *db;
	struct arena *a;
	struct err *err;
	struct query_run *items;
	size_t count;
	struct buf ids, keys; /* arrays (db.h) of the runs, and of the wanted metrics */
};

/* The run of a row; column: its place. */
static struct query_run *find_detail_run(const struct runs *o, struct db_rows *q, enum db_column column)
{
	return &o->items[db_i64(q, column) - 1];
}

/* Adds the current row's pair to a list. */
static void add_detail_pair(struct db_rows *q, struct arena *a, struct query_kv **items, size_t *count)
{
	list_push(a, items, count,
		  (struct query_kv){ db_text(a, q, COL_params_of_runs_name), db_text(a, q, COL_params_of_runs_value) });
}

/* Reads params or tags. As in all take_ functions, q is NULL if the part is not wanted. */
static int take_words(const struct runs *o, struct db_rows *q, bool tags)
{
	struct query_run *r;
	int rc = 0;

	while (q && (rc = db_next(o->db, q, o->err)) > 0) {
		r = find_detail_run(o, q, COL_params_of_runs_place);
		add_detail_pair(q, o->a, tags ? &r->tags : &r->params, tags ? &r->tag_count : &r->param_count);
	}
	return rc;
}

static void add_metric(const struct runs *o, struct query_run *r, struct db_rows *q)
{
	struct sum s;

	r->metrics = list_room(o->a, r->metrics, r->metric_count, sizeof(*r->metrics));
	sum_row_read(q, COL_metrics_of_runs_count, &s);
	metric_of(&r->metrics[r->metric_count++], db_text(o->a, q, COL_metrics_of_runs_name), &s);
}

static int take_metrics(const struct runs *o, struct db_rows *q)
{
	int rc = 0;

	while (q && (rc = db_next(o->db, q, o->err)) > 0)
		add_metric(o, find_detail_run(o, q, COL_metrics_of_runs_place), q);
	return rc;
}

static int start_metrics(struct runs *o, const struct metric_select *c, struct db_rows **ret)
{
	if (!c || c->all)
		return db_start(o->db, ret, DB_metrics_of_runs, o->err, "t", o->ids.data);
	array_begin(&o->keys);
	metric_select_list_wanted(c, &o->keys);
	return db_start(o->db, ret, DB_some_metrics_of_runs, o->err, "tt", o->ids.data, array_end(&o->keys));
}

static void add_alert(struct query_run *r, struct arena *a, const struct query_alert *alert)
{
	list_push(a, &r->alerts, &r->alert_count, *alert);
}

/* Returns true if the summary proves that no value is finite from the first non-finite one on: one for each step. */
static bool none_finite_since(const struct query_metric *m)
{
	return m->nonfinite > (uint64_t)m->last_step - (uint64_t)m->first_nonfinite_step;
}

static void alert_nonfinite(struct query_run *r, struct arena *a, const struct query_metric *m)
{
	const char *word = isnan(m->last) ? "NaN" : m->last > 0 ? "infinite" : "minus infinite";
	long long first = m->first_nonfinite_step, last = m->last_step;
	struct query_alert alert = { .kind = QUERY_ALERT_NAN, .kind_name = "nan", .key = m->key,
				     .step = m->first_nonfinite_step, .value = m->last };

	if (isfinite(m->last))
		alert.text = arena_printf(a, "not finite at step %lld", first);
	else if (first == last || (isnan(m->last) && !m->infinite && none_finite_since(m)))
		alert.text = arena_printf(a, "%s from step %lld", word, first);
	else if (none_finite_since(m))
		alert.text = arena_printf(a, "not finite from step %lld", first);
	else
		alert.text = arena_printf(a, "first not finite at step %lld, %s at step %lld", first, word, last);
	add_alert(r, a, &alert);
}

/* Ends well above both its first and its best value. */
static bool has_diverged(const struct query_metric *m)
{
	return m->count >= DIVERGED_POINTS && !m->nonfinite && spike_watches(m->key) && m->min > 0 &&
	       m->last > 1.5 * m->first && m->last > 3 * m->min;
}

static int take_spikes(const struct runs *o, struct db_rows *q)
{
	struct query_run *r;
	int rc = 0;

	while (q && (rc = db_next(o->db, q, o->err)) > 0) {
		struct query_alert alert = { .kind = QUERY_ALERT_SPIKE, .kind_name = "spike",
					     .key = db_text(o->a, q, COL_alerts_of_runs_name),
					     .step = db_i64(q, COL_alerts_of_runs_step),
					     .value = db_f64(q, COL_alerts_of_runs_value) };

		r = find_detail_run(o, q, COL_alerts_of_runs_place);
		alert.text = arena_printf(o->a, "spike %.4g at step %lld", alert.value, (long long)alert.step);
		add_alert(r, o->a, &alert);
	}
	return rc;
}

/* The last step before the run failed: that of the last training loss, since other series may count differently.
 * Without a loss: the last step of the run. -1: nothing was recorded. */
static int64_t last_good_step(const struct query_run *r)
{
	int64_t last = -1;

	for (size_t i = 0; i < r->metric_count; i++)
		if (spike_watches(r->metrics[i].key) && r->metrics[i].last_step > last)
			last = r->metrics[i].last_step;
	return last < 0 ? r->last_step : last;
}

/* Adds the alerts that follow from status and metrics. */
static void make_alerts(struct query_run *r, struct arena *a)
{
	int64_t step = last_good_step(r);
	struct query_alert failed = { .kind = QUERY_ALERT_FAILED, .kind_name = "failed", .key = "", .step = step,
				      .value = NAN };
	size_t i;

	if (!strcmp(r->status, "failed")) {
		failed.text = step < 0 ? "failed" : arena_printf(a, "failed after step %lld", (long long)step);
		add_alert(r, a, &failed);
	}
	for (i = 0; i < r->metric_count; i++)
		if (r->metrics[i].nonfinite && metric_is_loss(r->metrics[i].key))
			alert_nonfinite(r, a, &r->metrics[i]);
	for (i = 0; i < r->metric_count; i++) {
		const struct query_metric *m = &r->metrics[i];

		if (has_diverged(m))
			add_alert(r, a, &(struct query_alert){
				.kind = QUERY_ALERT_DIVERGED, .kind_name = "diverged", .key = m->key,
				.step = m->min_step,
				.value = m->last,
				.text = arena_printf(a, "diverged: %.4g after %.4g at step %lld", m->last, m->min,
						     (long long)m->min_step) });
	}
}

static void read_run_row(struct db_rows *q, struct arena *a, struct query_run *r)
{
	*r = (struct query_run){
		.id = db_text(a, q, COL_run_detail_uuid), .name = db_text(a, q, COL_run_detail_name),
		.experiment = db_text(a, q, COL_run_detail_experiment),
		.experiment_id = db_text(a, q, COL_run_detail_experiment_id),
		.status = db_text(a, q, COL_run_detail_status), .status_inferred = db_i32(q, COL_run_detail_inferred),
		.deleted_ms = db_time(q, COL_run_detail_deleted_ms), .start_ms = db_time(q, COL_run_detail_start_ms),
		.end_ms = db_time(q, COL_run_detail_end_ms),
		.last_step = db_i64(q, COL_run_detail_last_step), .world_size = db_i32(q, COL_run_detail_world_size),
		.rev = (uint64_t)db_i64(q, COL_run_detail_rev), .notes = db_text(a, q, COL_run_detail_notes),
		.user = db_text(a, q, COL_run_detail_user), .location = db_text(a, q, COL_run_detail_location),
		.status_reason = db_text(a, q, COL_run_detail_status_reason),
	};
	r->deleted = r->deleted_ms != INT64_MIN;
}

/* ERR_NOENT: a run is missing. */
static int take_run_rows(const struct runs *o, struct db_rows *q)
{
	size_t found = 0;
	int rc;

	for (; (rc = db_next(o->db, q, o->err)) > 0; found++)
		read_run_row(q, o->a, find_detail_run(o, q, COL_run_detail_place));
	return rc ? rc : found < o->count ? ERR_NOENT : 0;
}

/* The queries for the parts, in the order they are read; NULL: not wanted. */
struct detail_parts {
	struct db_rows *rows, *params, *tags, *metrics, *spikes;
};

/* Starts all queries before the first row is read: one round trip on a remote database. */
static int start_parts(struct runs *o, const struct detail_want *want, struct detail_parts *p)
{
	const char *ids = o->ids.data;
	int rc = db_start(o->db, &p->rows, DB_run_detail, o->err, "t", ids);

	if (!rc && want->parts & QUERY_PARAMS)
		rc = db_start(o->db, &p->params, DB_params_of_runs, o->err, "t", ids);
	if (!rc && want->parts & QUERY_TAGS)
		rc = db_start(o->db, &p->tags, DB_tags_of_runs, o->err, "t", ids);
	if (!rc && want->parts & (QUERY_METRICS | QUERY_ALERTS))
		rc = start_metrics(o, want->chosen, &p->metrics);
	if (!rc && want->parts & QUERY_ALERTS)
		rc = db_start(o->db, &p->spikes, DB_alerts_of_runs, o->err, "t", ids);
	return rc;
}

static int compare_pair_keys(const void *x, const void *y)
{
	return strcmp(((const struct query_kv *)x)->key, ((const struct query_kv *)y)->key);
}

static int compare_metric_keys(const void *x, const void *y)
{
	return strcmp(((const struct query_metric *)x)->key, ((const struct query_metric *)y)->key);
}

/* Rows arrive in any order. */
static void sort_details(struct query_run *r)
{
	if (r->param_count)
		qsort(r->params, r->param_count, sizeof(*r->params), compare_pair_keys);
	if (r->tag_count)
		qsort(r->tags, r->tag_count, sizeof(*r->tags), compare_pair_keys);
	if (r->metric_count)
		qsort(r->metrics, r->metric_count, sizeof(*r->metrics), compare_metric_keys);
}

/* Reads the wanted parts of the runs, then derives alerts and drops metrics that only alerts needed. */
static int load_detail(struct runs *o, const struct detail_want *want)
{
	struct detail_parts p = { 0 };
	size_t i;
	int rc = start_parts(o, want, &p);

	if (!rc)
		rc = take_run_rows(o, p.rows);
	if (!rc)
		rc = take_words(o, p.params, false);
	if (!rc)
		rc = take_words(o, p.tags, true);
	if (!rc)
		rc = take_metrics(o, p.metrics);
	for (i = 0; i < o->count && !rc; i++)
		sort_details(&o->items[i]);
	for (i = 0; i < o->count && !rc && want->parts & QUERY_ALERTS; i++)
		make_alerts(&o->items[i], o->a);
	if (!rc)
		rc = take_spikes(o, p.spikes);
	for (i = 0; i < o->count && !rc; i++) {
		if (want->chosen)
			metric_select_trim(want->chosen, &o->items[i]);
		if (!(want->parts & QUERY_METRICS))
			o->items[i].metric_count = 0;
	}
	return rc;
}

int detail_load_all(struct db *d, const struct detail_want *want, struct arena *a, struct query_runs *ret,
		    struct err *err)
{
	struct runs o = { .db = d, .a = a, .err = err, .items = ret->items, .count = ret->count };
	int rc;

	array_of(&o.ids, want->ids, o.count);
	rc = load_detail(&o, want);
	buf_done(&o.ids);
	buf_done(&o.keys);
	return rc;
}

int detail_load(struct db *d, int64_t run_id, struct arena *a, struct query_run *ret, struct err *err)
{
	return detail_load_all(d, &(struct detail_want){ .ids = &run_id, .parts = QUERY_PARTS }, a,
			       &(struct query_runs){ .items = ret, .count = 1 }, err);
}

int query_pairs_read(struct db *d, struct db_rows *q, struct arena *a, struct query_kvs *ret, struct err *err)
{
	int rc;

	while ((rc = db_next(d, q, err)) > 0)
		list_push(a, &ret->items, &ret->count,
			  (struct query_kv){ db_text(a, q, COL_environment_of_run_name),
					     db_text(a, q, COL_environment_of_run_value) });
	return rc;
}

/* Reads the segments of a run and their params. */
static int load_run_segments(struct db *d, int64_t id, struct arena *a, struct query_run *r, struct err *err)
{
	struct db_rows *q;
	size_t i;
	int rc = db_start(d, &q, DB_segment_list, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &r->segments, &r->segment_count,
			  (struct query_segment){ .number = db_i32(q, COL_segment_list_number),
						  .first_step = db_i64(q, COL_segment_list_first_step),
						  .first_epoch = db_i64(q, COL_segment_list_first_epoch),
						  .start_ms = db_time(q, COL_segment_list_start_ms),
						  .end_ms = db_time(q, COL_segment_list_end_ms),
						  .status = db_text(a, q, COL_segment_list_status),
						  .world_size = db_i32(q, COL_segment_list_world_size) });
	for (i = 0; i < r->segment_count && !rc; i++) {
		struct query_segment *s = &r->segments[i];
		struct query_kvs params = { 0 };

		rc = db_start(d, &q, DB_segment_params_of_run, err, "ii", id, (int64_t)s->number);
		if (!rc)
			rc = query_pairs_read(d, q, a, &params, err);
		s->params = params.items;
		s->param_count = params.count;
	}
	return rc;
}

static int load_ranks(struct db *d, int64_t id, struct arena *a, struct query_run *r, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_ranks_of_run, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &r->ranks, &r->rank_count,
			  (struct query_rank){ .rank = db_i32(q, COL_ranks_of_run_rank),
					       .segment = db_i32(q, COL_ranks_of_run_segment),
					       .host = db_text(a, q, COL_ranks_of_run_host),
					       .pid = db_i32(q, COL_ranks_of_run_pid),
					       .last_record_ms = db_time(q, COL_ranks_of_run_last_ms) });
	return rc;
}

static int load_problems(struct db *d, int64_t id, struct arena *a, struct query_run *r, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_problems_of_run, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &r->problems, &r->problem_count,
			  (struct query_problem){ .time_ms = db_i64(q, COL_problems_of_run_time_ms),
						  .text = db_text(a, q, COL_problems_of_run_text),
						  .count = (uint64_t)db_i64(q, COL_problems_of_run_count) });
	return rc;
}

/* Folded sums plus the points of the log, of n series. */
struct overlay {
	size_t n;
	int64_t *ids;
	size_t *order; /* position in the list of series, by ascending id */
	struct sum *sums;
};

static int overlay_points(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct overlay *o = arg;
	size_t i;

	(void)err;
	for (i = 0; i < n; i++)
		sum_add(&o->sums[o->order[at]], &points[i]);
	return 0;
}

static int compare_overlay_ids(const void *x, const void *y, void *ids)
{
	int64_t a = ((int64_t *)ids)[*(const size_t *)x], b = ((int64_t *)ids)[*(const size_t *)y];

	return (a > b) - (a < b);
}

static int add_log(struct db *d, int64_t run_id, struct overlay *o, struct arena *a, struct err *err)
{
	size_t n = o->n, i;
	int64_t *sorted = arena_array(a, n ? n : 1, sizeof(*sorted));

	o->order = arena_array(a, n ? n : 1, sizeof(*o->order));
	for (i = 0; i < n; i++)
		o->order[i] = i;
	qsort_r(o->order, n, sizeof(*o->order), compare_overlay_ids, o->ids);
	for (i = 0; i < n; i++)
		sorted[i] = o->ids[o->order[i]];
	return scan_log(d, &(struct series_scan){ run_id, sorted, n, overlay_points, o }, err);
}

int detail_load_series(struct db *d, int64_t run_id, struct arena *a, struct query_run *r, struct err *err)
{
	struct overlay o = { 0 };
	struct db_rows *q;
	size_t n = 0, i;
	int rc = db_start(d, &q, DB_series_of_run, err, "i", run_id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		r->series = list_room(a, r->series, n, sizeof(*r->series));
		o.ids = list_room(a, o.ids, n, sizeof(*o.ids));
		o.sums = list_room(a, o.sums, n, sizeof(*o.sums));
		o.ids[n] = db_i64(q, COL_series_of_run_id);
		r->series[n] = (struct query_series){ .key = db_text(a, q, COL_series_of_run_name),
						      .rank = db_i32(q, COL_series_of_run_rank),
						      .segment = db_i32(q, COL_series_of_run_segment) };
		sum_row_read(q, COL_series_of_run_count, &o.sums[n]);
		if (!o.sums[n].count)
			sum_init(&o.sums[n]);
		n++;
	}
	o.n = n;
	if (!rc && n)
		rc = add_log(d, run_id, &o, a, err);
	for (i = 0; i < n && !rc; i++)
		metric_of(&r->series[i].sum, r->series[i].key, &o.sums[i]);
	r->series_count = n;
	return rc;
}

int detail_load_rest(struct db *d, int64_t run_id, struct arena *a, struct query_run *run, struct err *err)
{
	struct query_kvs environment = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_environment_of_run, err, "i", run_id);

	if (!rc)
		rc = query_pairs_read(d, q, a, &environment, err);
	run->environment = environment.items;
	run->environment_count = environment.count;
	if (!rc)
		rc = load_run_segments(d, run_id, a, run, err);
	if (!rc)
		rc = load_ranks(d, run_id, a, run, err);
	if (!rc)
		rc = load_problems(d, run_id, a, run, err);
	return rc;
}
