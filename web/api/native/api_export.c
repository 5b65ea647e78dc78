/* api_export.c: writes rows as CSV, JSON or JSON lines. Every format has the same columns with the same names; doubles
 * read back bit for bit. */
#include "web/api/native/api_export.h"

#include <inttypes.h>
#include <string.h>

#include "tracker/base/sha256.h"

void export_tag(struct call *c, const struct query_run *runs, size_t count, uint64_t rev)
{
	struct buf text;
	char digest[65];
	size_t i;

	buf_init(&text, 64 << 20);
	buf_addf(&text, "%s\n%s\n%" PRIu64 "\n", c->route->pattern, store_id(c->api->store), rev);
	for (i = 0; i < c->arg_count; i++)
		buf_addf(&text, "%s=%s\n", c->args[i].name, c->args[i].value);
	for (i = 0; i < count; i++)
		buf_addf(&text, "%s %" PRIu64 "\n", runs[i].id, runs[i].rev);
	if (!buf_failed(&text)) {
		sha256_hex(text.data, text.len, digest);
		c->etag = arena_printf(c->arena, "W/\"%.32s\"", digest);
	}
	buf_done(&text);
}

void export_csv_text(struct buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_addc(out, '"');
		buf_addc(out, *text);
	}
	buf_addc(out, '"');
}

void export_row_open(struct export_row *r)
{
	r->js = (struct js){ .out = r->out };
	r->begun = false;
	if (r->format != EXPORT_CSV)
		js_open(&r->js, '{');
}

void export_row_close(struct export_row *r)
{
	if (r->format != EXPORT_CSV)
		js_close(&r->js, '}');
	if (r->format != EXPORT_JSON)
		buf_adds(r->out, "\n");
}

static void add_row_separator(struct export_row *r)
{
	if (r->begun)
		buf_addc(r->out, ',');
	r->begun = true;
}

void export_row_none(struct export_row *r)
{
	if (r->format == EXPORT_CSV)
		add_row_separator(r);
}

void export_row_text(struct export_row *r, const char *name, const char *text)
{
	if (!text) {
		export_row_none(r);
	} else if (r->format == EXPORT_CSV) {
		add_row_separator(r);
		export_csv_text(r->out, text);
	} else {
		js_key_str(&r->js, name, text);
	}
}

void export_row_int(struct export_row *r, const char *name, int64_t v)
{
	if (r->format == EXPORT_CSV) {
		add_row_separator(r);
		buf_addf(r->out, "%" PRId64, v);
	} else {
		js_key_int(&r->js, name, v);
	}
}

void export_row_double(struct export_row *r, const char *name, double v)
{
	char text[JS_DOUBLE_MAX];

	if (r->format == EXPORT_CSV) {
		add_row_separator(r);
		buf_add(r->out, text, js_print_double(text, v));
	} else {
		js_key_double(&r->js, name, v);
	}
}

void export_row_time(struct export_row *r, const char *name, int64_t ms)
{
	if (ms == INT64_MIN)
		export_row_none(r);
	else
		export_row_int(r, name, ms);
}

const char *export_type(enum export_format format)
{
	static const char *const types[] = { "text/csv; charset=utf-8", "application/json", "application/x-ndjson" };

	return types[format];
}
