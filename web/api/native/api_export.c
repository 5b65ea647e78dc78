/* SPDX-License-Identifier: Apache-2.0 */
/* api_export.c: exports of runs and of every point of runs as CSV, JSON or JSON lines. Every format has the same
 * columns with the same names; doubles read back bit for bit. */
#include "web/api/native/native_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"

void export_tag(struct call *c, const struct query_run *runs, size_t count, uint64_t rev)
{
	struct buf text;
	char digest[65];
	size_t i;

	buf_init(&text, SIZE_MAX);
	buf_addf(&text, "%s\n%s\n%" PRIu64 "\n", c->route->pattern, store_id(c->api->store), rev);
	for (i = 0; i < c->address.arg_count; i++)
		buf_addf(&text, "%s=%s\n", c->address.args[i].name, c->address.args[i].value);
	for (i = 0; i < count; i++)
		buf_addf(&text, "%s %" PRIu64 "\n", runs[i].id, runs[i].rev);
	sha256_hex(text.data, text.len, digest);
	c->reply.etag = arena_printf(c->arena, "W/\"%.32s\"", digest);
	buf_done(&text);
}

bool export_raw_arg(struct call *c, bool *ret_raw)
{
	int64_t raw = 0;

	if (!call_arg_int(c, "raw", &raw, 0, 1))
		return false;
	*ret_raw = raw;
	return true;
}

void export_csv_text(struct buf *out, const char *text, bool raw)
{
	const bool formula = !raw && text_is_formula(text);

	if (!strpbrk(text, ",\"\r\n")) {
		buf_addf(out, "%s%s", formula ? "'" : "", text);
		return;
	}
	buf_adds(out, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_addc(out, '"');
		buf_addc(out, *text);
	}
	buf_addc(out, '"');
}

void export_row_open(struct export_row *r)
{
	r->js = (struct js){ .out = r->out };
	r->begun = false;
	if (r->format != EXPORT_CSV)
		js_open(&r->js, '{');
}

void export_row_close(struct export_row *r)
{
	if (r->format != EXPORT_CSV)
		js_close(&r->js, '}');
	if (r->format != EXPORT_JSON)
		buf_adds(r->out, "\n");
}

static void add_row_separator(struct export_row *r)
{
	if (r->begun)
		buf_addc(r->out, ',');
	r->begun = true;
}

void export_row_none(struct export_row *r)
{
	if (r->format == EXPORT_CSV)
		add_row_separator(r);
}

void export_row_text(struct export_row *r, const char *name, const char *text)
{
	if (!text) {
		export_row_none(r);
	} else if (r->format == EXPORT_CSV) {
		add_row_separator(r);
		export_csv_text(r->out, text, r->raw);
	} else {
		js_key_str(&r->js, name, text);
	}
}

void export_row_int(struct export_row *r, const char *name, int64_t v)
{
	if (r->format == EXPORT_CSV) {
		add_row_separator(r);
		buf_addf(r->out, "%" PRId64, v);
	} else {
		js_key_int(&r->js, name, v);
	}
}

void export_row_double(struct export_row *r, const char *name, double v)
{
	char text[JS_DOUBLE_MAX];

	if (r->format == EXPORT_CSV) {
		add_row_separator(r);
		buf_add(r->out, text, js_print_double(text, v));
	} else {
		js_key_double(&r->js, name, v);
	}
}

void export_row_time(struct export_row *r, const char *name, int64_t ms)
{
	if (ms == INT64_MIN)
		export_row_none(r);
	else
		export_row_int(r, name, ms);
}

const char *export_type(enum export_format format)
{
	static const char *const types[] = { "text/csv; charset=utf-8", "application/json", "application/x-ndjson" };

	return types[format];
}

/* --- /export/series.*: every point of runs ---------------------------------------------------------------------- */

enum { EXPORT_POINTS_BATCH = 512, EXPORT_PIECE_BYTES = 32768 };

struct export_series {
	struct points_cursor *cursor;
	enum export_format format;
	bool any, raw;
	struct points_row rows[EXPORT_POINTS_BATCH];
};

