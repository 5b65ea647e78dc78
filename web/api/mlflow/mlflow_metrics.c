/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_metrics.c: MLflow's histories of metrics: pages, several runs in one request, samples. */
#include "web/api/mlflow/mlflow_request.h"

#include "web/store/read/history.h"

enum { HISTORY_PAGE = 25000, BULK_RUNS = 100, BULK_POINTS = 25000, SAMPLE_POINTS = 2500 };

int64_t ml_time_ms(double wall_s)
{
	return history_time_ms(wall_s);
}

static void write_ml_point(struct js *j, const char *key, const struct sum_point *p, const char *run)
{
	js_open(j, '{');
	js_key_str(j, "key", key);
	js_key_double(j, "value", p->value);
	js_key_int(j, "timestamp", history_time_ms(p->time));
	js_key_int(j, "step", p->step);
	if (run)
		js_key_str(j, "run_id", run);
	js_close(j, '}');
}

/* --- the complete history as a stream ------------------------------------------------------------------------- */

struct history_stream {
	struct store *store;
	struct history_sel sel;
	struct arena *arena; /* owns this struct and its strings */
	bool listed;	     /* the list of points is open */
	struct js js;
};

static void free_history_stream(void *state)
{
	struct history_stream *w = state;

	arena_free(w->arena);
}

/* MLflow omits empty lists. */
static void write_history_points(struct history_stream *w, const struct history_points *page)
{
	size_t i;

	if (page->count && !w->listed) {
		js_key_open(&w->js, "metrics", '[');
		w->listed = true;
	}
	for (i = 0; i < page->count; i++)
		write_ml_point(&w->js, w->sel.key, &page->points[i], NULL);
}

static int fill_history_stream(void *state, struct buf *out, bool tick, struct err *err)
{
	struct history_stream *w = state;
	struct arena *a = arena_new();
	struct history_points page;
	int rc = history_page(w->store, &w->sel, a, &page, err);

	(void)tick;
	w->js.out = out;
	if (!rc)
		write_history_points(w, &page);
	arena_free(a);
	if (rc || (page.more && page.count))
		return rc ? rc : STREAM_MORE;
	if (w->listed)
		js_close(&w->js, ']');
	js_close(&w->js, '}');
	return STREAM_END;
}

/* Streams the complete history of a metric, in pages of 1000 points. */
static enum call_next stream_history(struct call *c, const char *run, const char *key)
{
	struct arena *a = arena_new();
	struct history_stream *w = arena_alloc(a, sizeof(*w));
	struct call_stream s = { .fill = fill_history_stream, .release = free_history_stream };
	struct err err = ERR_INIT;

	*w = (struct history_stream){ .store = c->api->store,
			     .arena = a,
			     .sel = { .run = arena_strdup(a, run), .key = arena_strdup(a, key), .limit = 1000 } };
	w->js.out = &c->out;
	js_open(&w->js, '{');
	s.state = w;
	return call_stream(c, &s, &err) ? ml_fail_err(c, &err) : CALL_DONE;
}

static bool check_history_limit(struct call *c, int64_t limit)
{
	if (limit >= 1)
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		"Invalid value %lld for parameter 'max_results' supplied. It must be a positive integer.",
		(long long)limit);
	return false;
}

enum call_next on_ml_history_get(struct call *c)
{
	struct history_sel sel = { 0 };
	const char *token = NULL;
	int64_t limit = 0;
	bool limited = false;
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &sel.run, NULL },
		{ "metric_key", ML_STRING, true, &sel.key, NULL },
		{ "page_token", ML_STRING, false, &token, NULL },
		{ "max_results", ML_INT, false, &limit, &limited },
		{ 0 },
	};
	struct js j = { .out = &c->out };
	struct history_points page;
	struct err err = ERR_INIT;
	char next[HISTORY_TOKEN_BYTES];
	size_t i;

	if (!ml_args(c, fields) || (limited && !check_history_limit(c, limit)))
		return CALL_DONE;
	if (history_parse(&sel.place, token, &err))
		return ml_fail_err(c, &err);
	if (!limited && !sel.place.begun)
		return stream_history(c, sel.run, sel.key);
	sel.limit = limited && limit < HISTORY_PAGE ? (size_t)limit : HISTORY_PAGE;
	if (history_page(c->api->store, &sel, c->arena, &page, &err))
		return ml_fail_err(c, &err);
	js_open(&j, '{');
	if (page.count) {
		js_key_open(&j, "metrics", '[');
		for (i = 0; i < page.count; i++)
			write_ml_point(&j, sel.key, &page.points[i], NULL);
		js_close(&j, ']');
	}
	if (page.more) {
		history_token(&sel.place, next);
		js_key_str(&j, "next_page_token", next);
	}
	js_close(&j, '}');
	return CALL_DONE;
}

