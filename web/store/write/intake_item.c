/* SPDX-License-Identifier: Apache-2.0 */
/* intake_item.c: what a record of a journal has besides points: header, params, tags, status, console lines, code,
 * alerts, files, data sets and media, with their texts cleaned and bounded. */
#include "web/store/write/intake.h"

#include <math.h>

#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"

#define SESSION_START 1 /* value in TensorFlow's SessionLog */
#define CONTEXT_TAG "mlflow.data.context"

void intake_item_problem(struct intake *in, const char *text)
{
	struct intake_problem *p;
	char *clean;

	in->rejected++;
	for (p = in->problems; p; p = p->next)
		if (!strcmp(p->text, text)) {
			p->count++;
			return;
		}
	p = arena_alloc(in->arena, sizeof(*p));
	clean = arena_alloc(in->arena, strlen(text) * 3 + 1);
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
	utf8_copy(copy, room, t.at, t.len, NULL);
	return copy;
}

const char *intake_item_key(struct intake *in, struct event_text key, const char *what)
{
	const char *wrong = key_check(key.at, key.len);
	struct event_text head = { key.at, key.len < 60 ? key.len : 60 };
	char *copy;

	if (wrong) {
		intake_item_problem(in, arena_printf(in->arena, "%s key '%s%s' %s", what, clean_text(in, head, 200),
						     key.len > 60 ? "…" : "", wrong));
		return NULL;
	}
	copy = arena_alloc(in->arena, key.len + 1);
	memcpy(copy, key.at, key.len);
	return copy;
}

static struct intake_item *add_intake_item(struct intake *in, const struct event *ev, enum event_kind kind)
{
	struct intake_item *it = arena_alloc(in->arena, sizeof(*it));

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
	char number[TEXT_DOUBLE_BYTES];

	switch (item->type) {
	case EVENT_TYPE_F64:
		return arena_strdup(in->arena, text_double(number, item->value, 15));
	case EVENT_TYPE_I64:
		return arena_printf(in->arena, "%lld", (long long)item->integer);
	case EVENT_TYPE_BOOL:
		return item->integer ? "true" : "false";
	default:
		return clean_text(in, item->text, LIMIT_value_bytes);
	}
}

static void take_param_pair(struct intake *in, const struct event *ev, const struct event_item *item)
{
	const char *what = item->kind == EVENT_PARAM ? "param" : item->kind == EVENT_TAG ? "tag" : "environment";
	const char *key = intake_item_key(in, item->key, what);
	struct intake_item *it;

	if (!key)
		return;
	if ((item->kind != EVENT_PARAM || item->type == EVENT_TYPE_TEXT) && item->text.len > LIMIT_value_bytes) {
		intake_item_problem(in, arena_printf(in->arena, "%s '%s': a value of %zu bytes was cut to %d", what,
						     key, item->text.len, (int)LIMIT_value_bytes));
		in->rejected--;
	}
	it = add_intake_item(in, ev, item->kind);
	it->key = key;
	it->segment = item->kind == EVENT_PARAM && item->segment;
	it->changed = item->kind == EVENT_PARAM && item->changed;
	it->text = item->kind == EVENT_PARAM ? render_param(in, item) : clean_text(in, item->text, LIMIT_value_bytes);
}

/* Data of other TensorBoard plugins is not stored; a problem reports each kind once. */
static void report_left_out(struct intake *in, const struct event_item *item)
{
	static const char *const silent[] = { "", "hparams", "scalars", "text" };
	size_t i;

	for (i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
		if (event_text_equal(item->text, silent[i]))
			return;
	intake_item_problem(in, arena_printf(in->arena,
					     "%s of TensorBoard cannot be stored: they remain in their event file",
					     clean_text(in, item->text, 100)));
}

static void take_other_item(struct intake *in, const struct event *ev, const struct event_item *item)
{
	struct intake_item *it;
	size_t max_bytes = item->kind == EVENT_STATUS ? LIMIT_reason_bytes : LIMIT_note_bytes;

	if (item->kind == EVENT_FILE_VERSION || item->kind == EVENT_HEARTBEAT ||
	    (item->kind == EVENT_SESSION && item->integer != SESSION_START))
		return;
	it = add_intake_item(in, ev, item->kind);
	it->status = item->status;
	it->step = ev->step;
	if (item->kind == EVENT_NOTE || item->kind == EVENT_STATUS || item->kind == EVENT_TEXT)
		it->text = clean_text(in, item->text, max_bytes);
	if (item->kind == EVENT_TEXT)
		it->key = clean_text(in, item->key, LIMIT_key_bytes);
	if (item->kind == EVENT_HPARAMS_START || item->kind == EVENT_HPARAMS_END)
		it->end_ms = isfinite(item->value) && fabs(item->value) < 1e14 ? (int64_t)(item->value * 1e3) : 0;
}

/* Keeps the lines in the message that they arrived in, up to the first malformed one. */
static void take_console_line(struct intake *in, const struct event *ev, const struct event_item *item)
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
		intake_item_problem(in, "console lines are malformed");
	if (!lines)
		return;
	it = add_intake_item(in, ev, item->kind);
	copy = arena_alloc(in->arena, item->text.len);
	it->count = lines;
	it->len = (size_t)(whole - begin);
	memcpy(copy, begin, it->len);
	it->bytes = copy;
}

