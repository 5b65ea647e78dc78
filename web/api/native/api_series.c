/* SPDX-License-Identifier: Apache-2.0 */
/* api_series.c: /series: M4 buckets for charts (Jugel et al., VLDB 2014), and raw points in pages. */


#include "web/api/native/formula/derived.h"
#include "web/api/native/groups/groups.h"
#include "web/api/native/native_inside.h"

enum { SERIES_PAGE_DEFAULT = 10000, SERIES_PAGE_MAX = 100000, SERIES_BATCH = 512 };

static const char *const series_forms[] = { "buckets", "line", NULL };
static const char *const series_x_names[] = { "step", "time", "elapsed", "epoch", NULL };
static const char *const series_spacings[] = { "even", "log", NULL };

/* The request, from query arguments or a JSON body. */
struct series_query {
	struct points_sel sel;
	int x, form, spacing;
	int64_t buckets; /* 0: raw points */
	double from, to; /* NaN: open */
	int64_t limit;
	const char *page_token;
	const char *const *group_by; /* NULL: no groups */
	size_t group_count;
	int band;
	const char *formula; /* in place of keys; NULL: none */
};

/* Converts a bound to a step, for raw points. With buckets the bounds are in units of x. */
static int64_t bound_to_step(double v, int64_t open, bool up)
{
	if (isnan(v))
		return open;
	v = up ? ceil(v) : floor(v);
	if (v >= 9223372036854775807.0)
		return INT64_MAX;
	return v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
}

static void write_bucket_column(struct js *j, const char *key, const struct points_line *l,
				double (*pick)(const struct points_bucket *b))
{
	size_t i;

	js_key_open(j, key, '[');
	for (i = 0; i < l->bucket_count; i++)
		js_number(j, pick(&l->buckets[i])); /* null in a bucket without finite points */
	js_close(j, ']');
}

#define PICK(name, expression)                                                                                         \
	static double pick_##name(const struct points_bucket *b)                                                       \
	{                                                                                                              \
		return b->nonfinite == b->count ? NAN : expression;                                                    \
	}

PICK(x_first, b->first.x)
PICK(first, b->first.value)
PICK(x_min, b->min.x)
PICK(min, b->min.value)
PICK(x_max, b->max.x)
PICK(max, b->max.value)
PICK(x_last, b->last.x)
PICK(last, b->last.value)

static double pick_index(const struct points_bucket *b)
{
	return b->index;
}

static double pick_sum(const struct points_bucket *b)
{
	return b->sum;
}

static double pick_count(const struct points_bucket *b)
{
	return b->count;
}

static double pick_nonfinite(const struct points_bucket *b)
{
	return b->nonfinite;
}

static double pick_x_nonfinite(const struct points_bucket *b)
{
	return b->nonfinite ? b->first_nonfinite_x : NAN;
}

static void write_bucket_columns(struct js *j, const struct points_line *l)
{
	static const struct {
		const char *key;
		double (*pick)(const struct points_bucket *b);
	} columns[] = {
		{ "i", pick_index },       { "x_first", pick_x_first }, { "first", pick_first },
		{ "x_min", pick_x_min },   { "min", pick_min },         { "x_max", pick_x_max },
		{ "max", pick_max },       { "x_last", pick_x_last },   { "last", pick_last },
		{ "sum", pick_sum },       { "count", pick_count },     { "nonfinite", pick_nonfinite },
		{ "x_nonfinite", pick_x_nonfinite },
	};
	size_t i;

	js_key_open(j, "buckets", '{');
	for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		write_bucket_column(j, columns[i].key, l, columns[i].pick);
	js_close(j, '}');
}

