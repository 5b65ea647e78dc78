/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c: decodes journal bytes and point lists into batches; groups points by series. */
#include "web/store/write/intake.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/event/record.h"
#include "tracker/mem/mem.h"

/* Points in order of arrival with the number of their series; they are sorted into their series at the end. */
struct gather {
	struct intake *in;
	struct map *series; /* (rank, key) -> struct gather_series */
	struct sum_point *points;
	uint32_t *owner;
	size_t count, cap;
	char name[sizeof(int) + LIMIT_key_bytes + 8];
};

struct gather_series {
	uint32_t number;
	size_t count;
};

void intake_init(struct intake *in)
{
	memset(in, 0, sizeof(*in));
	in->items_end = &in->items;
	in->first_ms = INT64_MIN;
	in->last_ms = INT64_MIN;
	in->arena = arena_new();
}

void intake_done(struct intake *in)
{
	arena_free(in->arena);
	free(in->order);
	in->order = NULL;
	in->arena = NULL;
}

static void gather_init(struct gather *g, struct intake *in)
{
	memset(g, 0, sizeof(*g));
	g->in = in;
	g->series = map_new(sizeof(struct gather_series));
}

static void gather_done(struct gather *g)
{
	map_free(g->series);
	free(g->points);
	free(g->owner);
}

static void add_gathered_point(struct gather *g, const struct sum_point *p, uint32_t owner)
{
	size_t same = g->cap;

	mem_reserve(&g->owner, &same, g->count + 1);
	mem_reserve(&g->points, &g->cap, g->count + 1);
	g->points[g->count] = *p;
	g->owner[g->count++] = owner;
}

/* A key that is refused becomes a problem. */
static void gather_point(struct gather *g, struct event_text key, int rank, const struct sum_point *p)
{
	struct gather_series *s = NULL;
	size_t len = sizeof(rank) + key.len;

	if (key.len <= LIMIT_key_bytes) {
		memcpy(g->name, &rank, sizeof(rank));
		memcpy(g->name + sizeof(rank), key.at, key.len);
		s = map_get(g->series, g->name, len);
	}
	if (!s) {
		if (!intake_item_key(g->in, key, "metric"))
			return;
		if (rank != EVENT_RANK_DEFAULT && (rank < EVENT_RANK_RUN || rank > LIMIT_rank)) {
			intake_item_problem(g->in, arena_printf(g->in->arena, "rank %d is out of range", rank));
			return;
		}
		s = map_put(g->series, g->name, len);
		s->number = (uint32_t)map_count(g->series) - 1;
	}
	add_gathered_point(g, p, s->number);
	s->count++;
}

/* Sorts the gathered points into their series, in order of arrival. */
static void gather_finish(struct gather *g)
{
	struct intake *in = g->in;
	size_t n = map_count(g->series), i, len;

	in->series = arena_array(in->arena, n ? n : 1, sizeof(*in->series));
	for (i = 0; i < n; i++) {
		const struct gather_series *s = map_at(g->series, i);
		const char *name = map_key_at(g->series, i, &len);
		struct intake_series *out = &in->series[i];

		memcpy(&out->rank, name, sizeof(out->rank));
		out->key = arena_strdup(in->arena, name + sizeof(out->rank));
		out->points = arena_array(in->arena, s->count, sizeof(*out->points));
	}
	for (i = 0; i < g->count; i++) {
		struct intake_series *out = &in->series[g->owner[i]];

		out->points[out->count++] = g->points[i];
	}
	in->series_count = n;
	in->point_count = g->count;
	in->order = g->owner;
	g->owner = NULL;
}

/* Copies one item of a record into the batch. */
static int take_journal_item(struct gather *g, const struct ingest_op *op, struct event *ev,
			     const struct event_item *item, struct err *err)
{
	struct sum_point p = { ev->step, ev->wall_time, item->value };
	int rank = op->journal.foreign && item->rank == EVENT_RANK_DEFAULT ? EVENT_RANK_RUN : item->rank;

	if (item->kind == EVENT_HEADER)
		return intake_header_add(g->in, op, item->header, err);
	if (item->kind == EVENT_SCALAR)
		gather_point(g, item->key, rank, &p);
	else
		intake_item_add(g->in, op, ev, item);
	return 0;
}

