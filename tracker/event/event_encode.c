/* SPDX-License-Identifier: Apache-2.0 */
/* event_encode.c: builds the records of a journal. Standard messages hold what TensorBoard understands; extension
 * fields hold the rest, and what the standard messages would lose. */
#include "tracker/event/event_encode.h"

#include "tracker/event/extension.h"
#include "tracker/event/record.h"
#include "tracker/event/tensorboard.h"

#define FORMAT_VERSION 1u
#define SCALAR_BYTES_MAX 128u /* payload of a scalar without its key */

static size_t begin_event_record(struct buf *b, double wall_time)
{
	size_t begin = record_begin(b);

	wire_add_double(b, TB_EVENT_WALL_TIME, wall_time);
	return begin;
}

void encode_header(struct buf *b, double wall_time, const struct event_header *h)
{
	size_t rec = begin_event_record(b, wall_time), msg;

	wire_add_string(b, TB_EVENT_FILE_VERSION, "brain.Event:2");
	msg = wire_begin(b, FIELD_event_header);
	wire_add_varint(b, FIELD_header_format, FORMAT_VERSION);
	wire_add_text(b, FIELD_header_run_id, h->run_id);
	wire_add_text(b, FIELD_header_writer_id, h->writer_id);
	wire_add_sint(b, FIELD_header_rank, h->rank);
	wire_add_varint(b, FIELD_header_world_size, (uint64_t)h->world_size);
	wire_add_text(b, FIELD_header_experiment, h->experiment);
	wire_add_text(b, FIELD_header_run_name, h->run_name);
	wire_add_varint(b, FIELD_header_segment, (uint64_t)h->segment);
	wire_add_sint(b, FIELD_header_first_step, h->first_step);
	wire_add_sint(b, FIELD_header_first_epoch, h->first_epoch);
	wire_add_text(b, FIELD_header_host, h->host);
	wire_add_varint(b, FIELD_header_pid, (uint64_t)h->pid);
	wire_add_text(b, FIELD_header_version, h->version);
	if (h->ordered)
		wire_add_varint(b, FIELD_header_ordered, 1);
	wire_end(b, msg);
	record_end(b, rec);
}

void encode_file_version(struct buf *b, double wall_time)
{
	size_t rec = begin_event_record(b, wall_time);

	wire_add_string(b, TB_EVENT_FILE_VERSION, "brain.Event:2");
	record_end(b, rec);
}

void encode_session_start(struct buf *b, double wall_time, int64_t step)
{
	size_t rec = begin_event_record(b, wall_time), msg;

	if (step)
		wire_add_varint(b, TB_EVENT_STEP, (uint64_t)step);
	msg = wire_begin(b, TB_EVENT_SESSION_LOG);
	wire_add_varint(b, TB_SESSION_LOG_STATUS, TB_SESSION_LOG_START);
	wire_end(b, msg);
	record_end(b, rec);
}

static unsigned char *put_field_tag(unsigned char *p, unsigned number, enum wire_type type)
{
	return little_put_varint(p, (uint64_t)number << 3 | type);
}

/* Writes what follows the key inside a Summary.Value. */
static size_t put_scalar_value(unsigned char *to, const struct encode_scalar *s)
{
	uint32_t narrow = wire_narrow(s->value);
	double wide = wire_widen(narrow);
	uint64_t bits;
	unsigned char *p = put_field_tag(to, TB_VALUE_SIMPLE, WIRE_FIXED32);

	memcpy(&bits, &s->value, sizeof(bits));
	p = wire_put_fixed(p, narrow, 4);
	if (memcmp(&wide, &bits, sizeof(bits))) {
		p = put_field_tag(p, FIELD_value_f64, WIRE_FIXED64);
		p = wire_put_fixed(p, bits, 8);
	}
	if (s->rank != (s->journal_rank == 0 ? EVENT_RANK_RUN : s->journal_rank)) {
		p = put_field_tag(p, FIELD_value_rank, WIRE_VARINT);
		p = little_put_varint(p, little_zigzag(s->rank));
	}
	return (size_t)(p - to);
}

static size_t count_varint_bytes(uint64_t v)
{
	size_t n = 1;

	while (v >= 0x80) {
		v >>= 7;
		n++;
	}
	return n;
}