static void free_series_export(void *state)
{
	struct export_series *e = state;

	points_close(e->cursor);
	free(e);
}

static void export_point_row(struct export_series *e, struct buf *out, const struct points_row *p)
{
	struct export_row r = { .out = out, .format = e->format, .raw = e->raw };

	if (e->any && e->format == EXPORT_JSON)
		buf_adds(out, ",\n");
	e->any = true;
	export_row_open(&r);
	export_row_text(&r, "run_id", p->run);
	export_row_text(&r, "run_name", p->run_name);
	export_row_text(&r, "key", p->key);
	export_row_int(&r, "rank", p->rank);
	export_row_int(&r, "segment", p->segment);
	export_row_int(&r, "step", p->step);
	export_row_double(&r, "wall_time", p->wall_time);
	export_row_double(&r, "value", p->value);
	export_row_close(&r);
}

static int fill_series_export(void *state, struct buf *out, bool tick, struct err *err)
{
	struct export_series *e = state;
	size_t n, i;

	(void)tick;
	do {
		int rc = points_next(e->cursor, e->rows, EXPORT_POINTS_BATCH, &n, err);

		if (rc)
			return rc;
		for (i = 0; i < n; i++)
			export_point_row(e, out, &e->rows[i]);
	} while (n && out->len < EXPORT_PIECE_BYTES);
	if (n)
		return STREAM_MORE;
	if (e->format == EXPORT_JSON)
		buf_adds(out, "\n]\n");
	return STREAM_END;
}

/* Reads the runs. Without run= they are those of experiment= and filter=, oldest first. */
static bool read_exported_runs(struct call *c, struct points_sel *sel)
{
	struct query_runs_opts o = { .order_by = "start_time", .limit = 50000, .bare = true };
	const char *const *values;
	struct query_runs runs;
	struct err err = ERR_INIT;
	const char **ids;
	size_t i;

	sel->run_count = call_arg_all(c, "run", &values);
	sel->runs = values;
	if (sel->run_count && (call_arg(c, "experiment") || call_arg(c, "filter")))
		return call_fail(c, CALL_bad_value, "run", "run: selects the runs already: omit experiment and filter"),
		       false;
	if (sel->run_count)
		return true;
	o.experiment_count = call_arg_all(c, "experiment", &values);
	o.experiments = o.experiment_count ? values : NULL;
	o.filter = call_arg(c, "filter");
	if (!o.experiments && !o.filter)
		return call_fail(c, CALL_bad_value, "run", "run: expected at least one run, or an experiment"), false;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return request_refused(c, &err), false;
	ids = arena_array(c->arena, runs.count + 1, sizeof(*ids));
	for (i = 0; i < runs.count; i++)
		ids[i] = runs.items[i].id;
	sel->runs = ids;
	sel->run_count = runs.count;
	return true;
}

/* Reads which points are exported; returns false after failing the call. */
static bool read_series_export_args(struct call *c, struct points_sel *sel)
{
	const char *const *values;
	int64_t from = INT64_MIN, to = INT64_MAX;

	if (!read_exported_runs(c, sel))
		return false;
	sel->key_count = call_arg_all(c, "key", &values);
	sel->keys = sel->key_count ? values : NULL;
	sel->rank = POINTS_ALL_RANKS;
	if (!request_rank(c, call_arg(c, "rank"), &sel->rank) ||
	    !call_arg_int(c, "from", &from, INT64_MIN, INT64_MAX) ||
	    !call_arg_int(c, "to", &to, INT64_MIN, INT64_MAX) ||
	    !request_segments(c, call_arg(c, "segments"), &sel->all_segments) || !call_args_done(c))
		return false;
	sel->from_step = from;
	sel->to_step = to;
	if (sel->run_count && !request_run_ids(c, "run", &sel->runs, sel->run_count))
		return false;
	request_distinct(c, &sel->runs, &sel->run_count);
	if (sel->keys)
		request_distinct(c, &sel->keys, &sel->key_count);
	return true;
}

