/* SPDX-License-Identifier: Apache-2.0 */
/* api_run_records.c: /runs/{run}/console, code, alerts and media: records of a run other than metrics and params. */
#include "web/store/read/run_records.h"

#include <inttypes.h>

#include "web/api/blob.h"
#include "web/api/native/native_inside.h"

enum { CONSOLE_LINES = 1000, CONSOLE_LINES_MAX = 50000 };

static void write_console_line(struct js *j, const struct run_records_line *l)
{
	js_open(j, '{');
	js_key_int(j, "n", l->number);
	js_key_int(j, "time", l->time_ms);
	js_key_str(j, "stream", l->stream == 2 ? "stderr" : "stdout");
	if (l->again)
		js_key_bool(j, "again", true);
	js_key(j, "text");
	js_strn(j, l->text, l->text_len);
	js_close(j, '}');
}

/* Writes one page of console lines, and the list of ranks and segments that have a console. */
static void write_console(struct call *c, const struct run_records_console *console)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_int(&j, "rank", console->part.rank);
	js_key_int(&j, "segment", console->part.segment);
	js_key_int(&j, "total", console->part.lines);
	js_key_open(&j, "parts", '[');
	for (size_t i = 0; i < console->part_count; i++) {
		js_open(&j, '{');
		js_key_int(&j, "rank", console->parts[i].rank);
		js_key_int(&j, "segment", console->parts[i].segment);
		js_key_int(&j, "lines", console->parts[i].lines);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	js_key_open(&j, "lines", '[');
	for (size_t i = 0; i < console->line_count; i++)
		write_console_line(&j, &console->lines[i]);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

enum call_next on_console_get(struct call *c)
{
	struct run_records_console_opts o = { .run = call_run_id(c, 0), .search = call_arg(c, "search") };
	int64_t rank = INT_MIN, segment = -1, limit = CONSOLE_LINES;
	struct run_records_console console;
	struct err err = ERR_INIT;

	o.at_ms = INT64_MIN;
	if (!o.run || !call_arg_int(c, "rank", &rank, 0, INT_MAX) ||
	    !call_arg_int(c, "segment", &segment, 0, INT_MAX) ||
	    !call_arg_int(c, "from", &o.from, INT_MIN, INT64_MAX / 2) ||
	    !call_arg_int(c, "at", &o.at_ms, 0, INT64_MAX / 2) ||
	    !call_arg_int(c, "limit", &limit, 1, CONSOLE_LINES_MAX) || !call_args_done(c))
		return CALL_DONE;
	if (o.search && !*o.search)
		o.search = NULL;
	o.rank = (int)rank;
	o.segment = (int)segment;
	o.limit = (size_t)limit;
	if (run_records_console(c->api->store, &o, c->arena, &console, &err))
		return call_fail_err(c, "run", &err);
	write_console(c, &console);
	return CALL_DONE;
}

enum call_next on_code_get(struct call *c)
{
	const char *run = call_run_id(c, 0);
	struct run_records_codes code;
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;

	if (!run || !call_args_done(c))
		return CALL_DONE;
	if (run_records_codes(c->api->store, run, c->arena, &code, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	js_key_open(&j, "code", '[');
	for (size_t i = 0; i < code.count; i++) {
		js_open(&j, '{');
		js_key_int(&j, "segment", code.items[i].segment);
		js_key_str(&j, "name", code.items[i].name);
		js_key_str(&j, "text", code.items[i].text);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	return js_reply(c, &j);
}

/* Replies with the edition, or with the newest; 0: that one. */
static enum call_next reply_notes(struct call *c, const char *run, int64_t edition)
{
	struct js j = { .out = &c->out };
	struct run_records_notes notes;
	struct err err = ERR_INIT;
	const char *text = edition ? NULL : "";

	if (run_records_notes(c->api->store, run, c->arena, &notes, &err))
		return call_fail_err(c, "run", &err);
	for (size_t i = 0; i < notes.count; i++)
		if (!edition || notes.items[i].number == edition)
			text = notes.items[i].text;
	if (!text)
		return call_fail(c, CALL_not_found, "edition", "the notes of the run have no edition %" PRId64,
				 edition);
	js_open(&j, '{');
	run_json_notes(&j, text);
	js_key_open(&j, "editions", '[');
	for (size_t i = 0; i < notes.count; i++)
		run_json_edition(&j, notes.items[i].number, notes.items[i].written_ms);
	js_close(&j, ']');
	return js_reply(c, &j);
}

enum call_next on_notes_get(struct call *c)
{
	const char *run = call_run_id(c, 0);
	int64_t edition = 0;

	if (!run || !call_arg_int(c, "edition", &edition, 1, INT64_MAX) || !call_args_done(c))
		return CALL_DONE;
	return reply_notes(c, run, edition);
}

static enum call_next reply_forgotten(struct call *c, const struct ingest_result *res)
{
	return reply_notes(c, res->id, 0);
}

enum call_next on_notes_edition_delete(struct call *c)
{
	struct ingest_op op = { .kind = &change_note_forget, .run = call_run_id(c, 0), .state = INGEST_NO_STATE };

	if (!op.run || !request_number(c, 1, "edition") || !call_args_done(c))
		return CALL_DONE;
	op.name = c->address.vars[1];
	return api_submit(c, &(struct api_change){ .op = &op, .field = "edition", .then = reply_forgotten });
}

static void write_run_alert(struct js *j, const struct run_records_alert *a)
{
	static const char *const levels[] = { "info", "info", "warning", "error" };

	js_open(j, '{');
	js_key_int(j, "rank", a->rank);
	js_key_int(j, "segment", a->segment);
	js_key_int(j, "step", a->step);
	js_key_int(j, "time", a->time_ms);
	js_key_str(j, "level", levels[a->level & 3]);
	js_key_str(j, "title", a->title);
	js_key_str(j, "text", a->text);
	js_close(j, '}');
}

enum call_next on_alerts_get(struct call *c)
{
	const char *run = call_run_id(c, 0);
	struct run_records_alerts alerts;
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;

	if (!run || !call_args_done(c))
		return CALL_DONE;
	if (run_records_alerts(c->api->store, run, c->arena, &alerts, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	js_key_open(&j, "alerts", '[');
	for (size_t i = 0; i < alerts.count; i++)
		write_run_alert(&j, &alerts.items[i]);
	js_close(&j, ']');
	return js_reply(c, &j);
}

/* ---- media ---- */

enum { MEDIA_ITEMS = 1000, MEDIA_ITEMS_MAX = 50000 };

static const char *const kind_words[] = { "any", "image", "histogram", "text", "table", "audio", NULL };

static void write_media_item(struct js *j, const struct stored_media *m)
{
	js_open(j, '{');
	js_key_str(j, "key", m->key);
	js_key_str(j, "kind", media_kind_name(m->kind));
	js_key_int(j, "rank", m->rank);
	js_key_int(j, "segment", m->segment);
	js_key_int(j, "step", m->step);
	js_key_double(j, "wall_time", m->wall_time);
	js_key_str(j, "content", m->digest);
	js_key_str(j, "type", m->type);
	js_key_int(j, "bytes", m->bytes);
	if (m->kind == MEDIA_IMAGE || m->kind == MEDIA_TABLE) {
		js_key_int(j, "width", m->width);
		js_key_int(j, "height", m->height);
	}
	js_close(j, '}');
}

/* Writes the keys of the media of a run, then the items of the page. */
static void write_media_list(struct call *c, const struct media_list *l)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_open(&j, "keys", '[');
	for (size_t i = 0; i < l->key_count; i++) {
		js_open(&j, '{');
		js_key_str(&j, "key", l->keys[i].key);
		js_key_str(&j, "kind", media_kind_name(l->keys[i].kind));
		js_key_int(&j, "count", l->keys[i].count);
		js_key_int(&j, "first_step", l->keys[i].first_step);
		js_key_int(&j, "last_step", l->keys[i].last_step);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	js_key_open(&j, "media", '[');
	for (size_t i = 0; i < l->count; i++)
		write_media_item(&j, &l->items[i]);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

enum call_next on_media_list(struct call *c)
{
	struct media_opts o = { .run = call_run_id(c, 0), .from = INT64_MIN, .to = INT64_MAX };
	int64_t limit = MEDIA_ITEMS;
	struct media_list list;
	struct err err = ERR_INIT;
	int kind = 0;

	if (!o.run)
		return CALL_DONE;
	o.key = call_arg(c, "key");
	if (!call_arg_word(c, "kind", kind_words, &kind) || !request_segments(c, call_arg(c, "segments"), &o.hidden) ||
	    !call_arg_int(c, "from", &o.from, INT64_MIN, INT64_MAX) ||
	    !call_arg_int(c, "to", &o.to, INT64_MIN, INT64_MAX) ||
	    !call_arg_int(c, "limit", &limit, 0, MEDIA_ITEMS_MAX) || !call_args_done(c))
		return CALL_DONE;
	o.kind = (enum media_kind)kind;
	o.limit = (size_t)limit;
	if (media_of_run(c->api->store, &o, c->arena, &list, &err))
		return call_fail_err(c, "run", &err);
	write_media_list(c, &list);
	return CALL_DONE;
}

static void write_media_histogram(struct call *c, const struct media *m)
{
	struct js j = { .out = &c->out };
	size_t n = media_bins(m);

	js_open(&j, '{');
	js_key_open(&j, "edges", '[');
	for (size_t i = 0; i < n; i++)
		js_double(&j, media_bin(m, i).left);
	if (n)
		js_double(&j, media_bin(m, n - 1).right);
	js_close(&j, ']');
	js_key_open(&j, "counts", '[');
	for (size_t i = 0; i < n; i++)
		js_double(&j, media_bin(m, i).count);
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

/* Writes the cells of a table as rows of m.width strings. */
static void write_media_table(struct call *c, struct media m)
{
	struct js j = { .out = &c->out };
	struct event_text cell;
	uint64_t at = 0;

	js_open(&j, '{');
	js_key_open(&j, "rows", '[');
	for (; media_string(&m.strings, &cell); at++) {
		if (m.width && at % m.width == 0) {
			if (at)
				js_close(&j, ']');
			js_open(&j, '[');
		}
		js_strn(&j, cell.at, cell.len);
	}
	if (at && m.width)
		js_close(&j, ']');
	js_close(&j, ']');
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
}

static void write_media_text(struct call *c, struct media m)
{
	struct event_text text;

	for (bool first = true; media_string(&m.strings, &text); first = false) {
		if (!first)
			buf_adds(&c->out, "\n\n");
		buf_add(&c->out, text.at, text.len);
	}
}

static const char *const media_views[] = { "frame", NULL };

enum call_next on_media_get(struct call *c)
{
	const char *run = call_run_id(c, 0), *digest = c->address.vars[1];
	struct err err = ERR_INIT;
	struct event_span content;
	struct media m;
	int view = -1;

	if (!run || !call_arg_word(c, "view", media_views, &view) || !call_args_done(c))
		return CALL_DONE;
	if (media_get(c->api->store, &(struct media_ref){ run, digest }, c->arena, &content, &err))
		return call_fail_err(c, "content", &err);
	if (media_read(content, &m))
		return call_fail(c, CALL_not_found, "content", "the content is damaged");
	c->type = media_type(&m);
	if (!view && !strncmp(c->type, "text/html", 9))
		blob_allow_frame(c);
	c->reply.cache = "private, max-age=31536000, immutable";
	if (m.kind == MEDIA_HISTOGRAM)
		write_media_histogram(c, &m);
	else if (m.kind == MEDIA_TABLE)
		write_media_table(c, m);
	else if (m.kind == MEDIA_TEXT)
		write_media_text(c, m);
	else
		buf_add(&c->out, m.bytes.at, (size_t)(m.bytes.end - m.bytes.at));
	return CALL_DONE;
}
