/* SPDX-License-Identifier: Apache-2.0 */
/* run_records.c: reads records besides numbers and settings. Decodes only rows of the console that may have requested
 * lines. */
#include "web/store/read/run_records.h"

#include "tracker/event/event_encode.h"
#include "web/store/points/series_summary.h"

static int load_console_parts(struct db *d, int64_t id, struct arena *a, struct run_records_console *c, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_console_parts, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &c->parts, &c->part_count,
			  (struct run_records_part){ db_i32(q, COL_console_parts_rank),
						     db_i32(q, COL_console_parts_segment),
						     db_i64(q, COL_console_parts_lines) });
	return rc;
}

/* Chooses the lowest rank with lines, in its newest segment with lines, unless the request names others. */
static void choose_part(const struct run_records_console_opts *o, struct run_records_console *c)
{
	const struct run_records_part *found = NULL;

	for (size_t i = 0; i < c->part_count; i++) {
		const struct run_records_part *p = &c->parts[i];

		if ((o->rank != INT_MIN && p->rank != o->rank) || (o->segment >= 0 && p->segment != o->segment))
			continue;
		if (!found || p->rank == found->rank)
			found = p;
	}
	if (found)
		c->part = *found;
}

/* State of reading one part. */
struct console_lines {
	const struct run_records_console_opts *o;
	struct run_records_console *c;
	struct arena *a;
	int64_t from;
	size_t search_len;
};

static void keep_line(struct console_lines *l, const struct console_line *line, int64_t number, int64_t time_ms)
{
	struct run_records_console *c = l->c;
	char *text = arena_alloc(l->a, line->text.len + 1);

	c->lines = list_room(l->a, c->lines, c->line_count, sizeof(*c->lines));
	memcpy(text, line->text.at, line->text.len);
	c->lines[c->line_count++] = (struct run_records_line){
		.number = number, .time_ms = time_ms + line->ms, .stream = line->stream, .again = line->again,
		.text = text, .text_len = line->text.len,
	};
}

static void take_line_row(struct console_lines *l, int64_t number, int64_t time_ms, struct event_span bytes)
{
	const struct run_records_console_opts *o = l->o;
	struct console_line line;

	if (o->search && !memmem(bytes.at, (size_t)(bytes.end - bytes.at), o->search, l->search_len))
		return;
	for (; l->c->line_count < o->limit && console_next(&bytes, &line) > 0; number++) {
		if (number < l->from || (o->search && !memmem(line.text.at, line.text.len, o->search, l->search_len)))
			continue;
		keep_line(l, &line, number, time_ms);
	}
}

static struct event_span row_bytes(struct db_rows *q)
{
	const unsigned char *bytes = db_blob(q, COL_console_from_bytes);

	return (struct event_span){ bytes, bytes + db_bytes(q, COL_console_from_bytes) };
}

/* The number of the last line printed by at_ms; 0: none. */
static int line_at(struct db *d, int64_t id, struct console_lines *l, int64_t *ret, struct err *err)
{
	const struct run_records_part *p = &l->c->part;
	int64_t first = 0, begun, at_ms = l->o->at_ms;
	struct console_line line;
	struct event_span rest;
	struct db_rows *q;
	int rc = db_int(d, &first, DB_console_before, err, "iiii", id, (int64_t)p->rank, (int64_t)p->segment, at_ms);

	*ret = first;
	if (rc <= 0)
		return rc;
	rc = db_start(d, &q, DB_console_from, err, "iiii", id, (int64_t)p->rank, (int64_t)p->segment, first);
	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	rest = row_bytes(q);
	begun = db_i64(q, COL_console_from_time_ms);
	for (; console_next(&rest, &line) > 0 && begun + line.ms <= at_ms; first++)
		*ret = first;
	db_stop(q);
	return 0;
}

static int load_console_lines(struct db *d, int64_t id, struct console_lines *l, struct err *err)
{
	const struct run_records_part *p = &l->c->part;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_console_from, err, "iiii", id, (int64_t)p->rank, (int64_t)p->segment, l->from);

	while (rc >= 0 && l->c->line_count < l->o->limit && (rc = db_next(d, q, err)) > 0) {
		take_line_row(l, db_i64(q, COL_console_from_first_line), db_i64(q, COL_console_from_time_ms),
			      row_bytes(q));
		if (l->c->line_count == l->o->limit)
			db_stop(q);
	}
	return rc < 0 ? rc : 0;
}

