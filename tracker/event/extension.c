/* SPDX-License-Identifier: Apache-2.0 */
/* extension.c: reads the messages of the extension fields. Checks numbers and ids that other code relies on; texts are
 * not copied. */
#include "tracker/event/extension.h"

#define ID_CHARS 32u

int extension_rank(const struct wire_field *f, int *ret)
{
	int64_t rank = little_unzigzag(f->value);

	if (f->type != WIRE_VARINT || rank < EVENT_RANK_LAUNCHER || rank > LIMIT_rank)
		return ERR_CORRUPT;
	*ret = (int)rank;
	return 0;
}

static bool is_hex_id(struct event_text t)
{
	if (t.len != ID_CHARS)
		return false;
	for (size_t i = 0; i < ID_CHARS; i++)
		if (!((t.at[i] >= '0' && t.at[i] <= '9') || (t.at[i] >= 'a' && t.at[i] <= 'f')))
			return false;
	return true;
}

/* Reads one number of the header into its member; unknown fields are ignored. */
static int parse_header_number(const struct wire_field *f, struct event_header *h)
{
	uint64_t max = f->number == FIELD_header_segment ? LIMIT_segment : (uint64_t)LIMIT_rank + 1;

	switch (f->number) {
	case FIELD_header_format:
		h->format = f->value > UINT_MAX ? UINT_MAX : (unsigned)f->value;
		return 0;
	case FIELD_header_rank:
		return extension_rank(f, &h->rank);
	case FIELD_header_world_size:
	case FIELD_header_segment:
		if (f->value > max)
			return ERR_CORRUPT;
		*(f->number == FIELD_header_segment ? &h->segment : &h->world_size) = (int)f->value;
		return 0;
	case FIELD_header_first_step:
		h->first_step = little_unzigzag(f->value);
		return 0;
	case FIELD_header_first_epoch:
		h->first_epoch = little_unzigzag(f->value);
		return 0;
	case FIELD_header_pid:
		h->pid = (int64_t)f->value;
		return 0;
	case FIELD_header_ordered:
		h->ordered = f->value == 1;
		return 0;
	default:
		return 0;
	}
}

static struct event_text *find_header_text(struct event_header *h, unsigned number)
{
	switch (number) {
	case FIELD_header_run_id:
		return &h->run_id;
	case FIELD_header_writer_id:
		return &h->writer_id;
	case FIELD_header_experiment:
		return &h->experiment;
	case FIELD_header_run_name:
		return &h->run_name;
	case FIELD_header_host:
		return &h->host;
	case FIELD_header_version:
		return &h->version;
	default:
		return NULL;
	}
}

static int parse_extension_header(struct event_span s, struct event_header *h, struct event_item *ret)
{
	const struct event_text none = { "", 0 };
	struct event_text *text;
	struct wire_field f;
	int rc;

	*h = (struct event_header){ .run_id = none, .writer_id = none, .experiment = none, .run_name = none,
				    .host = none, .version = none };
	while ((rc = wire_next(&s, &f)) > 0) {
		text = find_header_text(h, f.number);
		if (text && f.type == WIRE_BYTES)
			*text = wire_text(&f);
		else if (!text && f.type == WIRE_VARINT && parse_header_number(&f, h))
			return ERR_CORRUPT;
	}
	if (rc || !is_hex_id(h->run_id) || !is_hex_id(h->writer_id))
		return ERR_CORRUPT;
	ret->kind = EVENT_HEADER;
	ret->header = h;
	return 1;
}

/* Reads a param: the last of the typed fields in the message is its value. */
static int parse_param(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_PARAM;
	ret->key = ret->text = (struct event_text){ "", 0 };
	ret->type = EVENT_TYPE_TEXT;
	ret->segment = ret->changed = false;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_param_key && f.type == WIRE_BYTES) {
			ret->key = wire_text(&f);
		} else if (f.number == FIELD_param_text && f.type == WIRE_BYTES) {
			ret->type = EVENT_TYPE_TEXT;
			ret->text = wire_text(&f);
		} else if (f.number == FIELD_param_f64 && f.type == WIRE_FIXED64) {
			ret->type = EVENT_TYPE_F64;
			ret->value = wire_double(f.value);
		} else if (f.number == FIELD_param_i64 && f.type == WIRE_VARINT) {
			ret->type = EVENT_TYPE_I64;
			ret->integer = little_unzigzag(f.value);
		} else if (f.number == FIELD_param_bool && f.type == WIRE_VARINT) {
			ret->type = EVENT_TYPE_BOOL;
			ret->integer = f.value != 0;
		} else if (f.number == FIELD_param_segment && f.type == WIRE_VARINT) {
			ret->segment = f.value != 0;
		} else if (f.number == FIELD_param_changed && f.type == WIRE_VARINT) {
			ret->changed = f.value != 0;
		}
	}
	return rc ? rc : 1;
}

