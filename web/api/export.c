/* export.c: /export: the table of runs and full series, streamed, as CSV, JSON or JSON lines. Every format carries
 * the same columns under the same names; doubles read back bit for bit. */
#include "web/api/api.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"

/* Names what a stream will hold without making it: the request and the state of what it reads. The stream may come out
 * newer than its tag says, never older. */
static void export_tag(struct call *c, const struct query_run *runs, size_t count, uint64_t rev)
{
	struct buf text;
	char digest[65];
	size_t i;

	buf_init(&text, 64 << 20);
	buf_addf(&text, "%s\n%s\n%" PRIu64 "\n", c->route->pattern, store_id(c->api->store), rev);
	for (i = 0; i < c->arg_count; i++)
		buf_addf(&text, "%s=%s\n", c->args[i].name, c->args[i].value);
	for (i = 0; i < count; i++)
		buf_addf(&text, "%s %" PRIu64 "\n", runs[i].id, runs[i].rev);
	if (!buf_failed(&text)) {
		sha256_hex(text.data, text.len, digest);
		c->etag = arena_printf(c->arena, "W/\"%.32s\"", digest);
	}
	buf_done(&text);
}

enum export_format { EXPORT_CSV, EXPORT_JSON, EXPORT_JSONL };
enum { EXPORT_RUNS_BATCH = 200, EXPORT_POINTS_BATCH = 512, EXPORT_PIECE_BYTES = 32768 };

/* One row in the making. CSV needs every column, JSON leaves out what is not there. */
struct row {
	struct buf *out;
	struct js js;
	enum export_format format;
	bool begun;
};

static void csv_text(struct buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\n")) {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_addc(out, '"');
		buf_addc(out, *text);
	}
	buf_addc(out, '"');
}

static void row_open(struct row *r)
{
	r->js = (struct js){ .out = r->out };
	r->begun = false;
	if (r->format != EXPORT_CSV)
		js_open(&r->js, '{');
}

static void row_close(struct row *r)
{
	if (r->format != EXPORT_CSV)
		js_close(&r->js, '}');
	if (r->format != EXPORT_JSON)
		buf_adds(r->out, "\n");
}

static void row_sep(struct row *r)
{
	if (r->begun)
		buf_addc(r->out, ',');
	r->begun = true;
}

static void row_none(struct row *r)
{
	if (r->format == EXPORT_CSV)
		row_sep(r);
}

static void row_text(struct row *r, const char *name, const char *text)
{
	if (!text) {
		row_none(r);
	} else if (r->format == EXPORT_CSV) {
		row_sep(r);
		csv_text(r->out, text);
	} else {
		js_key_str(&r->js, name, text);
	}
}

static void row_int(struct row *r, const char *name, int64_t v)
{
	if (r->format == EXPORT_CSV) {
		row_sep(r);
		buf_addf(r->out, "%" PRId64, v);
	} else {
		js_key_int(&r->js, name, v);
	}
}

static void row_double(struct row *r, const char *name, double v)
{
	char text[JSON_DOUBLE_MAX];

	if (r->format == EXPORT_CSV) {
		row_sep(r);
		buf_add(r->out, text, json_print_double(text, v));
	} else {
		js_key_double(&r->js, name, v);
	}
}

static void row_time(struct row *r, const char *name, int64_t ms)
{
	if (ms == INT64_MIN)
		row_none(r);
	else
		row_int(r, name, ms);
}

static void csv_head(struct buf *out, const char *const *names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (i)
			buf_addc(out, ',');
		csv_text(out, names[i]);
	}
	buf_adds(out, "\n");
}

static const char *export_type(enum export_format format)
{
	static const char *const types[] = { "text/csv; charset=utf-8", "application/json", "application/x-ndjson" };

	return types[format];
}

/* --- the table of runs ------------------------------------------------------------------------------------ */

struct export_runs {
	struct store *store;
	struct arena *arena; /* as long as the export */
	enum export_format format;
	struct query_runs_opts opts;
	struct query_keys keys;
	const char *token; /* "": the first page */
	char token_text[1024];
	bool begun, ended, any;
};

static void export_runs_release(void *state)
{
	struct export_runs *e = state;

	arena_free(e->arena);
	free(e);
}

static const char *const run_columns[] = { "run_id", "run_name", "status", "start_time", "end_time" };
static const char *const metric_columns[] = { "last", "min", "max", "first", "count", "min_step", "max_step",
					      "last_step" };

