/* intake.c: decodes journal bytes and point lists into batches. */
#include "web/store/write/intake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "tracker/event/event.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"
#include "tracker/event/record.h"
#include "web/store/base/map.h"
#include "web/store/base/no_memory.h"
#include "web/store/write/series_names.h"

#define SESSION_START 1 /* of TensorFlow's SessionLog */
#define CONTEXT_TAG "mlflow.data.context"

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

int intake_init(struct intake *in, struct err *err)
{
	memset(in, 0, sizeof *in);
	in->items_end = &in->items;
	in->first_ms = INT64_MIN;
	in->last_ms = INT64_MIN;
	in->arena = arena_new();
	return in->arena ? 0 : no_memory(err);
}

void intake_done(struct intake *in)
{
	arena_free(in->arena);
	free(in->order);
	in->order = NULL;
	in->arena = NULL;
}

/* %.17g, or fewer digits where they parse to the same double. */
static const char *number_text(struct arena *a, double v)
{
	char text[40];
	int digits;

	if (isnan(v))
		return "NaN";
	if (isinf(v))
		return v > 0 ? "Infinity" : "-Infinity";
	for (digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return arena_strdup(a, text);
}

/* Counts a rejected record; equal problems share one entry. */
static void note_problem(struct intake *in, const char *text)
{
	struct intake_problem *p;
	char *clean;

	in->rejected++;
	for (p = in->problems; p && text; p = p->next)
		if (!strcmp(p->text, text)) {
			p->count++;
			return;
		}
	p = text ? arena_alloc(in->arena, sizeof *p) : NULL;
	if (!p)
		return;
	clean = arena_alloc(in->arena, strlen(text) * 3 + 1);
	if (!clean)
		return;
	/* It may quote a path that is not UTF-8. */
	utf8_copy(clean, strlen(text) * 3 + 1, text, strlen(text), NULL);
	p->count = 1;
	p->text = clean;
	p->next = in->problems;
	in->problems = p;
}

static const char *clean_text(struct intake *in, struct event_text t, size_t max_bytes)
{
	size_t room = (t.len < max_bytes ? t.len : max_bytes) * 3 + 1;
	char *copy;

	if (room > max_bytes + 1)
		room = max_bytes + 1;
	copy = arena_alloc(in->arena, room);
	if (copy)
		utf8_copy(copy, room, t.at, t.len, NULL);
	return copy;
}

/* Returns NULL and notes a problem when the key is not allowed. */
static const char *clean_key(struct intake *in, struct event_text key, const char *what)
{
	const char *wrong = key_check(key.at, key.len);
	struct event_text head = { key.at, key.len < 60 ? key.len : 60 };
	char *copy;

	if (wrong) {
		note_problem(in, arena_printf(in->arena, "%s key '%s%s' %s", what, clean_text(in, head, 200),
					      key.len > 60 ? "…" : "", wrong));
		return NULL;
	}
	copy = arena_alloc(in->arena, key.len + 1);
	if (copy)
		memcpy(copy, key.at, key.len);
	return copy;
}

static int gather_init(struct gather *g, struct intake *in)
{
	memset(g, 0, sizeof *g);
	g->in = in;
	g->series = map_new(sizeof(struct gather_series));
	return g->series ? 0 : ERR_NOMEM;
}

static void gather_done(struct gather *g)
{
	map_free(g->series);
	free(g->points);
	free(g->owner);
}

static int gather_room(struct gather *g)
{
	size_t cap = g->cap ? g->cap * 2 : 256;
	void *grown;

	if (g->count < g->cap)
		return 0;
	grown = realloc(g->points, cap * sizeof *g->points);
	if (!grown)
		return ERR_NOMEM;
	g->points = grown;
	grown = realloc(g->owner, cap * sizeof *g->owner);
	if (!grown)
		return ERR_NOMEM;
	g->owner = grown;
	g->cap = cap;
	return 0;
}

/* Returns 0 also when the key is refused (noted as a problem). */
static int gather_point(struct gather *g, struct event_text key, int rank, const struct sum_point *p)
{
	struct gather_series *s = NULL;
	size_t len = sizeof rank + key.len;

	if (key.len <= LIMIT_key_bytes) {
		memcpy(g->name, &rank, sizeof rank);
		memcpy(g->name + sizeof rank, key.at, key.len);
		s = map_get(g->series, g->name, len);
	}
	if (!s) {
		if (!clean_key(g->in, key, "metric"))
			return 0;
		if (rank != EVENT_RANK_DEFAULT && (rank < EVENT_RANK_RUN || rank > LIMIT_rank)) {
			note_problem(g->in, arena_printf(g->in->arena, "rank %d is out of range", rank));
			return 0;
		}
		s = map_put(g->series, g->name, len);
		if (!s)
			return ERR_NOMEM;
		s->number = (uint32_t)map_count(g->series) - 1;
	}
	if (gather_room(g))
		return ERR_NOMEM;
	g->points[g->count] = *p;
	g->owner[g->count++] = s->number;
	s->count++;
	return 0;
}

/* Sorts the gathered points into their series, in order of arrival. */
static int gather_finish(struct gather *g)
{
	struct intake *in = g->in;
	size_t n = map_count(g->series), i, len;

	in->series = arena_array(in->arena, n ? n : 1, sizeof *in->series);
	if (!in->series)
		return ERR_NOMEM;
	for (i = 0; i < n; i++) {
		const struct gather_series *s = map_at(g->series, i);
		const char *name = map_key_at(g->series, i, &len);
		struct intake_series *out = &in->series[i];

		memcpy(&out->rank, name, sizeof out->rank);
		out->key = arena_strdup(in->arena, name + sizeof out->rank);
		out->points = arena_array(in->arena, s->count, sizeof *out->points);
		if (!out->key || !out->points)
			return ERR_NOMEM;
	}
	for (i = 0; i < g->count; i++) {
		struct intake_series *out = &in->series[g->owner[i]];

		out->points[out->count++] = g->points[i];
	}
	in->series_count = n;
	in->point_count = g->count;
	in->order = g->owner;
	g->owner = NULL;
	return 0;
}

static struct intake_item *add_intake_item(struct intake *in, const struct event *ev, enum event_kind kind)
{
	struct intake_item *it = arena_alloc(in->arena, sizeof *it);

	if (!it)
		return NULL;
	it->kind = kind;
	it->key = "";
	it->text = "";
	it->time_ms = (int64_t)(ev->wall_time * 1e3);
	*in->items_end = it;
	in->items_end = &it->next;
	return it;
}

static const char *render_param(struct intake *in, const struct event_item *item)
{
	switch (item->type) {
	case EVENT_TYPE_F64:
		return number_text(in->arena, item->value);
	case EVENT_TYPE_I64:
		return arena_printf(in->arena, "%lld", (long long)item->integer);
	case EVENT_TYPE_BOOL:
		return item->integer ? "true" : "false";
	default:
		return clean_text(in, item->text, LIMIT_value_bytes);
	}
}

static int take_param_pair(struct intake *in, const struct event *ev, const struct event_item *item)
{
	const char *what = item->kind == EVENT_PARAM ? "param" : item->kind == EVENT_TAG ? "tag" : "environment";
	const char *key = clean_key(in, item->key, what);
	struct intake_item *it;

	if (!key)
		return 0;
	if ((item->kind != EVENT_PARAM || item->type == EVENT_TYPE_TEXT) && item->text.len > LIMIT_value_bytes) {
		note_problem(in, arena_printf(in->arena, "%s '%s': a value of %zu bytes was cut to %d", what, key,
					      item->text.len, (int)LIMIT_value_bytes));
		in->rejected--;
	}
	it = add_intake_item(in, ev, item->kind);
	if (!it)
		return ERR_NOMEM;
	it->key = key;
	it->segment = item->kind == EVENT_PARAM && item->segment;
	it->changed = item->kind == EVENT_PARAM && item->changed;
	it->text = item->kind == EVENT_PARAM ? render_param(in, item) : clean_text(in, item->text, LIMIT_value_bytes);
	return it->text ? 0 : ERR_NOMEM;
}

/* Data of other TensorBoard plugins is not stored; a problem reports each kind once. */
static void report_left_out(struct intake *in, const struct event_item *item)
{
	static const char *const silent[] = { "", "hparams", "scalars", "text" };
	size_t i;

	for (i = 0; i < sizeof silent / sizeof silent[0]; i++)
		if (event_text_equal(item->text, silent[i]))
			return;
	note_problem(in, arena_printf(in->arena, "%s of TensorBoard cannot be stored: they remain in their event file",
				      clean_text(in, item->text, 100)));
}

static int take_other_item(struct intake *in, const struct event *ev, const struct event_item *item)
{
	struct intake_item *it;
	size_t max_bytes = item->kind == EVENT_STATUS ? LIMIT_reason_bytes : LIMIT_note_bytes;

	if (item->kind == EVENT_FILE_VERSION || item->kind == EVENT_HEARTBEAT ||
	    (item->kind == EVENT_SESSION && item->integer != SESSION_START))
		return 0;
	it = add_intake_item(in, ev, item->kind);
	if (!it)
		return ERR_NOMEM;
	it->status = item->status;
	it->step = ev->step;
	if (item->kind == EVENT_NOTE || item->kind == EVENT_STATUS || item->kind == EVENT_TEXT)
		it->text = clean_text(in, item->text, max_bytes);
	if (item->kind == EVENT_TEXT)
		it->key = clean_text(in, item->key, LIMIT_key_bytes);
	if (item->kind == EVENT_HPARAMS_START || item->kind == EVENT_HPARAMS_END)
		it->end_ms = isfinite(item->value) && fabs(item->value) < 1e14 ? (int64_t)(item->value * 1e3) : 0;
	return it->text && it->key ? 0 : ERR_NOMEM;
}

/* Keeps the lines in the message that they arrived in, up to the first malformed one. */
static int take_console_line(struct intake *in, const struct event *ev, const struct event_item *item)
{
	const unsigned char *begin = (const unsigned char *)item->text.at, *whole = begin;
	struct event_span rest = { begin, begin + item->text.len };
	struct console_line line;
	struct intake_item *it;
	int64_t lines = 0;
	char *copy;
	int rc;

	while ((rc = console_next(&rest, &line)) > 0) {
		lines++;
		whole = rest.at;
	}
	if (rc < 0)
		note_problem(in, "console lines are malformed");
	if (!lines)
		return 0;
	it = add_intake_item(in, ev, item->kind);
	copy = arena_alloc(in->arena, item->text.len);
	if (!it || !copy)
		return ERR_NOMEM;
	it->count = lines;
	it->len = (size_t)(whole - begin);
	memcpy(copy, begin, it->len);
	it->bytes = copy;
	return 0;
}

/* Code and alerts. */
static int take_code_or_alert(struct intake *in, const struct event *ev, const struct event_item *item)
{
	bool code = item->kind == EVENT_CODE;
	const char *key = code ? clean_key(in, item->key, "code") : clean_text(in, item->key, LIMIT_alert_title_bytes);
	struct intake_item *it;

	if (!key)
		return code ? 0 : ERR_NOMEM;
	it = add_intake_item(in, ev, item->kind);
	if (!it)
		return ERR_NOMEM;
	it->key = key;
	it->text = clean_text(in, item->text, code ? LIMIT_code_bytes : LIMIT_alert_text_bytes);
	it->step = ev->step;
	it->count = item->integer;
	return it->text ? 0 : ERR_NOMEM;
}

/* A file stored with the run: its name, size and SHA-256. */
static int take_file_item(struct intake *in, const struct event *ev, const struct event_item *item)
{
	struct intake_item *it;

	if (!item->key.len || item->key.len > LIMIT_file_name_bytes || item->text.len != 64) {
		note_problem(in, "a file without a name or a digest was left out");
		return 0;
	}
	it = add_intake_item(in, ev, EVENT_FILE);
	if (!it)
		return ERR_NOMEM;
	it->key = clean_text(in, item->key, LIMIT_file_name_bytes);
	it->text = clean_text(in, item->text, 64);
	it->count = item->integer;
	return it->key && it->text ? 0 : ERR_NOMEM;
}

/* As in MLflow, the context of a data set is a tag. */
static int take_dataset_input(struct intake *in, const struct event *ev, const struct event_input *from)
{
	struct ingest_dataset *d = arena_alloc(in->arena, sizeof *d);
	struct ingest_kv *tag = arena_alloc(in->arena, sizeof *tag);
	struct intake_item *it;

	if (!from->name.len || !from->digest.len) {
		note_problem(in, "a data set without a name or a digest was left out");
		return 0;
	}
	it = add_intake_item(in, ev, EVENT_INPUT);
	if (!d || !tag || !it)
		return ERR_NOMEM;
	tag->key = CONTEXT_TAG;
	tag->value = clean_text(in, from->context, LIMIT_input_word_bytes);
	d->name = clean_text(in, from->name, LIMIT_input_name_bytes);
	d->digest = clean_text(in, from->digest, LIMIT_input_digest_bytes);
	d->source_type = clean_text(in, from->source_type, LIMIT_input_word_bytes);
	d->source = clean_text(in, from->source, LIMIT_value_bytes);
	d->profile = from->profile.len ? clean_text(in, from->profile, LIMIT_value_bytes) : NULL;
	d->tags = tag;
	d->tag_count = from->context.len ? 1 : 0;
	it->input = d;
	return tag->value && d->name && d->digest && d->source_type && d->source && (d->profile || !from->profile.len)
		? 0 : ERR_NOMEM;
}

/* Returns true if the tag has no other name than "note": its text is the note of the run, not of a step. */
static bool is_note_tag(struct event_text tag)
{
	const char *end = memchr(tag.at, '/', tag.len);
	size_t n = end ? (size_t)(end - tag.at) : tag.len;
	struct event_text rest = { tag.at + n, tag.len - n };

	return ((n == 4 && !memcmp(tag.at, "note", n)) || (n == 5 && !memcmp(tag.at, "notes", n))) &&
	       (!rest.len || event_text_equal(rest, "/text_summary"));
}

/* Images, histograms, texts, tables, sounds; other data is skipped. */
static int take_media_item(struct intake *in, const struct ingest_op *op, const struct event *ev,
			   const struct event_item *item)
{
	struct intake_item *it;
	const char *key;
	struct buf content;
	char digest[65];
	enum media_kind kind;
	char *copy;

	buf_init(&content, LIMIT_record_bytes);
	kind = media_content(item->raw, &content);
	if (!kind)
		report_left_out(in, item);
	key = kind ? clean_key(in, item->key, "media") : NULL;
	if (!key || buf_failed(&content) || content.len > LIMIT_media_bytes) {
		if (key)
			note_problem(in, arena_printf(in->arena, "'%s' was left out: it is larger than %d bytes", key,
						      (int)LIMIT_media_bytes));
		buf_done(&content);
		return 0;
	}
	sha256_hex(content.data, content.len, digest);
	it = add_intake_item(in, ev, EVENT_OTHER);
	copy = arena_alloc(in->arena, content.len);
	if (it && copy) {
		memcpy(copy, content.data, content.len);
		it->key = key;
		it->bytes = copy;
		it->len = content.len;
		it->digest = arena_strdup(in->arena, digest);
		it->count = kind;
		it->step = ev->step;
		it->wall_time = ev->wall_time;
		it->rank = op->foreign ? EVENT_RANK_RUN : item->rank;
	}
	buf_done(&content);
	return it && copy && it->digest ? 0 : ERR_NOMEM;
}

/* Checks the first record of a journal and copies it. */
static int take_journal_header(struct intake *in, const struct ingest_op *op, const struct event_header *h,
			       struct err *err)
{
	struct intake_header *out = arena_alloc(in->arena, sizeof *out);

	if (!out)
		return no_memory(err);
	if (op->foreign || !event_text_equal(h->run_id, op->run) || !event_text_equal(h->writer_id, op->writer))
		return err_set(
			err, ERR_USAGE, "the journal's first record names run %.*s and writer %.*s, not %s and %s",
			(int)h->run_id.len, h->run_id.at, (int)h->writer_id.len, h->writer_id.at, op->run, op->writer);
	if (h->format != 1)
		return err_set(err, ERR_UNSUPPORTED, "journal format %u is newer than this server knows", h->format);
	if (h->rank < EVENT_RANK_LAUNCHER || h->rank > LIMIT_rank || h->segment < 0 || h->segment > LIMIT_segment)
		return err_set(err, ERR_USAGE, "the journal's first record has rank %d, segment %d", h->rank,
			       h->segment);
	*out = (struct intake_header){
		.experiment = clean_text(in, h->experiment, LIMIT_name_chars),
		.name = clean_text(in, h->run_name, LIMIT_name_chars),
		.host = clean_text(in, h->host, 255),
		.rank = h->rank,
		.world_size = h->world_size,
		.segment = h->segment,
		.ordered = h->ordered,
		.first_step = h->first_step,
		.first_epoch = h->first_epoch,
		.pid = h->pid,
	};
	if (!out->experiment || !out->name || !out->host)
		return no_memory(err);
	in->header = out;
	return 0;
}

/* Copies one item of a record into the batch. */
static int take_journal_item(struct gather *g, const struct ingest_op *op, struct event *ev,
			     const struct event_item *item, struct err *err)
{
	int rc;

	if (item->kind == EVENT_SCALAR) {
		struct sum_point p = { ev->step, ev->wall_time, item->value };
		int rank = op->foreign ? EVENT_RANK_RUN : item->rank;
		char scratch[SERIES_NAME_BYTES];

		rc = gather_point(g, op->foreign ? item->key : series_current_name(item->key, scratch), rank, &p);
	} else if (item->kind == EVENT_HEADER) {
		return take_journal_header(g->in, op, item->header, err);
	} else if (item->kind == EVENT_PARAM || item->kind == EVENT_TAG || item->kind == EVENT_ENV) {
		rc = take_param_pair(g->in, ev, item);
	} else if (item->kind == EVENT_OTHER || (item->kind == EVENT_TEXT && !is_note_tag(item->key))) {
		rc = take_media_item(g->in, op, ev, item);
	} else if (item->kind == EVENT_CONSOLE) {
		rc = take_console_line(g->in, ev, item);
	} else if (item->kind == EVENT_CODE || item->kind == EVENT_ALERT) {
		rc = take_code_or_alert(g->in, ev, item);
	} else if (item->kind == EVENT_FILE) {
		rc = take_file_item(g->in, ev, item);
	} else if (item->kind == EVENT_INPUT) {
		rc = take_dataset_input(g->in, ev, &item->input);
	} else if (item->kind == EVENT_HPARAMS_END && op->foreign && op->foreign->annotates) {
		rc = 0;
	} else {
		rc = take_other_item(g->in, ev, item);
	}
	return rc ? err_set(err, rc, "out of memory") : 0;
}

/* Decodes one record; a malformed one becomes a problem. */
static int take_journal_record(struct gather *g, const struct ingest_op *op, const struct record *rec, struct err *err)
{
	struct intake *in = g->in;
	struct event ev;
	struct event_item item;
	int rc;

	if (event_open(&ev, rec->payload, rec->payload_bytes)) {
		note_problem(in, "a record is not an Event message");
		return 0;
	}
	while ((rc = event_next(&ev, &item)) > 0) {
		rc = take_journal_item(g, op, &ev, &item, err);
		if (rc)
			return rc;
	}
	if (rc < 0)
		note_problem(in, "a record has a malformed Event message");
	if (ev.wall_time > 0 && ev.wall_time < 1e14) {
		int64_t ms = (int64_t)(ev.wall_time * 1e3);

		in->first_ms = in->first_ms == INT64_MIN ? ms : in->first_ms;
		in->last_ms = ms > in->last_ms ? ms : in->last_ms;
	}
	in->spoke = true;
	return 0;
}

static int report_bad_bytes(struct intake *in, const struct ingest_op *op, uint64_t at, bool framed, struct err *err)
{
	if (!op->path)
		return err_set(err, ERR_CORRUPT, "journal %s: the record at byte %llu fails its checksum", op->writer,
			       (unsigned long long)at);
	note_problem(in,
		     framed ? arena_printf(in->arena, "%s: the record at byte %llu fails its checksum and was skipped",
					   op->path, (unsigned long long)at)
			    : arena_printf(in->arena, "%s: damaged at byte %llu: the rest cannot be read", op->path,
					   (unsigned long long)at));
	in->damaged = in->damaged || !framed;
	return 0;
}

/* Decodes all whole records of op->bytes. */
static int walk_journal(struct gather *g, const struct ingest_op *op, struct err *err)
{
	struct intake *in = g->in;
	size_t at = 0, before;
	enum record_state state;
	struct record rec;
	int rc = 0;

	for (;;) {
		before = at;
		state = record_next(op->bytes, op->len, &at, &rec);
		if (state == RECORD_MORE)
			break;
		if (state == RECORD_OK)
			rc = take_journal_record(g, op, &rec, err);
		else
			rc = report_bad_bytes(in, op, op->offset + before, state == RECORD_BAD_PAYLOAD, err);
		if (rc || in->damaged)
			break;
		if (state == RECORD_BAD_PAYLOAD)
			at = before + (size_t)rec.frame_bytes;
		if (op->offset == 0 && before == 0 && !op->foreign && !in->header)
			return err_set(err, ERR_CORRUPT, "journal %s does not begin with a header record", op->writer);
		in->end = op->offset + at;
	}
	return rc;
}

int intake_journal(struct intake *in, const struct ingest_op *op, struct err *err)
{
	struct gather g;
	int rc;

	in->end = op->offset;
	if (gather_init(&g, in))
		return no_memory(err);
	rc = walk_journal(&g, op, err);
	/* What is whole before the damage is stored; the caller still gets the error. */
	if ((!rc || rc == ERR_CORRUPT) && gather_finish(&g))
		rc = no_memory(err);
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

	if (gather_init(&g, in))
		return no_memory(err);
	for (i = 0; i < op->point_count && !rc; i++) {
		const struct ingest_point *p = &op->points[i];
		struct event_text key = { p->key, strlen(p->key) };
		const char *wrong = key_check(key.at, key.len);

		if (wrong || p->rank < EVENT_RANK_RUN || p->rank > LIMIT_rank)
			rc = refuse_point(p, i, wrong, err);
		else if (gather_point(&g, key, p->rank, &(struct sum_point){ p->step, p->wall_time, p->value }))
			rc = no_memory(err);
	}
	if (!rc && gather_finish(&g))
		rc = no_memory(err);
	in->spoke = true;
	gather_done(&g);
	return rc;
}
