/* metrics.c: POST /runs/{run}/metrics: a batch of points as JSON. */
#include "web/api/api.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/api/handlers.h"

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
	if (!points)
		return call_fail(c, CALL_busy, NULL, "out of memory"), false;
	for (i = 0; i < n; i++)
		if (!read_json_point(c, json_array_get(items, i), i, &points[i]))
			return false;
	op->points = points;
	op->point_count = n;
	return true;
}

static enum call_next reply_accepted_points(struct call *c, const struct ingest_result *res)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_int(&j, "accepted", (int64_t)res->accepted);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_run_metrics_post(struct call *c)
{
	struct ingest_op op = { .kind = &change_points, .start_ms = INGEST_NO_TIME, .end_ms = INGEST_NO_TIME };
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