static void write_chart_line(struct call *c, struct js *j, const struct series_query *q,
			     const struct points_chart *chart, const struct points_line *l)
{
	js_open(j, '{');
	js_key_str(j, "run", l->run);
	js_key_str(j, "key", l->key);
	js_key_int(j, "rank", l->rank);
	js_key_int(j, "segment", l->segment);
	js_key_int(j, "count", (int64_t)l->point_count);
	if (!q->form)
		write_bucket_columns(j, l);
	else
		series_line_write(j, l, chart, !q->x, c->arena);
	js_close(j, '}');
}

static void write_bucket_edges(struct js *j, const struct points_chart *chart)
{
	uint32_t i;

	js_key_open(j, "edges", '[');
	for (i = 0; chart->line_count && i <= chart->bucket_count; i++)
		js_double(j, points_edge(chart, i));
	js_close(j, ']');
}

/* Reads the runs and groups them, in the order of the request. Returns false after failing the call. */
static bool read_grouped_runs(struct call *c, const struct series_query *q, struct query_runs *runs, struct groups *g)
{
	struct query_runs_opts o = { .ids = q->sel.runs, .id_count = q->sel.run_count, .with_deleted = true,
				     .limit = q->sel.run_count, .parts = QUERY_PARAMS | QUERY_TAGS };
	struct err err = ERR_INIT;

	if (query_runs(c->api->store, &o, c->arena, runs, &err))
		return call_fail_err(c, NULL, &err), false;
	return groups_make(c, q->group_by, q->group_count, runs, g);
}

static enum call_next reply_grouped_chart(struct call *c, const struct series_query *q,
					  const struct points_chart *chart)
{
	struct js j = { .out = &c->out };
	struct query_runs runs;
	struct groups g;

	if (!read_grouped_runs(c, q, &runs, &g))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_str(&j, "x", series_x_names[q->x]);
	js_key_str(&j, "band", series_band_names[q->band]);
	write_bucket_edges(&j, chart);
	series_group_write(c, &j, &(struct series_group){ chart, &g, &runs, (enum series_band)q->band });
	js_key_int(&j, "rev", (int64_t)chart->rev);
	return js_reply(c, &j);
}

/* Replies with the chart as buckets, lines or groups. */
static enum call_next reply_chart(struct call *c, const struct series_query *q)
{
	static const enum points_x xs[] = { POINTS_X_STEP, POINTS_X_TIME, POINTS_X_ELAPSED, POINTS_X_EPOCH };
	struct points_chart_opts o = {
		.sel = q->sel, .x = xs[q->x], .from = q->from, .to = q->to, .buckets = (uint32_t)q->buckets,
		.log = q->spacing == 1,
	};
	struct js j = { .out = &c->out };
	struct points_chart chart;
	struct err err = ERR_INIT;
	size_t i;

	if (q->formula && !derived_chart(c, q->formula, &o, &chart))
		return CALL_DONE;
	if (!q->formula && points_chart(c->api->store, &o, c->arena, &chart, &err))
		return call_fail_err(c, NULL, &err);
	if (q->group_by)
		return reply_grouped_chart(c, q, &chart);
	js_open(&j, '{');
	js_key_str(&j, "x", series_x_names[q->x]);
	if (!q->form)
		write_bucket_edges(&j, &chart);
	js_key_open(&j, "series", '[');
	for (i = 0; i < chart.line_count; i++)
		write_chart_line(c, &j, q, &chart, &chart.lines[i]);
	js_close(&j, ']');
	js_key_int(&j, "rev", (int64_t)chart.rev);
	js_close(&j, '}');
	if (c->status < 300)
		buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static void write_raw_point(struct js *j, const struct points_row *r)
{
	js_open(j, '{');
	js_key_str(j, "run", r->run);
	js_key_str(j, "key", r->key);
	js_key_int(j, "rank", r->rank);
	js_key_int(j, "segment", r->segment);
	js_key_int(j, "step", r->step);
	js_key_double(j, "wall_time", r->wall_time);
	js_key_double(j, "value", r->value);
	js_close(j, '}');
}

/* Writes at most limit points. Returns a negative value after failing the call. */
static int write_raw_page(struct call *c, struct js *j, struct points_cursor *cursor, size_t limit)
{
	struct points_row *rows = arena_array(c->arena, SERIES_BATCH, sizeof(*rows));
	struct err err = ERR_INIT;
	size_t left = limit, n = 1, i;

	while (left && n) {
		if (points_next(cursor, rows, left < SERIES_BATCH ? left : SERIES_BATCH, &n, &err)) {
			call_fail_err(c, NULL, &err);
			return -1;
		}
		for (i = 0; i < n; i++)
			write_raw_point(j, &rows[i]);
		left -= n;
	}
	return 0;
}

/* Replies with one page of raw points. */
static enum call_next reply_raw_points(struct call *c, struct series_query *q)
{
	struct js j = { .out = &c->out };
	struct points_cursor *cursor;
	struct err err = ERR_INIT;
	char token[256];

