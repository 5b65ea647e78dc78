/* js.c: writes JSON directly into a buffer. Knows nothing of calls, routes or the store. */
#include "web/api/js.h"

#include <math.h>
#include <string.h>

#include "web/api/double.h"

static void begin_js_value(struct js *j)
{
	if (j->comma)
		buf_addc(j->out, ',');
	j->comma = true;
}

void js_open(struct js *j, char bracket)
{
	begin_js_value(j);
	buf_addc(j->out, bracket);
	j->comma = false;
}

void js_close(struct js *j, char bracket)
{
	buf_addc(j->out, bracket);
	j->comma = true;
}

/* Length of the well-formed UTF-8 sequence at s (n bytes left); 0 when malformed. */
static size_t utf8_sequence_length(const unsigned char *s, size_t n)
{
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf && n > 1 && (s[1] & 0xc0) == 0x80)
		return 2;
	if (s[0] >= 0xe0 && s[0] <= 0xef && n > 2 && (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80) {
		if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
			return 0;
		return 3;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4 && n > 3 && (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80 &&
	    (s[3] & 0xc0) == 0x80) {
		if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
			return 0;
		return 4;
	}
	return 0;
}

/* Number of bytes at s that need no escape in a string; each is one character. */
static size_t js_plain_length(const unsigned char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'; i++)
		;
	return i;
}

/* Writes the character at s, escaped if needed; returns its length. */
static size_t escape_js_char(struct buf *out, const unsigned char *s, size_t n)
{
	size_t len = utf8_sequence_length(s, n);

	if (!len)
		buf_adds(out, "\xef\xbf\xbd");
	else if (*s == '"' || *s == '\\')
		buf_addf(out, "\\%c", *s);
	else if (*s == '\n')
		buf_adds(out, "\\n");
	else if (*s < 0x20 || *s == 0x7f)
		buf_addf(out, "\\u%04x", *s);
	else
		buf_add(out, s, len);
	return len ? len : 1;
}

static void write_js_string(struct buf *out, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i, plain;

	buf_addc(out, '"');
	for (i = 0; i < n; i += plain ? plain : escape_js_char(out, s + i, n - i)) {
		plain = js_plain_length(s + i, n - i);
		buf_add(out, s + i, plain);
	}
	buf_addc(out, '"');
}

void js_key(struct js *j, const char *key)
{
	begin_js_value(j);
	write_js_string(j->out, key, strlen(key));
	buf_addc(j->out, ':');
	j->comma = false;
}

void js_strn(struct js *j, const char *text, size_t n)
{
	begin_js_value(j);
	write_js_string(j->out, text, n);
}

void js_str(struct js *j, const char *text)
{
	if (text)
		js_strn(j, text, strlen(text));
	else
		js_null(j);
}

void js_int(struct js *j, int64_t v)
{
	uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char text[24], *at = text + sizeof(text);

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (v < 0)
		*--at = '-';
	begin_js_value(j);
	buf_add(j->out, at, (size_t)(text + sizeof(text) - at));
}

size_t js_print_double(char *text, double v)
{
	const char *word = NULL;

	if (isnan(v))
		word = "NaN";
	else if (isinf(v))
		word = v > 0 ? "Infinity" : "-Infinity";
	else if (v == 0)
		word = signbit(v) ? "-0.0" : "0";
	if (!word)
		return double_print(text, v);
	memcpy(text, word, strlen(word) + 1);
	return strlen(word);
}

void js_double(struct js *j, double v)
{
	char text[JS_DOUBLE_MAX];
	size_t n = js_print_double(text, v);

	if (!isfinite(v)) {
		js_strn(j, text, n);
		return;
	}
	begin_js_value(j);
	buf_add(j->out, text, n);
}

void js_number(struct js *j, double v)
{
	if (isnan(v))
		js_null(j);
	else
		js_double(j, v);
}

void js_bool(struct js *j, bool v)
{
	js_raw(j, v ? "true" : "false");
}

void js_null(struct js *j)
{
	js_raw(j, "null");
}

void js_raw(struct js *j, const char *json)
{
	begin_js_value(j);
	buf_adds(j->out, json);
}

void js_key_str(struct js *j, const char *key, const char *text)
{
	js_key(j, key);
	js_str(j, text);
}

void js_key_int(struct js *j, const char *key, int64_t v)
{
	js_key(j, key);
	js_int(j, v);
}

void js_key_double(struct js *j, const char *key, double v)
{
	js_key(j, key);
	js_double(j, v);
}

void js_key_number(struct js *j, const char *key, double v)
{
	js_key(j, key);
	js_number(j, v);
}
