/* array.c: writes values between braces. */
#include "web/store/db/array.h"

#define TEXT_MAX ((size_t)1 << 27)

void array_begin(struct buf *b)
{
	buf_init(b, TEXT_MAX);
	buf_addc(b, '{');
}

void array_text(struct buf *b, const char *text)
{
	buf_adds(b, b->len > 1 ? ",\"" : "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_addc(b, '\\');
		buf_addc(b, *text);
	}
	buf_addc(b, '"');
}

void array_int(struct buf *b, int64_t v)
{
	buf_addf(b, b->len > 1 ? ",%lld" : "%lld", (long long)v);
}

const char *array_end(struct buf *b)
{
	buf_addc(b, '}');
	return buf_failed(b) ? NULL : b->data;
}

const char *array_of(struct buf *b, const int64_t *v, size_t n)
{
	size_t i;

	array_begin(b);
	for (i = 0; i < n; i++)
		array_int(b, v[i]);
	return array_end(b);
}