/* Decodes one record; a malformed one becomes a problem. */
static int take_journal_record(struct gather *g, const struct ingest_op *op, const struct record *rec, struct err *err)
{
	struct intake *in = g->in;
	struct event ev;
	struct event_item item;
	int rc;

	if (event_open(&ev, rec->payload, rec->payload_bytes)) {
		intake_item_problem(in, isnan(ev.wall_time) ? "the wall time of a record is not a number"
							    : "a record is not an Event message");
		return 0;
	}
	while ((rc = event_next(&ev, &item)) > 0) {
		rc = take_journal_item(g, op, &ev, &item, err);
		if (rc)
			return rc;
	}
	if (rc < 0)
		intake_item_problem(in, "a record has a malformed Event message");
	if (ev.wall_time > 0 && ev.wall_time < 1e14) {
		int64_t ms = (int64_t)(ev.wall_time * 1e3);

		in->first_ms = in->first_ms == INT64_MIN ? ms : in->first_ms;
		in->last_ms = ms > in->last_ms ? ms : in->last_ms;
	}
	in->spoke = true;
	return 0;
}

static int report_bad_bytes(struct intake *in, const struct ingest_journal *j, uint64_t at, bool framed,
			    struct err *err)
{
	if (!j->path)
		return err_set(err, ERR_CORRUPT, "journal %s: the record at byte %llu fails its checksum", j->writer,
			       (unsigned long long)at);
	intake_item_problem(in, framed ? arena_printf(in->arena,
						      "%s: the record at byte %llu fails its checksum and was skipped",
						      j->path, (unsigned long long)at)
				       : arena_printf(in->arena, "%s: damaged at byte %llu: the rest cannot be read",
						      j->path, (unsigned long long)at));
	in->damaged = in->damaged || !framed;
	return 0;
}

/* Decodes all whole records of the bytes. */
static int walk_journal(struct gather *g, const struct ingest_op *op, struct err *err)
{
	const struct ingest_journal *j = &op->journal;
	struct intake *in = g->in;
	size_t at = 0, before;
	enum record_state state;
	struct record rec;
	int rc = 0;

	for (;;) {
		before = at;
		state = record_next(j->bytes, j->len, &at, &rec);
		if (state == RECORD_MORE)
			break;
		if (state == RECORD_OK)
			rc = take_journal_record(g, op, &rec, err);
		else
			rc = report_bad_bytes(in, j, j->offset + before, state == RECORD_BAD_PAYLOAD, err);
		if (rc || in->damaged)
			break;
		if (state == RECORD_BAD_PAYLOAD)
			at = before + (size_t)rec.frame_bytes;
		if (j->offset == 0 && before == 0 && !j->foreign && !in->header)
			return err_set(err, ERR_CORRUPT, "journal %s does not begin with a header record", j->writer);
		in->end = j->offset + at;
	}
	return rc;
}

int intake_journal(struct intake *in, const struct ingest_op *op, struct err *err)
{
	struct gather g;
	int rc;

	in->end = op->journal.offset;
	gather_init(&g, in);
	rc = walk_journal(&g, op, err);
	/* What is whole before the damage is stored; the caller still gets the error. */
	if (!rc || rc == ERR_CORRUPT)
		gather_finish(&g);
	gather_done(&g);
	return rc;
}

static int refuse_point(const struct ingest_point *p, size_t i, const char *wrong_key, struct err *err)
{
	if (wrong_key)
		err_set(err, ERR_USAGE, "points[%zu].key %s", i, wrong_key);
	else
		err_set(err, ERR_USAGE, "points[%zu].rank %d is not -1 to %d", i, p->rank, (int)LIMIT_rank);
	return err_field(err, "points[%zu].%s", i, wrong_key ? "key" : "rank");
}

int intake_points(struct intake *in, const struct ingest_op *op, struct err *err)
{
	struct gather g;
	size_t i;
	int rc = 0;

	gather_init(&g, in);
	for (i = 0; i < op->logged.point_count && !rc; i++) {
		const struct ingest_point *p = &op->logged.points[i];
		struct event_text key = { p->key, strlen(p->key) };
		const char *wrong = key_check(key.at, key.len);

		if (wrong || p->rank < EVENT_RANK_RUN || p->rank > LIMIT_rank)
			rc = refuse_point(p, i, wrong, err);
		else
			gather_point(&g, key, p->rank, &(struct sum_point){ p->step, p->wall_time, p->value });
	}
	if (!rc)
		gather_finish(&g);
	in->spoke = true;
	gather_done(&g);
	return rc;
}
