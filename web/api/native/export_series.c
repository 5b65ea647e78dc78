/* stream_series_export.c: /export/series.*: streams every point of runs. */
#include "web/api/native/api_export.h"

#include <stdlib.h>
#include <string.h>

#include "web/api/handlers.h"
#include "web/api/native/request.h"

enum { EXPORT_POINTS_BATCH = 512, EXPORT_PIECE_BYTES = 32768 };

struct export_series {
	struct points_cursor *cursor;
	enum export_format format;
	bool any;
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
	struct export_row r = { .out = out, .format = e->format };

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
	for (i = 0; ids && i < runs.count; i++)
		ids[i] = runs.items[i].id;
	sel->runs = ids;
	sel->run_count = ids ? runs.count : 0;
	return true;
}

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
	return !sel->run_count || request_run_ids(c, "run", sel->runs, sel->run_count);
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

	if (!read_series_export_args(c, &sel) || !check_exported_runs(c, &sel))
		return CALL_DONE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	e->format = format;
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