/* The record on the hot path: written in one pass, with the lengths of its messages computed first. */
void encode_scalar(struct buf *b, const struct encode_scalar *s)
{
	unsigned char tail[SCALAR_BYTES_MAX];
	size_t tail_n = put_scalar_value(tail, s);
	size_t value_n = 1 + count_varint_bytes(s->key.len) + s->key.len + tail_n;
	unsigned char *frame = (unsigned char *)buf_reserve(b, RECORD_FRAME_BYTES + SCALAR_BYTES_MAX + s->key.len);
	unsigned char *p;
	uint64_t wall_bits;

	if (!frame)
		return;
	p = frame + RECORD_HEAD_BYTES;
	memcpy(&wall_bits, &s->wall_time, sizeof(wall_bits));
	p = put_field_tag(p, TB_EVENT_WALL_TIME, WIRE_FIXED64);
	p = wire_put_fixed(p, wall_bits, 8);
	if (s->step) {
		p = put_field_tag(p, TB_EVENT_STEP, WIRE_VARINT);
		p = little_put_varint(p, (uint64_t)s->step);
	}
	p = put_field_tag(p, TB_EVENT_SUMMARY, WIRE_BYTES);
	p = little_put_varint(p, 1 + count_varint_bytes(value_n) + value_n);
	p = put_field_tag(p, TB_SUMMARY_VALUE, WIRE_BYTES);
	p = little_put_varint(p, value_n);
	p = put_field_tag(p, TB_VALUE_TAG, WIRE_BYTES);
	p = little_put_varint(p, s->key.len);
	memcpy(p, s->key.at, s->key.len);
	memcpy(p + s->key.len, tail, tail_n);
	p += s->key.len + tail_n;
	record_seal(frame, (size_t)(p - frame) - RECORD_HEAD_BYTES);
	b->len += (size_t)(p - frame) + RECORD_FRAME_BYTES - RECORD_HEAD_BYTES;
}

void encode_param(struct buf *b, double wall_time, const struct encode_param *p)
{
	size_t rec = begin_event_record(b, wall_time), msg = wire_begin(b, FIELD_event_param);

	wire_add_text(b, FIELD_param_key, p->key);
	switch (p->type) {
	case EVENT_TYPE_TEXT:
		wire_add_text(b, FIELD_param_text, p->text);
		break;
	case EVENT_TYPE_F64:
		wire_add_double(b, FIELD_param_f64, p->value);
		break;
	case EVENT_TYPE_I64:
		wire_add_sint(b, FIELD_param_i64, p->integer);
		break;
	case EVENT_TYPE_BOOL:
		wire_add_varint(b, FIELD_param_bool, p->integer != 0);
		break;
	}
	if (p->segment)
		wire_add_varint(b, FIELD_param_segment, 1);
	if (p->changed)
		wire_add_varint(b, FIELD_param_changed, 1);
	wire_end(b, msg);
	record_end(b, rec);
}

static void encode_pair_record(struct buf *b, double wall_time, unsigned number, const struct event_text pair[2])
{
	size_t rec = begin_event_record(b, wall_time), msg = wire_begin(b, number);

	wire_add_text(b, FIELD_pair_key, pair[0]);
	wire_add_text(b, FIELD_pair_value, pair[1]);
	wire_end(b, msg);
	record_end(b, rec);
}

void encode_tag(struct buf *b, double wall_time, struct event_text key, struct event_text value)
{
	encode_pair_record(b, wall_time, FIELD_event_tag, (struct event_text[2]){ key, value });
}

void encode_env(struct buf *b, double wall_time, struct event_text key, struct event_text value)
{
	encode_pair_record(b, wall_time, FIELD_event_env, (struct event_text[2]){ key, value });
}

void encode_code(struct buf *b, double wall_time, struct event_text name, struct event_text text)
{
	encode_pair_record(b, wall_time, FIELD_event_code, (struct event_text[2]){ name, text });
}