/* A missing run is an error here, not an empty table. */
static bool check_exported_runs(struct call *c, const struct points_sel *sel)
{
	struct query_runs_opts o = { .ids = sel->runs, .id_count = sel->run_count, .limit = 50000, .with_deleted = true,
				     .bare = true };
	struct query_runs runs;
	struct err err = ERR_INIT;
	size_t i, k;

	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return request_refused(c, &err), false;
	for (i = 0; i < sel->run_count; i++) {
		for (k = 0; k < runs.count && strcmp(runs.items[k].id, sel->runs[i]); k++)
			;
		if (k == runs.count)
			return call_fail(c, CALL_not_found, "run", "no run %s", sel->runs[i]), false;
	}
	export_tag(c, runs.items, runs.count, 0);
	return true;
}

/* Starts the stream; the head of a CSV file is written at once. */
static enum call_next stream_series_export(struct call *c, enum export_format format)
{
	struct call_stream s = { .fill = fill_series_export, .release = free_series_export };
	struct points_sel sel = { 0 };
	struct export_series *e;
	struct err err = ERR_INIT;
	bool raw = false;

	if ((format == EXPORT_CSV && !export_raw_arg(c, &raw)) || !read_series_export_args(c, &sel) ||
	    !check_exported_runs(c, &sel))
		return CALL_DONE;
	e = mem_zalloc(sizeof(*e));
	e->format = format;
	e->raw = raw;
	if (points_open(&e->cursor, c->api->store, &sel, NULL, &err)) {
		free(e);
		return call_fail_err(c, NULL, &err);
	}
	s.state = e;
	if (format == EXPORT_CSV)
		buf_adds(&c->out, "run_id,run_name,key,rank,segment,step,wall_time,value\n");
	if (format == EXPORT_JSON)
		buf_adds(&c->out, "[\n");
	if (call_stream(c, &s, &err))
		return call_fail_err(c, NULL, &err);
	c->type = export_type(format);
	c->reply.disposition = format == EXPORT_CSV ? "attachment; filename=series.csv" : NULL;
	return CALL_DONE;
}

enum call_next on_export_series_csv(struct call *c)
{
	return stream_series_export(c, EXPORT_CSV);
}

enum call_next on_export_series_json(struct call *c)
{
	return stream_series_export(c, EXPORT_JSON);
}

enum call_next on_export_series_jsonl(struct call *c)
{
	return stream_series_export(c, EXPORT_JSONL);
}

/* --- /export/runs.*: the complete table of runs ----------------------------------------------------------------- */

enum { EXPORT_RUNS_BATCH = 200 };

struct export_runs {
	struct store *store;
	struct arena *arena; /* lives as long as the export */
	enum export_format format;
	struct query_runs_opts opts;
	struct query_keys keys;
	char token[1024]; /* "": the first page */
	bool any, raw, layers; /* layers: with the series of each layer */
};

static void free_runs_export(void *state)
{
	struct export_runs *e = state;

	arena_free(e->arena);
	free(e);
}

static const char *const run_columns[] = { "run_id", "run_name", "status", "start_time", "end_time" };
static const char *const metric_columns[] = { "last",  "min",	   "max",      "first",
					      "count", "min_step", "max_step", "last_step" };

enum { RUN_COLUMNS = 5, METRIC_COLUMNS = 8 };

/* Names the columns, which have the keys of all runs. */
static void write_csv_head(struct export_runs *e, struct buf *out)
{
	size_t i, k;

	for (i = 0; i < RUN_COLUMNS; i++)
		buf_addf(out, "%s%s", i ? "," : "", run_columns[i]);
	for (i = 0; i < e->keys.param_count; i++) {
		buf_addc(out, ',');
		export_csv_text(out, arena_printf(e->arena, "params.%s", e->keys.params[i]), e->raw);
	}
	for (i = 0; i < e->keys.metric_count; i++)
		for (k = 0; k < METRIC_COLUMNS; k++) {
			buf_addc(out, ',');
			export_csv_text(out,
					arena_printf(e->arena, "metrics.%s.%s", e->keys.metrics[i], metric_columns[k]),
					e->raw);
		}
	for (i = 0; i < e->keys.tag_count; i++) {
		buf_addc(out, ',');
		export_csv_text(out, arena_printf(e->arena, "tags.%s", e->keys.tags[i]), e->raw);
	}
	buf_adds(out, ",experiment\n");
}