/* --- several runs ------------------------------------------------------------------------------------------- */

static int compare_run_ids(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static bool check_bulk_request(struct call *c, const struct ml_strings *runs, const char *key)
{
	static const char name[] = "GetMetricHistoryBulk request";

	if (runs->count > BULK_RUNS)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s cannot specify more than %d run_ids. Received %zu run_ids.",
			name, BULK_RUNS, runs->count);
	else if (!runs->count)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s must specify at least one run_id.", name);
	else if (!key)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s must specify a metric_key.", name);
	else
		return true;
	return false;
}

enum call_next on_ml_history_bulk(struct call *c)
{
	struct ml_strings runs = { 0 };
	int64_t limit = BULK_POINTS;
	const char *key = NULL;
	const struct ml_field fields[] = {
		{ "run_id", ML_STRINGS, false, &runs, NULL }, { "metric_key", ML_STRING, false, &key, NULL },
		{ "max_results", ML_INT, false, &limit, NULL }, { 0 },
	};
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	size_t i, k;

	if (!ml_args(c, fields) || !check_bulk_request(c, &runs, key))
		return CALL_DONE;
	limit = limit < 0 || limit > BULK_POINTS ? BULK_POINTS : limit; /* negative: no limit, as in SQL */
	qsort(runs.items, runs.count, sizeof(*runs.items), compare_run_ids);
	js_open(&j, '{');
	js_key_open(&j, "metrics", '[');
	for (i = 0; i < runs.count && limit > 0; i++) {
		struct history_sel sel = { .run = runs.items[i], .key = key, .limit = (size_t)limit };
		struct history_points page;

		if (i && !strcmp(runs.items[i], runs.items[i - 1]))
			continue;
		if (history_page(c->api->store, &sel, c->arena, &page, &err))
			return ml_fail_err(c, &err);
		for (k = 0; k < page.count; k++)
			write_ml_point(&j, key, &page.points[k], sel.run);
		limit -= (int64_t)page.count;
	}
	js_close(&j, ']');
	js_close(&j, '}');
	return CALL_DONE;
}

static bool check_step_range(struct call *c, const struct history_sample *sel, bool from, bool to)
{
	if (from != to)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"If either start step or end step are specified, both must be specified.");
	else if (from && sel->from > sel->to)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"end_step must be greater than start_step. Found start_step=%lld and "
			"end_step=%lld.",
			(long long)sel->from, (long long)sel->to);
	else
		return true;
	return false;
}

static bool check_sample_request(struct call *c, size_t runs, int64_t limit)
{
	if (runs > BULK_RUNS)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			"GetMetricHistoryBulkInterval request must specify at most %d run_ids. Received %zu "
			"run_ids." ML_SEE_DOCS,
			BULK_RUNS, runs);
	else if (limit < 1 || limit > SAMPLE_POINTS)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "max_results must be between 1 and %d." ML_SEE_DOCS,
			SAMPLE_POINTS);
	else
		return true;
	return false;
}

enum call_next on_ml_history_interval(struct call *c)
{
	struct history_sample sel = { .from = INT64_MIN, .to = INT64_MAX };
	struct ml_strings runs = { 0 };
	int64_t limit = SAMPLE_POINTS;
	bool from = false, to = false, any = false;
	const struct ml_field fields[] = {
		{ "run_ids", ML_STRINGS, true, &runs, NULL },	   { "metric_key", ML_STRING, true, &sel.key, NULL },
		{ "start_step", ML_INT, false, &sel.from, &from }, { "end_step", ML_INT, false, &sel.to, &to },
		{ "max_results", ML_INT, false, &limit, NULL },	   { 0 },
	};
	struct js j = { .out = &c->out };
	struct history_points sample;
	struct err err = ERR_INIT;
	size_t i, k;

	if (!ml_args(c, fields) || !check_sample_request(c, runs.count, limit) || !check_step_range(c, &sel, from, to))
		return CALL_DONE;
	sel.n = (size_t)limit;
	js_open(&j, '{');
	for (i = 0; i < runs.count; i++) {
		sel.run = runs.items[i];
		if (history_sample(c->api->store, &sel, c->arena, &sample, &err))
			return ml_fail_err(c, &err);
		if (sample.count && !any) {
			js_key_open(&j, "metrics", '[');
			any = true;
		}
		for (k = 0; k < sample.count; k++)
			write_ml_point(&j, sel.key, &sample.points[k], sel.run);
	}
	if (any)
		js_close(&j, ']');
	js_close(&j, '}');
	return CALL_DONE;
}