void encode_alert(struct buf *b, double wall_time, const struct encode_alert *a)
{
	size_t rec = begin_event_record(b, wall_time), msg;

	if (a->step)
		wire_add_varint(b, TB_EVENT_STEP, (uint64_t)a->step);
	msg = wire_begin(b, FIELD_event_alert);
	wire_add_varint(b, FIELD_alert_level, (uint64_t)a->level);
	wire_add_text(b, FIELD_alert_title, a->title);
	wire_add_text(b, FIELD_alert_text, a->text);
	wire_end(b, msg);
	record_end(b, rec);
}

static void add_nonempty_text(struct buf *b, unsigned number, struct event_text t)
{
	if (t.len)
		wire_add_text(b, number, t);
}

void encode_input(struct buf *b, double wall_time, const struct event_input *in)
{
	size_t rec = begin_event_record(b, wall_time), msg = wire_begin(b, FIELD_event_input);

	add_nonempty_text(b, FIELD_input_name, in->name);
	add_nonempty_text(b, FIELD_input_digest, in->digest);
	add_nonempty_text(b, FIELD_input_context, in->context);
	add_nonempty_text(b, FIELD_input_source_type, in->source_type);
	add_nonempty_text(b, FIELD_input_source, in->source);
	add_nonempty_text(b, FIELD_input_profile, in->profile);
	wire_end(b, msg);
	record_end(b, rec);
}

void encode_file(struct buf *b, double wall_time, const struct encode_file *f)
{
	size_t rec = begin_event_record(b, wall_time), msg = wire_begin(b, FIELD_event_file);

	wire_add_text(b, FIELD_file_name, f->name);
	wire_add_varint(b, FIELD_file_bytes, f->bytes);
	wire_add_text(b, FIELD_file_sha256, f->sha256);
	wire_end(b, msg);
	record_end(b, rec);
}

void encode_console(struct buf *b, double wall_time, const struct buf *lines)
{
	size_t rec = begin_event_record(b, wall_time);

	wire_add_text(b, FIELD_event_console, (struct event_text){ lines->data, lines->len });
	record_end(b, rec);
}

/* Adds the metadata of a Summary.Value that names its plugin. */
static void add_plugin_metadata(struct buf *b, const char *name, const struct buf *content)
{
	size_t metadata = wire_begin(b, TB_VALUE_METADATA), plugin = wire_begin(b, TB_METADATA_PLUGIN);

	wire_add_string(b, TB_PLUGIN_NAME, name);
	if (content)
		wire_add_text(b, TB_PLUGIN_CONTENT, (struct event_text){ content->data, content->len });
	wire_end(b, plugin);
	wire_end(b, metadata);
}

void encode_note(struct buf *b, double wall_time, struct event_text markdown)
{
	size_t rec = begin_event_record(b, wall_time), summary = wire_begin(b, TB_EVENT_SUMMARY), value, tensor, shape,
	       dim;

	value = wire_begin(b, TB_SUMMARY_VALUE);
	wire_add_string(b, TB_VALUE_TAG, "notes");
	tensor = wire_begin(b, TB_VALUE_TENSOR);
	wire_add_varint(b, TB_TENSOR_DTYPE, TB_DT_STRING);
	shape = wire_begin(b, TB_TENSOR_SHAPE);
	dim = wire_begin(b, TB_SHAPE_DIM);
	wire_add_varint(b, TB_DIM_SIZE, 1);
	wire_end(b, dim);
	wire_end(b, shape);
	wire_add_text(b, TB_TENSOR_STRING, markdown);
	wire_end(b, tensor);
	add_plugin_metadata(b, "text", NULL);
	wire_end(b, value);
	wire_end(b, summary);
	wire_add_text(b, FIELD_event_note, markdown);
	record_end(b, rec);
}

void encode_status(struct buf *b, double wall_time, enum event_status status, struct event_text reason)
{
	size_t rec = begin_event_record(b, wall_time), msg = wire_begin(b, FIELD_event_status);

	wire_add_varint(b, FIELD_status_code, status);
	if (reason.len)
		wire_add_text(b, FIELD_status_reason, reason);
	wire_end(b, msg);
	record_end(b, rec);
}

void encode_heartbeat(struct buf *b, double wall_time, uint64_t count)
{
	size_t rec = begin_event_record(b, wall_time);

	wire_add_varint(b, FIELD_event_heartbeat, count);
	record_end(b, rec);
}