	q->sel.from_step = bound_to_step(q->from, INT64_MIN, true);
	q->sel.to_step = bound_to_step(q->to, INT64_MAX, false);
	if (points_open(&cursor, c->api->store, &q->sel, q->page_token, &err))
		return err.code == ERR_USAGE ? call_fail_err(c, "page_token", &err) : call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key_open(&j, "points", '[');
	if (!write_raw_page(c, &j, cursor, (size_t)q->limit)) {
		js_close(&j, ']');
		js_key_str(&j, "next_page_token", points_token(cursor, token, sizeof(token)) ? token : NULL);
		js_close(&j, '}');
		buf_addc(&c->out, '\n');
	}
	points_close(cursor);
	return CALL_DONE;
}

/* Checks that the arguments fit together, then replies. */
static enum call_next reply_series(struct call *c, struct series_query *q)
{
	if (q->group_by && (!q->buckets || q->form || q->sel.all_segments))
		return call_fail(c, CALL_bad_value, "group_by", "group_by: needs buckets and visible segments only");
	if (q->formula && (!q->buckets || q->sel.key_count || q->sel.all_segments))
		return call_fail(c, CALL_bad_value, "formula",
				 "formula: needs buckets and visible segments only, and excludes keys");
	if ((q->group_by || q->formula) && q->sel.rank == POINTS_ALL_RANKS)
		q->sel.rank = -1; /* a run counts once */
	if (!q->buckets && q->x)
		return call_fail(c, CALL_bad_value, "x",
				 "x: raw points are ordered by step: request buckets for another x");
	if (!q->buckets && q->spacing)
		return call_fail(c, CALL_bad_value, "spacing", "spacing: raw points have no edges: request buckets");
	if (!q->buckets && q->form)
		return call_fail(c, CALL_bad_value, "form", "form: raw points have one form: request buckets");
	if (q->buckets && q->page_token)
		return call_fail(c, CALL_bad_value, "page_token", "page_token: buckets have one page: omit it");
	return q->buckets ? reply_chart(c, q) : reply_raw_points(c, q);
}

/* Reads the query from the arguments; run and key are the names of those that may repeat. */
static enum call_next answer_series(struct call *c, const char *run, const char *key)
{
	struct series_query q = { .sel.rank = POINTS_ALL_RANKS, .from = NAN, .to = NAN, .limit = SERIES_PAGE_DEFAULT };
	const char *const *values;
	bool given;

