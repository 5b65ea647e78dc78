/* SPDX-License-Identifier: Apache-2.0 */
/* event.c: walks an Event message. Three spans are nested (event, summary, hparams map); event_next empties the
 * innermost first. This file reads the standard fields; tensorboard.c and extension.c read the rest. Also checks
 * keys. */
#include "tracker/event/event.h"

#include <math.h>

#include "tracker/base/utf8.h"
#include "tracker/event/extension.h"
#include "tracker/event/tensorboard.h"

static const char *const status_names[] = { "running", "finished", "failed", "killed", "preempted", "scheduled" };

int event_open(struct event *ret, const void *payload, size_t n)
{
	struct event_span s = { payload, (const unsigned char *)payload + n };
	struct wire_field f;
	unsigned others = 0, summaries = 0;
	int rc;

	ret->wall_time = 0;
	ret->step = 0;
	ret->ours = false;
	ret->top = s;
	ret->summary = ret->params = (struct event_span){ NULL, NULL };
	while ((rc = wire_next(&s, &f)) > 0) {
		if (f.number == TB_EVENT_WALL_TIME && f.type == WIRE_FIXED64) {
			ret->wall_time = wire_double(f.value);
		} else if (f.number == TB_EVENT_STEP && f.type == WIRE_VARINT) {
			ret->step = (int64_t)f.value;
		} else if (f.number == TB_EVENT_SUMMARY && f.type == WIRE_BYTES) {
			ret->summary = f.bytes;
			summaries++;
		} else {
			others++;
			ret->ours |= f.number >= FIELD_event_header && f.number <= FIELD_event_file;
		}
	}
	if (rc || isnan(ret->wall_time))
		return ERR_CORRUPT;
	if (summaries == 1 && !others) /* nearly every record: no need to walk the top again */
		ret->top = (struct event_span){ NULL, NULL };
	else
		ret->summary = (struct event_span){ NULL, NULL };
	return 0;
}

static int parse_session_log(struct event_span s, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	ret->kind = EVENT_SESSION;
	ret->integer = 0;
	while ((rc = wire_next(&s, &f)) > 0)
		if (f.number == TB_SESSION_LOG_STATUS && f.type == WIRE_VARINT)
			ret->integer = (int64_t)f.value;
	return rc ? rc : 1;
}

/* Reads a field of the standard message: returns 1 for an item, 0 if it is not one. */
static int parse_standard_field(struct event *ev, const struct wire_field *f, struct event_item *ret)
{
	switch (f->number) {
	case TB_EVENT_FILE_VERSION:
		ret->kind = EVENT_FILE_VERSION;
		ret->text = f->type == WIRE_BYTES ? wire_text(f) : (struct event_text){ "", 0 };
		return 1;
	case TB_EVENT_GRAPH_DEF:
		ret->kind = EVENT_OTHER;
		ret->raw = (struct event_span){ NULL, NULL };
		ret->key = (struct event_text){ "", 0 };
		ret->text = (struct event_text){ "graph", 5 };
		return 1;
	case TB_EVENT_SUMMARY:
		ev->summary = wire_span(f);
		return 0;
	case TB_EVENT_SESSION_LOG:
		return parse_session_log(wire_span(f), ret);
	default:
		return 0;
	}
}

int event_next(struct event *ev, struct event_item *ret)
{
	struct wire_field f;
	int rc;

	for (;;) {
		rc = hparams_next(&ev->params, ret);
		if (!rc)
			rc = summary_next(&ev->summary, &ev->params, ret);
		if (rc)
			return rc;
		rc = wire_next(&ev->top, &f);
		if (rc <= 0)
			return rc;
		rc = ev->ours ? extension_item(&f, &ev->header, ret) : parse_standard_field(ev, &f, ret);
		if (rc)
			return rc;
	}
}

const char *event_status_name(enum event_status s)
{
	return (unsigned)s < sizeof(status_names) / sizeof(status_names[0]) ? status_names[s] : NULL;
}

const char *key_check(const char *key, size_t len)
{
	const unsigned char *p = (const unsigned char *)key;
	size_t chars = 0;

	if (!len)
		return "is empty";
	if (len > LIMIT_key_bytes)
		return "is longer than 250 characters";
	for (size_t at = 0, step; at < len; at += step, chars++) {
		step = utf8_step(p + at, len - at);
		if (!step)
			return "is not valid UTF-8";
		if (p[at] < 0x20 || p[at] == 0x7f || (p[at] == 0xc2 && p[at + 1] < 0xa0))
			return "contains a control character";
	}
	return chars > LIMIT_key_chars ? "is longer than 250 characters" : NULL;
}

void key_show(char to[KEY_SHOWN_BYTES], const char *key)
{
	utf8_copy(to, KEY_SHOWN_BYTES, key ? key : "", key ? strnlen(key, 2 * KEY_SHOWN_BYTES) : 0, NULL);
	for (char *p = to; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}