/* Both lists are sorted by key, so one pass over the columns finds every value. */
static void export_sorted_pairs(struct export_row *r, const char *prefix, const char *const *keys, size_t n,
				const struct query_kv *kv)
{
	char name[600];
	size_t i;

	for (i = 0; i < n; i++) {
		if (!kv->key || strcmp(kv->key, keys[i])) {
			export_row_none(r);
			continue;
		}
		snprintf(name, sizeof(name), "%s.%s", prefix, kv->key);
		export_row_text(r, name, kv->value);
		kv++;
	}
}

/* A copy that ends in a NULL key, so that the pass needs no count. */
static const struct query_kv *terminate_pairs(struct arena *a, const struct query_kv *kv, size_t n)
{
	struct query_kv *copy = arena_array(a, n + 1, sizeof(*copy));

	if (n)
		memcpy(copy, kv, n * sizeof(*kv));
	return copy;
}

static void export_metric_columns(struct export_row *r, const struct query_metric *m)
{
	const double values[] = { m->last, m->min, m->max, m->first };
	const int64_t counts[] = { (int64_t)m->count, m->min_step, m->max_step, m->last_step };
	char name[600];
	size_t k;

	for (k = 0; k < METRIC_COLUMNS; k++) {
		bool extreme = k == 1 || k == 2 || k == 5 || k == 6;

		snprintf(name, sizeof(name), "metrics.%s.%s", m->key, metric_columns[k]);
		if (extreme && isnan(m->min))
			export_row_none(r);
		else if (k < 4)
			export_row_double(r, name, values[k]);
		else
			export_row_int(r, name, counts[k - 4]);
	}
}

static void export_run_metrics(struct export_row *r, const struct export_runs *e, const struct query_run *run)
{
	const struct query_keys *keys = &e->keys;
	size_t i, k, at = 0;

	for (i = 0; i < keys->metric_count; i++) {
		while (!e->layers && at < run->metric_count && query_layer_group(run->metrics[at].key))
			at++;
		if (at < run->metric_count && !strcmp(run->metrics[at].key, keys->metrics[i])) {
			export_metric_columns(r, &run->metrics[at++]);
			continue;
		}
		for (k = 0; k < METRIC_COLUMNS; k++)
			export_row_none(r);
	}
}

/* Writes the row of one run. */
static void export_run_row(struct export_runs *e, struct arena *a, struct buf *out, const struct query_run *run)
{
	struct export_row r = { .out = out, .format = e->format, .raw = e->raw };
	const struct query_kv *params = terminate_pairs(a, run->params, run->param_count);
	const struct query_kv *tags = terminate_pairs(a, run->tags, run->tag_count);

	if (e->any && e->format == EXPORT_JSON)
		buf_adds(out, ",\n");
	e->any = true;
	export_row_open(&r);
	export_row_text(&r, "run_id", run->id);
	export_row_text(&r, "run_name", run->name);
	export_row_text(&r, "status", run->status);
	export_row_time(&r, "start_time", run->start_ms);
	export_row_time(&r, "end_time", run->end_ms);
	export_sorted_pairs(&r, "params", e->keys.params, e->keys.param_count, params);
	export_run_metrics(&r, e, run);
	export_sorted_pairs(&r, "tags", e->keys.tags, e->keys.tag_count, tags);
	export_row_text(&r, "experiment", run->experiment);
	export_row_close(&r);
}

/* Writes one page of runs: STREAM_END after the last. */
static int export_runs_page(struct export_runs *e, struct arena *a, struct buf *out, struct err *err)
{
	struct query_runs runs;
	int rc;
	size_t i;

	e->opts.page_token = e->token;
	rc = query_runs(e->store, &e->opts, a, &runs, err);
	if (rc)
		return rc;
	for (i = 0; i < runs.count; i++)
		export_run_row(e, a, out, &runs.items[i]);
	if (runs.next_page_token)
		snprintf(e->token, sizeof(e->token), "%s", runs.next_page_token);
	else if (e->format == EXPORT_JSON)
		buf_adds(out, "\n]\n");
	return runs.next_page_token ? STREAM_MORE : STREAM_END;
}