static int load_console(struct db *d, int64_t id, struct console_lines *l, struct err *err)
{
	int64_t at = 0;
	int rc = load_console_parts(d, id, l->a, l->c, err);

	choose_part(l->o, l->c);
	if (rc || !l->c->part.lines)
		return rc;
	if (l->o->at_ms != INT64_MIN)
		rc = line_at(d, id, l, &at, err);
	else if (l->o->from < 0)
		at = l->c->part.lines;
	l->from = at + l->o->from < 0 ? 0 : at + l->o->from;
	return rc ? rc : load_console_lines(d, id, l, err);
}

int run_records_console(struct store *s, const struct run_records_console_opts *o, struct arena *a,
			struct run_records_console *ret, struct err *err)
{
	struct run_records_console c = { .part = { .rank = o->rank == INT_MIN ? 0 : o->rank, .segment = o->segment } };
	struct console_lines l = { .o = o, .c = &c, .a = a, .search_len = o->search ? strlen(o->search) : 0 };
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, o->run, &id, err);

	if (rc)
		return rc;
	rc = load_console(d, id, &l, err);
	readers_give(s, d);
	if (!rc)
		*ret = c;
	return rc;
}

int run_records_notes(struct store *s, const char *run, struct arena *a, struct run_records_notes *ret, struct err *err)
{
	struct run_records_notes list = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_note_editions, err, "i", id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &list.items, &list.count,
			  (struct run_records_edition){ db_i64(q, COL_note_editions_edition),
							db_time(q, COL_note_editions_written_ms),
							db_text(a, q, COL_note_editions_text) });
	readers_give(s, d);
	*ret = list;
	return rc;
}

int run_records_codes(struct store *s, const char *run, struct arena *a, struct run_records_codes *ret, struct err *err)
{
	struct run_records_codes list = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_code_of_run, err, "i", id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &list.items, &list.count,
			  (struct run_records_code){ db_i32(q, COL_code_of_run_segment),
						     db_text(a, q, COL_code_of_run_name),
						     db_text(a, q, COL_code_of_run_text) });
	readers_give(s, d);
	*ret = list;
	return rc;
}

int run_records_files(struct store *s, const char *run, struct arena *a, struct run_records_files *ret, struct err *err)
{
	struct run_records_files list = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_files_of_run, err, "i", id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &list.items, &list.count,
			  (struct run_records_file){ db_text(a, q, COL_files_of_run_name),
						     db_text(a, q, COL_files_of_run_sha256),
						     db_i64(q, COL_files_of_run_bytes) });
	readers_give(s, d);
	*ret = list;
	return rc;
}

static struct run_records_alert read_alert(struct db_rows *q, struct arena *a)
{
	return (struct run_records_alert){
		.rank = db_i32(q, COL_told_of_run_rank), .segment = db_i32(q, COL_told_of_run_segment),
		.level = db_i32(q, COL_told_of_run_level), .step = db_i64(q, COL_told_of_run_step),
		.time_ms = db_i64(q, COL_told_of_run_time_ms), .title = db_text(a, q, COL_told_of_run_title),
		.text = db_text(a, q, COL_told_of_run_text),
	};
}

int run_records_alerts(struct store *s, const char *run, struct arena *a, struct run_records_alerts *ret,
		       struct err *err)
{
	struct run_records_alerts list = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_told_of_run, err, "i", id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		list_push(a, &list.items, &list.count, read_alert(q, a));
	readers_give(s, d);
	*ret = list;
	return rc;
}

/* --- media ---------------------------------------------------------------------------------------------------- */

#define PART_ROWS 32

static bool is_media_hidden(int64_t hide_step, int64_t hide_epoch, const char *key, int64_t step)
{
	struct hide h = { hide_step, hide_epoch };

	return hide_has(hide_from(&h, key), step);
}

/* Each row is one step of a key in one segment. */
static void add_media_key(struct media_list *l, struct db_rows *q, struct arena *a)
{
	const char *name = db_str(q, COL_media_keys_name);
	enum media_kind kind = (enum media_kind)db_i32(q, COL_media_keys_kind);
	int64_t step = db_i64(q, COL_media_keys_step), number = db_i64(q, COL_media_keys_number);
	struct media_key *last = l->key_count ? &l->keys[l->key_count - 1] : NULL;

	if (is_media_hidden(db_i64(q, COL_media_keys_hide_step), db_i64(q, COL_media_keys_hide_epoch), name, step))
		return;
	if (!last || strcmp(last->key, name) || last->kind != kind) {
		l->keys = list_room(a, l->keys, l->key_count, sizeof(*l->keys));
		last = &l->keys[l->key_count++];
		*last = (struct media_key){ db_text(a, q, COL_media_keys_name), kind, 0, step, step };
	}
	last->count += number;
	last->first_step = step < last->first_step ? step : last->first_step;
	last->last_step = step > last->last_step ? step : last->last_step;
}