static int parse_key_value(struct event_span s, enum event_kind kind, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = kind;
	ret->key = ret->text = (struct event_text){ "", 0 };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_pair_key && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == FIELD_pair_value && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
	}
	return rc ? rc : 1;
}

static int parse_status(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_STATUS;
	ret->status = EVENT_RUNNING;
	ret->text = (struct event_text){ "", 0 };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_status_code && f.type == WIRE_VARINT) {
			if (f.value > EVENT_SCHEDULED)
				return ERR_CORRUPT;
			ret->status = (enum event_status)f.value;
		} else if (f.number == FIELD_status_reason && f.type == WIRE_BYTES) {
			ret->text = wire_text(&f);
		}
	}
	return rc ? rc : 1;
}

static int parse_alert(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_ALERT;
	ret->key = ret->text = (struct event_text){ "", 0 };
	ret->integer = 1;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_alert_level && f.type == WIRE_VARINT && f.value >= 1 && f.value <= 3)
			ret->integer = (int64_t)f.value;
		else if (f.number == FIELD_alert_title && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == FIELD_alert_text && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
	}
	return rc ? rc : 1;
}

static struct event_text *find_input_text(struct event_input *in, unsigned number)
{
	switch (number) {
	case FIELD_input_name:
		return &in->name;
	case FIELD_input_digest:
		return &in->digest;
	case FIELD_input_context:
		return &in->context;
	case FIELD_input_source_type:
		return &in->source_type;
	case FIELD_input_source:
		return &in->source;
	case FIELD_input_profile:
		return &in->profile;
	default:
		return NULL;
	}
}

static int parse_input(struct event_span s, struct event_item *ret)
{
	const struct event_text none = { "", 0 };
	struct event_text *text;
	struct wire_field f;
	int rc;

	ret->kind = EVENT_INPUT;
	ret->input = (struct event_input){ none, none, none, none, none, none };
	while ((rc = wire_next(&s, &f)) > 0) {
		text = find_input_text(&ret->input, f.number);
		if (text && f.type == WIRE_BYTES)
			*text = wire_text(&f);
	}
	return rc ? rc : 1;
}

static int parse_file(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_FILE;
	ret->key = ret->text = (struct event_text){ "", 0 };
	ret->integer = 0;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == FIELD_file_name && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == FIELD_file_sha256 && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
		else if (f.number == FIELD_file_bytes && f.type == WIRE_VARINT && f.value <= INT64_MAX)
			ret->integer = (int64_t)f.value;
	}
	return rc ? rc : 1;
}

int extension_item(const struct wire_field *f, struct event_header *ret_header, struct event_item *ret)
{
	switch (f->number) {
	case FIELD_event_header:
		return parse_extension_header(wire_span(f), ret_header, ret);
	case FIELD_event_param:
		return parse_param(wire_span(f), ret);
	case FIELD_event_tag:
		return parse_key_value(wire_span(f), EVENT_TAG, ret);
	case FIELD_event_env:
		return parse_key_value(wire_span(f), EVENT_ENV, ret);
	case FIELD_event_note:
		ret->kind = EVENT_NOTE;
		ret->text = f->type == WIRE_BYTES ? wire_text(f) : (struct event_text){ "", 0 };
		return 1;
	case FIELD_event_status:
		return parse_status(wire_span(f), ret);
	case FIELD_event_heartbeat:
		ret->kind = EVENT_HEARTBEAT;
		ret->integer = (int64_t)f->value;
		return 1;
	case FIELD_event_console:
		ret->kind = EVENT_CONSOLE;
		ret->text = f->type == WIRE_BYTES ? wire_text(f) : (struct event_text){ "", 0 };
		return 1;
	case FIELD_event_code:
		return parse_key_value(wire_span(f), EVENT_CODE, ret);
	case FIELD_event_alert:
		return parse_alert(wire_span(f), ret);
	case FIELD_event_input:
		return parse_input(wire_span(f), ret);
	case FIELD_event_file:
		return parse_file(wire_span(f), ret);
	default:
		return 0;
	}
}
