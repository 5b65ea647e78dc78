/* SPDX-License-Identifier: Apache-2.0 */
/* api_export_events.c: /export/parts.json and /export/series.tfevents: exports a run as event files for TensorBoard and
 * other readers. Each rank and segment has a file with every bit of every scalar. Params become hparams, notes a
 * text. Our own records repeat what an import needs to make the same run again. */

#include <inttypes.h>
#include <stdlib.h>

#include "tracker/event/event_encode.h"
#include "tracker/mem/mem.h"
#include "web/api/js.h"
#include "web/api/native/native_inside.h"
#include "web/store/read/export_order.h"
#include "web/store/read/run_records.h"

enum { EVENTS_BATCH = 256, EVENTS_PIECE_BYTES = 32768, HPARAMS_MAX = 1000 };

struct export_events {
	struct store *store;
	char run[33];
	struct export_order_part part;
	struct export_order *points;
	bool points_left;
	int64_t media_after; /* id of the last media written */
	struct buf tail;     /* final records */
	struct export_order_row rows[EVENTS_BATCH];
};

/* Reads the argument run. Returns false after failing the call. */
static bool read_export_run(struct call *c, const char **ret)
{
	const char *id = call_arg(c, "run");
	const char *const *ids = &id;

	if (!id)
		return call_fail(c, CALL_bad_value, "run", "run: expected a run id"), false;
	if (!request_run_ids(c, "run", &ids, 1))
		return false;
	*ret = ids[0];
	return true;
}

enum call_next on_export_parts_json(struct call *c)
{
	struct js j = { .out = &c->out };
	struct export_order_parts parts;
	struct err err = ERR_INIT;
	const char *run;
	size_t i;