static int load_media_keys(struct db *d, int64_t id, struct arena *a, struct media_list *l, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_media_keys, err, "i", id);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		add_media_key(l, q, a);
	return rc;
}

static struct event_span copy_media_bytes(struct arena *a, const void *bytes, size_t n)
{
	unsigned char *to = arena_alloc(a, n ? n : 1);

	if (n)
		memcpy(to, bytes, n);
	return (struct event_span){ to, to + n };
}

static void add_media_item(struct media_list *l, struct db_rows *q, struct arena *a)
{
	struct stored_media *m;

	l->items = list_room(a, l->items, l->count, sizeof(*l->items));
	m = &l->items[l->count++];
	*m = (struct stored_media){
		.id = db_i64(q, COL_media_of_run_id), .key = db_text(a, q, COL_media_of_run_name),
		.digest = db_text(a, q, COL_media_of_run_digest),
		.kind = (enum media_kind)db_i32(q, COL_media_of_run_kind), .rank = db_i32(q, COL_media_of_run_rank),
		.segment = db_i32(q, COL_media_of_run_segment), .step = db_i64(q, COL_media_of_run_step),
		.wall_time = db_f64(q, COL_media_of_run_wall_time), .type = db_text(a, q, COL_media_of_run_type),
		.bytes = db_i64(q, COL_media_of_run_size), .width = db_i64(q, COL_media_of_run_width),
		.height = db_i64(q, COL_media_of_run_height),
	};
}

struct media_rows {
	struct db *d;
	struct db_rows *q;
	const struct media_opts *o;
	struct arena *a;
};

/* Reads the rows of a started query that are not hidden, at most o->limit. */
static int read_media_rows(const struct media_rows *r, struct media_list *l, struct err *err)
{
	const struct media_opts *o = r->o;
	struct db_rows *q = r->q;
	int rc = 0;

	while (l->count < o->limit && (rc = db_next(r->d, q, err)) > 0) {
		if (o->hidden ||
		    !is_media_hidden(db_i64(q, COL_media_of_run_hide_step), db_i64(q, COL_media_of_run_hide_epoch),
				     db_str(q, COL_media_of_run_name), db_i64(q, COL_media_of_run_step)))
			add_media_item(l, q, r->a);
		if (l->count == o->limit) {
			db_stop(q);
			return 0;
		}
	}
	return rc;
}

int media_of_run(struct store *s, const struct media_opts *o, struct arena *a, struct media_list *ret, struct err *err)
{
	struct media_list l = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, o->run, &id, err);

	if (rc)
		return rc;
	rc = load_media_keys(d, id, a, &l, err);
	if (!rc)
		rc = db_start(d, &q, DB_media_of_run, err, "itiix", id, o->key, o->from, o->to,
			      o->kind ? (int64_t)o->kind : INT64_MIN);
	if (!rc)
		rc = read_media_rows(&(struct media_rows){ d, q, o, a }, &l, err);
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}

int media_get(struct store *s, const struct media_ref *of, struct arena *a, struct event_span *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, of->run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_media_content, err, "it", id, of->digest);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		*ret = copy_media_bytes(a, db_blob(q, COL_media_content_bytes), db_bytes(q, COL_media_content_bytes));
		db_stop(q);
		rc = 0;
	} else if (!rc) {
		rc = err_set(err, ERR_NOENT, "the run has no media with that digest");
	}
	readers_give(s, d);
	return rc;
}

static void add_part_item(struct media_list *l, struct db_rows *q, struct arena *a)
{
	struct stored_media *m;

	l->items = list_room(a, l->items, l->count, sizeof(*l->items));
	m = &l->items[l->count++];
	*m = (struct stored_media){
		.id = db_i64(q, COL_media_of_part_id),
		.key = db_text(a, q, COL_media_of_part_name),
		.step = db_i64(q, COL_media_of_part_step),
		.wall_time = db_f64(q, COL_media_of_part_wall_time),
		.content =
			copy_media_bytes(a, db_blob(q, COL_media_of_part_bytes), db_bytes(q, COL_media_of_part_bytes)),
	};
}

int media_of_part(struct store *s, const struct media_part *part, struct arena *a, struct media_list *ret,
		  struct err *err)
{
	struct media_list l = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, part->run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_media_of_part, err, "iiiii", id, (int64_t)part->rank, (int64_t)part->segment,
		      part->after, INT64_C(0) + PART_ROWS);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		add_part_item(&l, q, a);
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}
