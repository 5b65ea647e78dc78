/* hparams.c: the two messages of the hparams plugin that describe one session. A map of JSON values becomes params, one
 * at a time. Descriptions of a whole experiment are ignored. */
#include "tracker/event/hparams.h"

#include "tracker/event/tensorboard.h"
#include "tracker/event/wire.h"

/* Reads one entry of the map; returns 1 if it is a param, 0 if its value has no plain type. */
static int parse_hparam(struct event_span s, struct event_item *ret)
{
	struct wire_field f, v;
	struct event_span value = { NULL, NULL };
	int rc, found = 0;

	ret->kind = EVENT_PARAM;
	ret->key = (struct event_text){ "", 0 };
	ret->segment = false;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_MAP_KEY && f.type == WIRE_BYTES)
			ret->key = wire_text(&f);
		else if (f.number == TB_MAP_VALUE)
			value = wire_span(&f);
	}
	while (!rc && (rc = wire_next(&value, &v)) > 0) {
		found = 1;
		if (v.number == TB_JSON_NUMBER && v.type == WIRE_FIXED64) {
			ret->type = EVENT_TYPE_F64;
			ret->value = wire_double(v.value);
		} else if (v.number == TB_JSON_STRING && v.type == WIRE_BYTES) {
			ret->type = EVENT_TYPE_TEXT;
			ret->text = wire_text(&v);
		} else if (v.number == TB_JSON_BOOL && v.type == WIRE_VARINT) {
			ret->type = EVENT_TYPE_BOOL;
			ret->integer = v.value != 0;
		} else {
			found = 0;
		}
		rc = 0;
	}
	return rc < 0 ? rc : found;
}

int hparams_next(struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(params, &f)) > 0) {
		if (f.number != TB_SESSION_START_HPARAMS || f.type != WIRE_BYTES)
			continue;
		rc = parse_hparam(f.bytes, ret);
		if (rc)
			return rc;
	}
	return rc;
}

static int parse_session_start(struct event_span s, struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	*params = s;
	ret->kind = EVENT_HPARAMS_START;
	ret->value = 0;
	ret->text = (struct event_text){ "", 0 };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_SESSION_START_SECS && f.type == WIRE_FIXED64)
			ret->value = wire_double(f.value);
		else if (f.number == TB_SESSION_START_GROUP && f.type == WIRE_BYTES)
			ret->text = wire_text(&f);
	}
	return rc ? rc : 1;
}

static int parse_session_end(struct event_span s, struct event_item *ret)
{
	static const enum event_status known[] = { EVENT_FINISHED, EVENT_FINISHED, EVENT_FAILED, EVENT_RUNNING };
	struct wire_field f;
	int rc;

	ret->kind = EVENT_HPARAMS_END;
	ret->value = 0;
	ret->status = EVENT_FINISHED;
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_SESSION_END_STATUS && f.type == WIRE_VARINT && f.value < 4)
			ret->status = known[f.value];
		else if (f.number == TB_SESSION_END_SECS && f.type == WIRE_FIXED64)
			ret->value = wire_double(f.value);
	}
	return rc ? rc : 1;
}

int hparams_item(struct event_span content, struct event_span *params, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&content, &f)) > 0) {
		if (f.number == TB_HPARAMS_SESSION_START)
			return parse_session_start(wire_span(&f), params, ret);
		if (f.number == TB_HPARAMS_SESSION_END)
			return parse_session_end(wire_span(&f), ret);
	}
	return rc ? rc : 1; /* an experiment's description */
}
