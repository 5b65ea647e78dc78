/* SPDX-License-Identifier: Apache-2.0 */
/* api_points.c: points of a run: /runs/{run}/journal accepts byte ranges of a journal and replies with the durable
 * offset, POST /runs/{run}/metrics a batch of points as JSON. */
#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/api/api.h"

/* --- byte ranges of a journal ----------------------------------------------------------------------------------- */

/* Lives as long as the call, as does its body: the rest of a range may have to be submitted again. */
struct journal_range {
	struct ingest_op op;
	double arrived_s;
};

/* Writes where the sender continues, and after which interval. */
static void write_resume_position(struct js *j, struct call *c, uint64_t durable)
{
	struct journal_pace none = { 0 };

	js_key_int(j, "durable", (int64_t)durable);
	js_key_number(j, "interval_s", journal_pace_interval_s(c->api->counters ? &c->api->counters->pace : &none));
}

static void reply_durable_offset(struct call *c, uint64_t durable)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	write_resume_position(&j, c, durable);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

static enum call_next submit_journal_range(struct call *c, struct journal_range range);

static void note_journal_pace(struct call *c)
{
	const struct journal_range *r = c->own;
	double waited_s = clock_mono_s() - r->arrived_s;

	if (c->api->counters)
		journal_pace_note(&c->api->counters->pace, clock_mono_ns() / 1000000, (uint64_t)(waited_s * 1000));
}

/* Replies with the durable offset, or submits the rest of a range that another request overtook. */
static enum call_next reply_stored_journal(struct call *c, const struct ingest_result *res)
{
	const struct journal_range *r = c->own;
	struct js j = { .out = &c->out };

	if (res->overtaken)
		return submit_journal_range(c,
					    (struct journal_range){ ingest_rest(&r->op, res->durable), r->arrived_s });
	if (!res->code) {
		note_journal_pace(c);
		reply_durable_offset(c, res->durable);
		return CALL_DONE;
	}
	if (res->code != ERR_EXISTS || res->err.field[0])
		return call_fail_err(c, res->code == ERR_NOENT ? "run" : NULL, &res->err);
	/* the sender is ahead: it continues at the offset of the store */
	c->status = call_error_status(CALL_conflict);
	js_open(&j, '{');
	write_resume_position(&j, c, res->durable);
	js_key_open(&j, "error", '{');
	js_key_str(&j, "code", call_error_name(CALL_conflict));
	js_key_str(&j, "message", res->err.text);
	js_key_str(&j, "field", "offset");
	js_close(&j, '}');
	return js_reply(c, &j);
}

static enum call_next submit_journal_range(struct call *c, struct journal_range range)
{
	struct journal_range *kept = arena_alloc(c->arena, sizeof(*kept));

	*kept = range;
	c->own = kept;
	return api_submit(c,
			  &(struct api_change){ .op = &kept->op, .keep_errors = true, .then = reply_stored_journal });
}

static const char *read_journal_writer(struct call *c)
{
	const char *writer = call_arg(c, "writer");

	if (writer && call_is_run_id(writer))
		return writer;
	call_fail(c, CALL_bad_value, "writer", "writer: expected the 32 lower-case hex digits of the journal's writer");
	return NULL;
}

enum call_next on_journal_post(struct call *c)
{
	struct ingest_op op = { .kind = &change_journal, .state = INGEST_NO_STATE };
	int64_t offset = -1;

	op.run = call_run_id(c, 0);
	op.journal.writer = op.run ? read_journal_writer(c) : NULL;
	if (!op.journal.writer || !call_arg_int(c, "offset", &offset, 0, INT64_MAX) || !call_args_done(c))
		return CALL_DONE;
	if (offset < 0)
		return call_fail(c, CALL_bad_value, "offset", "offset: missing");
	op.journal.offset = (uint64_t)offset;
	op.journal.bytes = c->body;
	op.journal.len = c->body_len;
	return submit_journal_range(c, (struct journal_range){ op, clock_mono_s() });
}

enum call_next on_journal_get(struct call *c)
{
	const char *run = call_run_id(c, 0), *writer = run ? read_journal_writer(c) : NULL;
	struct err err = ERR_INIT;
	uint64_t durable;

	if (!writer || !call_args_done(c))
		return CALL_DONE;
	if (ingest_durable(c->api->store, run, writer, &durable, &err))
		return call_fail_err(c, "run", &err);
	reply_durable_offset(c, durable);
	return CALL_DONE;
}

enum { METRICS_POINTS_MAX = 100000 };

/* Reads points[index]. Returns false after failing the call. */
static bool read_json_point(struct call *c, json_t *item, size_t index, struct ingest_point *p)
{
	json_int_t rank = -1, step = 0;
	bool timed = false;
	const struct json_field fields[] = {
		{ "key", JSON_KIND_STRING, true, &p->key, NULL },   { "step", JSON_KIND_INT, false, &step, NULL },
		{ "value", JSON_KIND_DOUBLE, true, &p->value, NULL }, { "rank", JSON_KIND_INT, false, &rank, NULL },
		{ "wall_time", JSON_KIND_DOUBLE, false, &p->wall_time, &timed }, { 0 },
	};
	const char *field;
	char at[40];

	snprintf(at, sizeof(at), "points[%zu].", index);
	if (!json_read(c, item, at, fields))
		return false;
	if (rank < -1 || rank > INT32_MAX) {
		field = arena_printf(c->arena, "%srank", at);
		return call_fail(c, CALL_bad_value, field, "%s: expected -1 (the run as a whole) or a rank", field),
		       false;
	}
	p->step = step;
	p->rank = (int)rank;
	if (!timed)
		p->wall_time = clock_wall_s();
	return true;
}

static bool read_json_points(struct call *c, json_t *items, struct ingest_op *op)
{
	size_t n = json_array_size(items), i;
	struct ingest_point *points;

	if (n > METRICS_POINTS_MAX)
		return call_fail(c, CALL_bad_value, "points", "points: at most %d per request", METRICS_POINTS_MAX),
		       false;
	points = arena_array(c->arena, n + 1, sizeof(*points));
	for (i = 0; i < n; i++)
		if (!read_json_point(c, json_array_get(items, i), i, &points[i]))
			return false;
	op->logged.points = points;
	op->logged.point_count = n;
	return true;
}

static enum call_next reply_accepted_points(struct call *c, const struct ingest_result *res)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_int(&j, "accepted", (int64_t)res->accepted);
	return js_reply(c, &j);
}

enum call_next on_run_metrics_post(struct call *c)
{
	struct ingest_op op = { .kind = &change_points, .state = INGEST_NO_STATE };
	json_t *points = NULL, *body;
	enum call_next next = CALL_DONE;
	const struct json_field fields[] = { { "points", JSON_KIND_ARRAY, true, &points, NULL }, { 0 } };

	op.run = call_run_id(c, 0);
	body = op.run ? json_body(c) : NULL;
	if (!body)
		return CALL_DONE;
	op.idempotency = c->host->header(c, "Idempotency-Key");
	if (op.idempotency && (!*op.idempotency || strlen(op.idempotency) > 255))
		call_fail(c, CALL_bad_value, "Idempotency-Key", "Idempotency-Key: expected 1 to 255 characters");
	else if (call_args_done(c) && json_read(c, body, "", fields) && read_json_points(c, points, &op))
		next = api_submit(c, &(struct api_change){ .op = &op, .then = reply_accepted_points });
	json_decref(body);
	return next;
}