static int fill_runs_export(void *state, struct buf *out, bool tick, struct err *err)
{
	struct arena *a = arena_new();
	int rc = export_runs_page(state, a, out, err);

	(void)tick;
	arena_free(a);
	return rc;
}

/* Copies the arguments into the export's own arena. */
static bool read_runs_export_args(struct call *c, struct export_runs *e)
{
	const char *const *values;
	const char **names;
	size_t n = call_arg_all(c, "experiment", &values), i;
	const char *filter = call_arg(c, "filter"), *order = call_arg(c, "order_by");
	int64_t all = e->format != EXPORT_CSV;

	if (e->format == EXPORT_CSV &&
	    (!call_arg_int(c, "all", &all, 0, 1) || !export_raw_arg(c, &e->raw)))
		return false;
	if (!call_args_done(c))
		return false;
	e->layers = all;
	names = arena_array(e->arena, n + 1, sizeof(*names));
	for (i = 0; i < n; i++)
		names[i] = arena_strdup(e->arena, values[i]);
	e->opts = (struct query_runs_opts){
		.experiments = n ? names : NULL,
		.experiment_count = n,
		.filter = filter ? arena_strdup(e->arena, filter) : NULL,
		.order_by = order ? arena_strdup(e->arena, order) : NULL,
		.limit = EXPORT_RUNS_BATCH,
	};
	return true;
}

static void drop_layer_columns(struct query_keys *keys)
{
	size_t n = 0;

	for (size_t i = 0; i < keys->metric_count; i++)
		if (!query_layer_group(keys->metrics[i]))
			keys->metrics[n++] = keys->metrics[i];
	keys->metric_count = n;
}

/* Sets the entity tag from the state of the store, and reads the columns. An invalid filter fails here. */
static int probe_runs_export(struct call *c, struct export_runs *e, struct err *err)
{
	struct query_runs_opts probe = e->opts;
	struct query_runs runs;
	int rc;

	probe.limit = 1;
	probe.bare = true;
	rc = query_runs(e->store, &probe, c->arena, &runs, err);
	if (rc)
		return rc;
	export_tag(c, NULL, 0, runs.rev);
	rc = query_keys(e->store, e->opts.experiment_count == 1 ? e->opts.experiments[0] : NULL, e->arena, &e->keys,
			err);
	if (!rc && !e->layers)
		drop_layer_columns(&e->keys);
	return rc;
}

/* Starts the stream; the head of a CSV file is written at once. */
static enum call_next stream_runs_export(struct call *c, enum export_format format)
{
	struct export_runs *e = mem_zalloc(sizeof(*e));
	const struct call_stream s = { .fill = fill_runs_export, .release = free_runs_export, .state = e };
	struct err err = ERR_INIT;

	e->arena = arena_new();
	e->store = c->api->store;
	e->format = format;
	if (!read_runs_export_args(c, e)) {
		free_runs_export(e);
		return CALL_DONE;
	}
	if (probe_runs_export(c, e, &err)) {
		free_runs_export(e);
		return request_refused(c, &err);
	}
	if (format == EXPORT_CSV)
		write_csv_head(e, &c->out);
	if (format == EXPORT_JSON)
		buf_adds(&c->out, "[\n");
	if (call_stream(c, &s, &err))
		return request_refused(c, &err);
	c->type = export_type(format);
	c->reply.disposition = format == EXPORT_CSV ? "attachment; filename=runs.csv" : NULL;
	return CALL_DONE;
}

enum call_next on_export_runs_csv(struct call *c)
{
	return stream_runs_export(c, EXPORT_CSV);
}

enum call_next on_export_runs_json(struct call *c)
{
	return stream_runs_export(c, EXPORT_JSON);
}

enum call_next on_export_runs_jsonl(struct call *c)
{
	return stream_runs_export(c, EXPORT_JSONL);
}
