/* event_console.c: encodes and decodes console lines, one Line message each. */
#include "tracker/event/event_console.h"

#include "tracker/base/err.h"
#include "tracker/event/fields.h"
#include "tracker/event/wire.h"

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