enum { RUN_COLUMNS = 5, METRIC_COLUMNS = 8 };

static void export_runs_head(struct export_runs *e, struct buf *out)
{
	size_t i, k;

	for (i = 0; i < RUN_COLUMNS; i++)
		buf_addf(out, "%s%s", i ? "," : "", run_columns[i]);
	for (i = 0; i < e->keys.param_count; i++) {
		buf_addc(out, ',');
		csv_text(out, arena_printf(e->arena, "params.%s", e->keys.params[i]));
	}
	for (i = 0; i < e->keys.metric_count; i++)
		for (k = 0; k < METRIC_COLUMNS; k++) {
			buf_addc(out, ',');
			csv_text(out, arena_printf(e->arena, "metrics.%s.%s", e->keys.metrics[i], metric_columns[k]));
		}
	for (i = 0; i < e->keys.tag_count; i++) {
		buf_addc(out, ',');
		csv_text(out, arena_printf(e->arena, "tags.%s", e->keys.tags[i]));
	}
	buf_adds(out, ",experiment\n");
}

/* Both lists are sorted by key, so one walk over the columns finds every value. */
static void export_pairs(struct row *r, const char *prefix, const char *const *keys, size_t n,
			 const struct query_kv *kv)
{
	char name[600];
	size_t i;

	for (i = 0; i < n; i++) {
		if (!kv->key || strcmp(kv->key, keys[i])) {
			row_none(r);
			continue;
		}
		snprintf(name, sizeof(name), "%s.%s", prefix, kv->key);
		row_text(r, name, kv->value);
		kv++;
	}
}

/* A copy that ends in a NULL key, so that the walk needs no count. */
static const struct query_kv *pairs_ended(struct arena *a, const struct query_kv *kv, size_t n)
{
	struct query_kv *copy = arena_array(a, n + 1, sizeof(*copy));

	if (copy && n)
		memcpy(copy, kv, n * sizeof(*kv));
	return copy;
}

static void export_metric(struct row *r, const struct query_metric *m)
{
	const double values[] = { m->last, m->min, m->max, m->first };
	const int64_t counts[] = { (int64_t)m->count, m->min_step, m->max_step, m->last_step };
	char name[600];
	size_t k;

	for (k = 0; k < METRIC_COLUMNS; k++) {
		bool extreme = k == 1 || k == 2 || k == 5 || k == 6;

		snprintf(name, sizeof(name), "metrics.%s.%s", m->key, metric_columns[k]);
		if (extreme && isnan(m->min))
			row_none(r);
		else if (k < 4)
			row_double(r, name, values[k]);
		else
			row_int(r, name, counts[k - 4]);
	}
}

static void export_metrics(struct row *r, const struct query_keys *keys, const struct query_run *run)
{
	size_t i, k, at = 0;

	for (i = 0; i < keys->metric_count; i++) {
		if (at < run->metric_count && !strcmp(run->metrics[at].key, keys->metrics[i])) {
			export_metric(r, &run->metrics[at++]);
			continue;
		}
		for (k = 0; k < METRIC_COLUMNS; k++)
			row_none(r);
	}
}

static bool export_run(struct export_runs *e, struct arena *a, struct buf *out, const struct query_run *run)
{
	struct row r = { .out = out, .format = e->format };
	const struct query_kv *params = pairs_ended(a, run->params, run->param_count);
	const struct query_kv *tags = pairs_ended(a, run->tags, run->tag_count);

	if (!params || !tags)
		return false;
	if (e->any && e->format == EXPORT_JSON)
		buf_adds(out, ",\n");
	e->any = true;
	row_open(&r);
	row_text(&r, "run_id", run->id);
	row_text(&r, "run_name", run->name);
	row_text(&r, "status", run->status);
	row_time(&r, "start_time", run->start_ms);
	row_time(&r, "end_time", run->end_ms);
	export_pairs(&r, "params", e->keys.params, e->keys.param_count, params);
	export_metrics(&r, &e->keys, run);
	export_pairs(&r, "tags", e->keys.tags, e->keys.tag_count, tags);
	row_text(&r, "experiment", run->experiment);
	row_close(&r);
	return true;
}