/* Adds a param as one entry of the session's map of JSON values. */
static void add_hparam_entry(struct buf *b, const struct encode_param *p)
{
	size_t entry = wire_begin(b, TB_SESSION_START_HPARAMS), value;

	wire_add_text(b, TB_MAP_KEY, p->key);
	value = wire_begin(b, TB_MAP_VALUE);
	switch (p->type) {
	case EVENT_TYPE_TEXT:
		wire_add_text(b, TB_JSON_STRING, p->text);
		break;
	case EVENT_TYPE_F64:
		wire_add_double(b, TB_JSON_NUMBER, p->value);
		break;
	case EVENT_TYPE_I64:
		wire_add_double(b, TB_JSON_NUMBER, (double)p->integer);
		break;
	case EVENT_TYPE_BOOL:
		wire_add_varint(b, TB_JSON_BOOL, p->integer != 0);
		break;
	}
	wire_end(b, value);
	wire_end(b, entry);
}

/* Adds one value of the hparams plugin; content is an HParamsPluginData message. */
static void add_hparams_record(struct buf *b, double wall_time, const char *tag, const struct buf *content)
{
	size_t rec = begin_event_record(b, wall_time), summary = wire_begin(b, TB_EVENT_SUMMARY);
	size_t value = wire_begin(b, TB_SUMMARY_VALUE);

	wire_add_string(b, TB_VALUE_TAG, tag);
	add_plugin_metadata(b, "hparams", content);
	wire_end(b, value);
	wire_end(b, summary);
	wire_add_varint(b, FIELD_event_mirror, 1);
	record_end(b, rec);
	if (buf_failed(content))
		b->failed = true;
}

void encode_hparams_start(struct buf *b, double wall_time, const struct encode_param *params, size_t n)
{
	struct buf content;
	size_t start;

	buf_init(&content, b->max);
	start = wire_begin(&content, TB_HPARAMS_SESSION_START);
	for (size_t i = 0; i < n; i++)
		add_hparam_entry(&content, &params[i]);
	wire_add_double(&content, TB_SESSION_START_SECS, wall_time);
	wire_end(&content, start);
	add_hparams_record(b, wall_time, "_hparams_/session_start_info", &content);
	buf_done(&content);
}

void encode_hparams_end(struct buf *b, double wall_time, enum event_status status)
{
	struct buf content;
	size_t end;

	buf_init(&content, b->max);
	end = wire_begin(&content, TB_HPARAMS_SESSION_END);
	wire_add_varint(&content, TB_SESSION_END_STATUS, status == EVENT_FINISHED ? 1 : 2);
	wire_add_double(&content, TB_SESSION_END_SECS, wall_time);
	wire_end(&content, end);
	add_hparams_record(b, wall_time, "_hparams_/session_end_info", &content);
	buf_done(&content);
}

/* ---- console lines, one Line message each ---- */

void console_add(struct buf *lines, const struct console_line *line)
{
	size_t msg = wire_begin(lines, FIELD_console_line);

	wire_add_varint(lines, FIELD_line_stream, (uint64_t)line->stream);
	if (line->ms > 0)
		wire_add_varint(lines, FIELD_line_ms, (uint64_t)line->ms);
	wire_add_text(lines, FIELD_line_text, line->text);
	if (line->again)
		wire_add_varint(lines, FIELD_line_again, 1);
	wire_end(lines, msg);
}

static int parse_console_line(struct event_span s, struct console_line *ret)
{
	struct wire_field f;
	int rc;

	*ret = (struct console_line){ .stream = 1, .text = { "", 0 } };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_line_stream && f.type == WIRE_VARINT)
			ret->stream = f.value == 2 ? 2 : 1;
		else if (f.number == FIELD_line_ms && f.type == WIRE_VARINT)
			ret->ms = f.value > INT32_MAX ? INT32_MAX : (int64_t)f.value;
		else if (f.number == FIELD_line_text && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
		else if (f.number == FIELD_line_again && f.type == WIRE_VARINT)
			ret->again = f.value != 0;
	}
	return rc ? rc : 1;
}

int console_next(struct event_span *lines, struct console_line *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(lines, &f)) > 0)
		if (f.number == FIELD_console_line && f.type == WIRE_BYTES)
			return parse_console_line(f.bytes, ret);
	return rc;
}