	if (!read_export_run(c, &run) || !call_args_done(c))
		return CALL_DONE;
	if (export_order_parts(c->api->store, run, c->arena, &parts, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	js_key_open(&j, "parts", '[');
	for (i = 0; i < parts.count; i++) {
		js_open(&j, '{');
		js_key_int(&j, "rank", parts.items[i].rank);
		js_key_int(&j, "segment", parts.items[i].segment);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	js_close(&j, '}');
	return CALL_DONE;
}

static struct event_text as_event_text(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

static enum event_status parse_event_status(const char *name)
{
	int s;

	for (s = EVENT_RUNNING; s <= EVENT_SCHEDULED; s++)
		if (!strcmp(name, event_status_name((enum event_status)s)))
			return (enum event_status)s;
	return EVENT_RUNNING;
}

static void encode_run_params(struct buf *b, double time_s, const struct query_run *run, struct arena *a)
{
	size_t n = run->param_count, i;
	struct encode_param *list = arena_array(a, n + 1, sizeof(*list));

	for (i = 0; i < n; i++) {
		list[i] = (struct encode_param){ .key = as_event_text(run->params[i].key), .type = EVENT_TYPE_TEXT,
						 .text = as_event_text(run->params[i].value) };
		encode_param(b, time_s, &list[i]);
	}
	if (n) /* for TensorBoard's table of hyperparameters */
		encode_hparams_start(b, time_s, list, n < HPARAMS_MAX ? n : HPARAMS_MAX);
}

static const struct query_segment *find_segment(const struct query_run *run, int number)
{
	static const struct query_segment none = { .status = "", .end_ms = INT64_MIN };

	for (size_t i = 0; i < run->segment_count; i++)
		if (run->segments[i].number == number)
			return &run->segments[i];
	return &none;
}

/* Names the run and the part of it that the file holds. */
static void encode_export_tag(struct buf *b, double time_s, const struct query_run *run, struct export_order_part part)
{
	const struct query_segment *s = find_segment(run, part.segment);
	struct buf json;
	struct js j = { .out = &json };

	buf_init(&json, LIMIT_value_bytes);
	js_open(&j, '{');
	js_key_str(&j, "run", run->id);
	js_key_str(&j, "name", run->name);
	js_key_str(&j, "experiment", run->experiment);
	js_key_int(&j, "rank", part.rank);
	js_key_int(&j, "segment", part.segment);
	js_key_int(&j, "world_size", s->world_size);
	js_key_int(&j, "first_step", s->first_step);
	js_key_int(&j, "first_epoch", s->first_epoch);
	js_close(&j, '}');
	if (!buf_failed(&json))
		encode_tag(b, time_s, as_event_text(EVENT_EXPORT_TAG), (struct event_text){ json.data, json.len });
	buf_done(&json);
}

/* Encodes the params, tags, environment and notes of a run. */
static void encode_run_facts(struct buf *b, double time_s, const struct query_run *run, struct arena *a)
{
	size_t i;

	encode_run_params(b, time_s, run, a);
	encode_tag(b, time_s, as_event_text(INGEST_RENAME_TAG), as_event_text(run->name));
	for (i = 0; i < run->tag_count; i++)
		if (strcmp(run->tags[i].key, INGEST_SOURCE_TAG) != 0)
			encode_tag(b, time_s, as_event_text(run->tags[i].key), as_event_text(run->tags[i].value));
	for (i = 0; i < run->environment_count; i++)
		encode_env(b, time_s, as_event_text(run->environment[i].key),
			   as_event_text(run->environment[i].value));
	if (*run->notes)
		encode_note(b, time_s, as_event_text(run->notes));
}

/* The file of the run itself (not of a rank) describes the run in its first segment, the end of each segment, and the
 * run's end in the last one. */
static void encode_run_ends(struct buf *head, struct buf *tail, const struct query_run *run,
			    struct export_order_part part, struct arena *a)
{
	const struct query_segment *s = find_segment(run, part.segment);
	bool last = !run->segment_count || part.segment == run->segments[run->segment_count - 1].number;
	double start_s = run->start_ms == INT64_MIN ? 0 : (double)run->start_ms / 1e3;
	int64_t end_ms = last ? run->end_ms : s->end_ms;
	double end_s = end_ms == INT64_MIN ? start_s : (double)end_ms / 1e3;
	enum event_status status = parse_event_status(last ? run->status : s->status);

	encode_file_version(head, start_s);
	encode_export_tag(head, start_s, run, part);
	if (s->first_step > 0)
		encode_session_start(head, start_s, s->first_step);
	if (part.rank != EVENT_RANK_RUN)
		return;
	if (!run->segment_count || part.segment == run->segments[0].number)
		encode_run_facts(head, start_s, run, a);
	if (status == EVENT_RUNNING || status == EVENT_SCHEDULED)
		return;
	encode_status(tail, end_s, status, as_event_text(last ? run->status_reason : ""));
	if (last)
		encode_hparams_end(tail, end_s, status);
}

static void free_events_export(void *state)
{
	struct export_events *e = state;

	export_order_close(e->points);
	buf_done(&e->tail);
	free(e);
}

/* Appends some of the media that follow the points. Returns 1 if more may follow, 0 at the end, or negative. */
static int fill_export_media(struct export_events *e, struct buf *out, struct err *err)
{
	struct media_part part = { e->run, e->part.rank, e->part.segment, e->media_after };
	struct media_list list = { 0 };
	struct arena *a = arena_new();
	int rc = media_of_part(e->store, &part, a, &list, err);

	for (size_t i = 0; !rc && i < list.count; i++) {
		const struct stored_media *m = &list.items[i];

		media_encode(out, &(struct media_place){ .key = as_event_text(m->key), .step = m->step,
							 .wall_time = m->wall_time, .rank = e->part.rank },
			     m->content);
		e->media_after = m->id;
	}
	arena_free(a);
	return rc ? rc : list.count > 0;
}

/* Fills a piece: all points first, then media, then the final records. */
static int fill_events_export(void *state, struct buf *out, bool tick, struct err *err)
{
	struct export_events *e = state;
	size_t n, i;
	int rc;

	(void)tick;
	while (e->points_left && out->len < EVENTS_PIECE_BYTES) {
		rc = export_order_next(e->points, e->rows, EVENTS_BATCH, &n, err);
		if (rc)
			return rc;
		for (i = 0; i < n; i++) {
			struct encode_scalar s = { .key = as_event_text(e->rows[i].key), .step = e->rows[i].step,
						   .wall_time = e->rows[i].wall_time, .value = e->rows[i].value,
						   .rank = e->part.rank };

			encode_scalar(out, &s);
		}
		e->points_left = n > 0;
	}
	if (e->points_left)
		return STREAM_MORE;
	rc = fill_export_media(e, out, err);
	if (!rc && buf_failed(&e->tail))
		return err_nomem(err, NULL);
	if (!rc)
		buf_add(out, e->tail.data, e->tail.len);
	return rc < 0 ? rc : rc ? STREAM_MORE : STREAM_END;
}

/* Starts the stream of one rank and segment of a run. */
static enum call_next open_events_export(struct call *c, const char *id, struct export_order_part part)
{
	struct export_events *e = mem_zalloc(sizeof(*e));
	struct call_stream s = { .fill = fill_events_export, .release = free_events_export, .state = e };
	struct query_run run;
	struct err err = ERR_INIT;

	e->store = c->api->store;
	e->part = part;
	e->points_left = true;
	snprintf(e->run, sizeof(e->run), "%s", id);
	buf_init(&e->tail, 1 << 16);
	if (query_run(c->api->store, id, c->arena, &run, &err) ||
	    export_order_open(&e->points, c->api->store, id, part, &err)) {
		free_events_export(e);
		return call_fail_err(c, "run", &err);
	}
	encode_run_ends(&c->out, &e->tail, &run, part, c->arena);
	if (call_stream(c, &s, &err))
		return call_fail_err(c, NULL, &err);
	c->type = "application/octet-stream";
	c->reply.disposition =
		arena_printf(c->arena, "attachment; filename=events.out.tfevents.%" PRId64 ".dptrack.%06d",
			     run.start_ms == INT64_MIN ? 0 : run.start_ms / 1000, part.segment);
	return CALL_DONE;
}

enum call_next on_export_series_tfevents(struct call *c)
{
	int64_t rank = EVENT_RANK_RUN, segment = 0;
	const char *run;

	if (!read_export_run(c, &run) || !call_arg_int(c, "rank", &rank, EVENT_RANK_RUN, LIMIT_rank) ||
	    !call_arg_int(c, "segment", &segment, 0, LIMIT_segment) || !call_args_done(c))
		return CALL_DONE;
	return open_events_export(c, run, (struct export_order_part){ (int)rank, (int)segment });
}