static int export_runs_fill(void *state, struct buf *out, bool tick)
{
	struct export_runs *e = state;
	struct arena *a = arena_new();
	struct query_runs runs;
	bool ok;
	size_t i;

	(void)tick;
	if (!e->begun && e->format == EXPORT_CSV)
		export_runs_head(e, out);
	if (!e->begun && e->format == EXPORT_JSON)
		buf_adds(out, "[\n");
	e->begun = true;
	e->opts.page_token = e->token;
	ok = a && !query_runs(e->store, &e->opts, a, &runs, NULL);
	for (i = 0; ok && i < runs.count; i++)
		ok = export_run(e, a, out, &runs.items[i]);
	if (ok)
		e->ended = !runs.next_page_token;
	if (ok && runs.next_page_token) {
		snprintf(e->token_text, sizeof(e->token_text), "%s", runs.next_page_token);
		e->token = e->token_text;
	}
	if (ok && e->ended && e->format == EXPORT_JSON)
		buf_adds(out, "\n]\n");
	arena_free(a);
	if (!ok)
		return -1;
	return e->ended ? STREAM_END : STREAM_MORE;
}

/* Copies what the request named into the export's own arena. */
static bool export_runs_args(struct call *c, struct export_runs *e)
{
	const char *const *values;
	const char **names;
	size_t n = call_arg_all(c, "experiment", &values), i;
	const char *filter = call_arg(c, "filter"), *order = call_arg(c, "order_by");

	if (!call_args_done(c))
		return false;
	names = arena_array(e->arena, n + 1, sizeof(*names));
	for (i = 0; names && i < n; i++)
		names[i] = arena_strdup(e->arena, values[i]);
	e->opts = (struct query_runs_opts){
		.experiments = n ? names : NULL,
		.experiment_count = n,
		.filter = filter ? arena_strdup(e->arena, filter) : NULL,
		.order_by = order ? arena_strdup(e->arena, order) : NULL,
		.limit = EXPORT_RUNS_BATCH,
	};
	e->token = "";
	return true;
}

static enum call_next export_runs(struct call *c, enum export_format format)
{
	struct export_runs *e = calloc(1, sizeof(*e));
	struct query_runs_opts probe;
	struct query_runs runs;
	struct err err = ERR_INIT;

	if (e)
		e->arena = arena_new();
	if (!e || !e->arena) {
		free(e);
		return call_fail(c, CALL_busy, NULL, "out of memory");
	}
	e->store = c->api->store;
	e->format = format;
	c->stream = (struct call_stream){ .fill = export_runs_fill, .release = export_runs_release, .state = e };
	c->type = export_type(format);
	if (!export_runs_args(c, e))
		return CALL_DONE;
	/* a filter that cannot be read must fail before the first byte */
	probe = e->opts;
	probe.limit = 1;
	probe.bare = true;
	if (query_runs(e->store, &probe, c->arena, &runs, &err))
		return api_fail_query(c, &err);
	export_tag(c, NULL, 0, runs.rev);
	if (query_keys(e->store, e->opts.experiment_count == 1 ? e->opts.experiments[0] : NULL, e->arena, &e->keys, &err))
		return api_fail_query(c, &err);
	return CALL_DONE;
}

enum call_next export_runs_csv(struct call *c)
{
	return export_runs(c, EXPORT_CSV);
}

enum call_next export_runs_json(struct call *c)
{
	return export_runs(c, EXPORT_JSON);
}

enum call_next export_runs_jsonl(struct call *c)
{
	return export_runs(c, EXPORT_JSONL);
}

/* --- series ----------------------------------------------------------------------------------------------- */

struct export_series {
	struct points_cursor *cursor;
	enum export_format format;
	bool begun, any;
	struct points_row rows[EXPORT_POINTS_BATCH];
};

static void export_series_release(void *state)
{
	struct export_series *e = state;

	points_close(e->cursor);
	free(e);
}

static void export_point(struct export_series *e, struct buf *out, const struct points_row *p)
{
	struct row r = { .out = out, .format = e->format };

	if (e->any && e->format == EXPORT_JSON)
		buf_adds(out, ",\n");
	e->any = true;
	row_open(&r);
	row_text(&r, "run_id", p->run);
	row_text(&r, "run_name", p->run_name);
	row_text(&r, "key", p->key);
	row_int(&r, "rank", p->rank);
	row_int(&r, "segment", p->segment);
	row_int(&r, "step", p->step);
	row_double(&r, "wall_time", p->wall_time);
	row_double(&r, "value", p->value);
	row_close(&r);
}