	q.sel.run_count = call_arg_all(c, run, &q.sel.runs);
	q.sel.key_count = call_arg_all(c, key, &values);
	q.sel.keys = q.sel.key_count ? values : NULL;
	q.group_count = call_arg_all(c, "group_by", &values);
	q.group_by = q.group_count ? values : NULL;
	q.page_token = call_arg(c, "page_token");
	q.formula = call_arg(c, "formula");
	if (!request_rank(c, call_arg(c, "rank"), &q.sel.rank) ||
	    !request_segments(c, call_arg(c, "segments"), &q.sel.all_segments) ||
	    !call_arg_word(c, "x", series_x_names, &q.x) || !call_arg_word(c, "form", series_forms, &q.form) ||
	    !call_arg_word(c, "spacing", series_spacings, &q.spacing) ||
	    !call_arg_word(c, "band", series_band_names, &q.band) ||
	    !call_arg_int(c, "buckets", &q.buckets, 1, 10000) ||
	    !call_arg_int(c, "limit", &q.limit, 1, SERIES_PAGE_MAX) || !call_arg_double(c, "from", &q.from, &given) ||
	    !call_arg_double(c, "to", &q.to, &given) || !call_args_done(c) ||
	    !request_run_ids(c, run, &q.sel.runs, q.sel.run_count))
		return CALL_DONE;
	request_distinct(c, &q.sel.runs, &q.sel.run_count);
	if (q.sel.keys)
		request_distinct(c, &q.sel.keys, &q.sel.key_count);
	return reply_series(c, &q);
}

enum call_next on_series_get(struct call *c)
{
	return answer_series(c, "run", "key");
}

/* Checks the kinds of the members. Returns false after failing the call. */
static bool check_series_body(struct call *c, json_t *body)
{
	const char *text;
	json_t *any;
	int64_t whole;
	double real;
	const struct json_field fields[] = {
		{ "runs", JSON_KIND_ARRAY, true, &any, NULL },
		{ "keys", JSON_KIND_ARRAY, false, &any, NULL },
		{ "group_by", JSON_KIND_ARRAY, false, &any, NULL },
		{ "rank", JSON_KIND_ANY, false, &any, NULL },
		{ "formula", JSON_KIND_STRING, false, &text, NULL },
		{ "x", JSON_KIND_STRING, false, &text, NULL },
		{ "form", JSON_KIND_STRING, false, &text, NULL },
		{ "spacing", JSON_KIND_STRING, false, &text, NULL },
		{ "band", JSON_KIND_STRING, false, &text, NULL },
		{ "segments", JSON_KIND_STRING, false, &text, NULL },
		{ "page_token", JSON_KIND_STRING, false, &text, NULL },
		{ "buckets", JSON_KIND_INT, false, &whole, NULL },
		{ "limit", JSON_KIND_INT, false, &whole, NULL },
		{ "from", JSON_KIND_DOUBLE, false, &real, NULL },
		{ "to", JSON_KIND_DOUBLE, false, &real, NULL },
		{ 0 },
	};

	return json_read(c, body, "", fields);
}

/* Makes the members of the body the arguments of the call; an array is an argument that repeats. Returns false after
 * failing the call. */
static bool take_body_args(struct call *c, json_t *body)
{
	size_t n = 0, room = 0, i;
	json_t *value, *item;
	const char *name;

	json_object_foreach(body, name, value)
		room += json_is_array(value) ? json_array_size(value) : 1;
	c->address.args = arena_array(c->arena, room + 1, sizeof(*c->address.args));
	c->address.arg_count = room;
	json_object_foreach(body, name, value) {
		for (i = 0; i < (json_is_array(value) ? json_array_size(value) : 1); i++) {
			item = json_is_array(value) ? json_array_get(value, i) : value;
			c->address.args[n].name = arena_strdup(c->arena, name);
			c->address.args[n].value =
				json_is_array(value) && !json_is_string(item) ? NULL : request_scalar(c, item);
			if (!c->address.args[n++].value)
				return call_fail(c, CALL_bad_value, c->address.args[n - 1].name, "%s: expected %s",
						 name,
						 json_is_array(value) ? "an array of strings" : "a string or a number"),
				       false;
		}
	}
	return true;
}

enum call_next on_series_query(struct call *c)
{
	json_t *body = json_body(c);
	bool ok = body && call_args_done(c) && check_series_body(c, body) && take_body_args(c, body);

	json_decref(body);
	return ok ? answer_series(c, "runs", "keys") : CALL_DONE;
}