/* Code and alerts. */
static void take_code_or_alert(struct intake *in, const struct event *ev, const struct event_item *item)
{
	bool code = item->kind == EVENT_CODE;
	const char *key =
		code ? intake_item_key(in, item->key, "code") : clean_text(in, item->key, LIMIT_alert_title_bytes);
	struct intake_item *it;

	if (!key)
		return;
	it = add_intake_item(in, ev, item->kind);
	it->key = key;
	it->text = clean_text(in, item->text, code ? LIMIT_code_bytes : LIMIT_alert_text_bytes);
	it->step = ev->step;
	it->count = item->integer;
}

/* A file stored with the run: its name, size and SHA-256. */
static void take_file_item(struct intake *in, const struct event *ev, const struct event_item *item)
{
	struct intake_item *it;

	if (!item->key.len || item->key.len > LIMIT_file_name_bytes || item->text.len != 64) {
		intake_item_problem(in, "a file without a name or a digest was left out");
		return;
	}
	it = add_intake_item(in, ev, EVENT_FILE);
	it->key = clean_text(in, item->key, LIMIT_file_name_bytes);
	it->text = clean_text(in, item->text, 64);
	it->count = item->integer;
}

/* As in MLflow, the context of a data set is a tag. */
static void take_dataset_input(struct intake *in, const struct event *ev, const struct event_input *from)
{
	struct ingest_dataset *d = arena_alloc(in->arena, sizeof(*d));
	struct ingest_kv *tag = arena_alloc(in->arena, sizeof(*tag));
	struct intake_item *it;

	if (!from->name.len || !from->digest.len) {
		intake_item_problem(in, "a data set without a name or a digest was left out");
		return;
	}
	it = add_intake_item(in, ev, EVENT_INPUT);
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
static void take_media_item(struct intake *in, const struct ingest_op *op, const struct event *ev,
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
	key = kind ? intake_item_key(in, item->key, "media") : NULL;
	if (!key || buf_failed(&content) || content.len > LIMIT_media_bytes) {
		if (key)
			intake_item_problem(in, arena_printf(in->arena, "'%s' was left out: it is larger than %d bytes",
							     key, (int)LIMIT_media_bytes));
		buf_done(&content);
		return;
	}
	sha256_hex(content.data, content.len, digest);
	it = add_intake_item(in, ev, EVENT_OTHER);
	copy = arena_alloc(in->arena, content.len);
	memcpy(copy, content.data, content.len);
	it->key = key;
	it->bytes = copy;
	it->len = content.len;
	it->digest = arena_strdup(in->arena, digest);
	it->count = kind;
	it->step = ev->step;
	it->wall_time = ev->wall_time;
	it->rank = op->journal.foreign && item->rank == EVENT_RANK_DEFAULT ? EVENT_RANK_RUN : item->rank;
	buf_done(&content);
}

int intake_header_add(struct intake *in, const struct ingest_op *op, const struct event_header *h, struct err *err)
{
	struct intake_header *out = arena_alloc(in->arena, sizeof(*out));

	if (op->journal.foreign || !event_text_equal(h->run_id, op->run) ||
	    !event_text_equal(h->writer_id, op->journal.writer))
		return err_set(err, ERR_USAGE,
			       "the journal's first record names run %.*s and writer %.*s, not %s and %s",
			       (int)h->run_id.len, h->run_id.at, (int)h->writer_id.len, h->writer_id.at, op->run,
			       op->journal.writer);
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
	in->header = out;
	return 0;
}

void intake_item_add(struct intake *in, const struct ingest_op *op, const struct event *ev,
		     const struct event_item *item)
{
	if (item->kind == EVENT_PARAM || item->kind == EVENT_TAG || item->kind == EVENT_ENV)
		take_param_pair(in, ev, item);
	else if (item->kind == EVENT_OTHER || (item->kind == EVENT_TEXT && !is_note_tag(item->key)))
		take_media_item(in, op, ev, item);
	else if (item->kind == EVENT_CONSOLE)
		take_console_line(in, ev, item);
	else if (item->kind == EVENT_CODE || item->kind == EVENT_ALERT)
		take_code_or_alert(in, ev, item);
	else if (item->kind == EVENT_FILE)
		take_file_item(in, ev, item);
	else if (item->kind == EVENT_INPUT)
		take_dataset_input(in, ev, &item->input);
	else if (item->kind != EVENT_HPARAMS_END || !op->journal.foreign || !op->journal.foreign->annotates)
		take_other_item(in, ev, item);
}