static int export_series_fill(void *state, struct buf *out, bool tick)
{
	static const char *const columns[] = { "run_id", "run_name", "key", "rank",
					       "segment", "step", "wall_time", "value" };
	struct export_series *e = state;
	size_t n, i;

	(void)tick;
	if (!e->begun && e->format == EXPORT_CSV)
		csv_head(out, columns, 8);
	if (!e->begun && e->format == EXPORT_JSON)
		buf_adds(out, "[\n");
	e->begun = true;
	do {
		if (points_next(e->cursor, e->rows, EXPORT_POINTS_BATCH, &n, NULL))
			return -1;
		for (i = 0; i < n; i++)
			export_point(e, out, &e->rows[i]);
	} while (n && out->len < EXPORT_PIECE_BYTES);
	if (n)
		return STREAM_MORE;
	if (e->format == EXPORT_JSON)
		buf_adds(out, "\n]\n");
	return STREAM_END;
}

/* Without run= the runs are those of experiment= and filter=, oldest first. */
static bool export_series_runs(struct call *c, struct points_sel *sel)
{
	struct query_runs_opts o = { .order_by = "start_time", .limit = 50000, .bare = true };
	const char *const *values;
	struct query_runs runs;
	struct err err = ERR_INIT;
	const char **ids;
	size_t i;

	sel->run_count = call_arg_all(c, "run", &values);
	sel->runs = values;
	if (sel->run_count)
		return true;
	o.experiment_count = call_arg_all(c, "experiment", &values);
	o.experiments = o.experiment_count ? values : NULL;
	o.filter = call_arg(c, "filter");
	if (!o.experiments && !o.filter)
		return call_fail(c, CALL_bad_value, "run", "run: name at least one run, or an experiment"), false;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return api_fail_query(c, &err), false;
	ids = arena_array(c->arena, runs.count + 1, sizeof(*ids));
	for (i = 0; ids && i < runs.count; i++)
		ids[i] = runs.items[i].id;
	sel->runs = ids;
	sel->run_count = ids ? runs.count : 0;
	return true;
}

static bool export_series_args(struct call *c, struct points_sel *sel)
{
	const char *const *values;
	int64_t from = INT64_MIN, to = INT64_MAX;

	if (!export_series_runs(c, sel))
		return false;
	sel->key_count = call_arg_all(c, "key", &values);
	sel->keys = sel->key_count ? values : NULL;
	sel->rank = POINTS_ALL_RANKS;
	if (!api_read_rank(c, call_arg(c, "rank"), &sel->rank) || !call_arg_int(c, "from", &from, INT64_MIN, INT64_MAX) ||
	    !call_arg_int(c, "to", &to, INT64_MIN, INT64_MAX) ||
	    !api_read_segments(c, call_arg(c, "segments"), &sel->all_segments) || !call_args_done(c))
		return false;
	sel->from_step = from;
	sel->to_step = to;
	return !sel->run_count || api_run_ids_ok(c, "run", sel->runs, sel->run_count);
}

/* A run that does not exist is an error here, not an empty table. */
static bool export_runs_exist(struct call *c, const struct points_sel *sel)
{
	struct query_runs_opts o = { .ids = sel->runs, .id_count = sel->run_count, .limit = 50000, .with_deleted = true,
				     .bare = true };
	struct query_runs runs;
	struct err err = ERR_INIT;
	size_t i, k;

	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return api_fail_query(c, &err), false;
	for (i = 0; i < sel->run_count; i++) {
		for (k = 0; k < runs.count && strcmp(runs.items[k].id, sel->runs[i]); k++)
			;
		if (k == runs.count)
			return call_fail(c, CALL_not_found, "run", "no run %s", sel->runs[i]), false;
	}
	export_tag(c, runs.items, runs.count, 0);
	return true;
}

static enum call_next export_series(struct call *c, enum export_format format)
{
	struct points_sel sel = { 0 };
	struct export_series *e;
	struct err err = ERR_INIT;

	if (!export_series_args(c, &sel) || !export_runs_exist(c, &sel))
		return CALL_DONE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	e->format = format;
	if (points_open(&e->cursor, c->api->store, &sel, NULL, &err)) {
		free(e);
		return call_fail_err(c, NULL, &err);
	}
	c->stream = (struct call_stream){ .fill = export_series_fill, .release = export_series_release, .state = e };
	c->type = export_type(format);
	return CALL_DONE;
}

enum call_next export_series_csv(struct call *c)
{
	return export_series(c, EXPORT_CSV);
}

enum call_next export_series_json(struct call *c)
{
	return export_series(c, EXPORT_JSON);
}

enum call_next export_series_jsonl(struct call *c)
{
	return export_series(c, EXPORT_JSONL);
}
