/* SPDX-License-Identifier: Apache-2.0 */
/* json_member.c: scans a JSON text (RFC 8259) in one pass and keeps only the wanted member. */
#include "trainer/data/corpus/documents.h"

#include <string.h>

#define DEPTH_MAX 200

struct json_scan {
	const char *at, *end;
	struct buf *to;
	enum json_member_result result;
	int depth;
};

static bool scan_json_value(struct json_scan *s, const char *name);

static void skip_json_space(struct json_scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool consume_json_char(struct json_scan *s, char c)
{
	skip_json_space(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool match_json_word(struct json_scan *s, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(s->end - s->at) < n || memcmp(s->at, w, n))
		return false;
	s->at += n;
	return true;
}

static size_t skip_json_digits(struct json_scan *s)
{
	const char *from = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return (size_t)(s->at - from);
}

static bool skip_json_number(struct json_scan *s)
{
	if (s->at < s->end && *s->at == '-')
		s->at++;
	if (s->at < s->end && *s->at == '0')
		s->at++;
	else if (!skip_json_digits(s))
		return false;
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!skip_json_digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		return skip_json_digits(s) > 0;
	}
	return true;
}

static bool parse_hex4(struct json_scan *s, uint32_t *ret)
{
	*ret = 0;
	if (s->end - s->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int c = *s->at++, low = c | 0x20;

		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uint32_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			*ret = *ret << 4 | (uint32_t)(low - 'a' + 10);
		else
			return false;
	}
	return true;
}

static void append_utf8(struct buf *to, uint32_t c)
{
	char b[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		b[i] = (char)(0x80 | (c & 0x3F));
	b[0] = (char)(n == 1 ? c : (0xF00u >> n & 0xFF) | c);
	buf_add(to, b, n);
}

/* After "\u": decodes one code point, from a surrogate pair if two follow each other. */
static bool decode_unicode_escape(struct json_scan *s, struct buf *to)
{
	const char *after_first;
	uint32_t c, low;

	if (!parse_hex4(s, &c))
		return false;
	if (c >= 0xD800 && c < 0xDC00 && s->end - s->at >= 6 && s->at[0] == '\\' && s->at[1] == 'u') {
		after_first = s->at;
		s->at += 2;
		if (!parse_hex4(s, &low))
			return false;
		if (low >= 0xDC00 && low < 0xE000)
			c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
		else
			s->at = after_first;
	}
	if (to)
		append_utf8(to, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
	return true;
}

static bool decode_json_escape(struct json_scan *s, struct buf *to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (s->at == s->end)
		return false;
	if (*s->at == 'u') {
		s->at++;
		return decode_unicode_escape(s, to);
	}
	found = memchr(from, *s->at++, sizeof(from) - 1);
	if (found && to)
		buf_addc(to, into[found - from]);
	return found != NULL;
}

/* After the opening quote. */
static bool scan_json_string(struct json_scan *s, struct buf *to)
{
	while (s->at < s->end) {
		const char *from = s->at;

		while (s->at < s->end && *s->at != '"' && *s->at != '\\' && (unsigned char)*s->at >= 0x20)
			s->at++;
		if (to)
			buf_add(to, from, (size_t)(s->at - from));
		if (s->at == s->end || (unsigned char)*s->at < 0x20)
			return false;
		if (*s->at++ == '"')
			return true;
		if (!decode_json_escape(s, to))
			return false;
	}
	return false;
}

/* Strips the key from the member path. NULL: the key does not match. */
static const char *strip_name_prefix(const char *name, const char *key, size_t n)
{
	if (!name || strncmp(name, key, n) || (name[n] && name[n] != '.'))
		return NULL;
	return name[n] ? name + n + 1 : name + n;
}

static bool scan_json_member(struct json_scan *s, const char *name)
{
	const char *key;

	if (!consume_json_char(s, '"'))
		return false;
	key = s->at;
	if (!scan_json_string(s, NULL))
		return false;
	name = strip_name_prefix(name, key, (size_t)(s->at - 1 - key));
	return consume_json_char(s, ':') && scan_json_value(s, s->result == JSON_MEMBER_NONE ? name : NULL);
}

static bool scan_json_object(struct json_scan *s, const char *name)
{
	if (consume_json_char(s, '}'))
		return true;
	do
		if (!scan_json_member(s, name))
			return false;
	while (consume_json_char(s, ','));
	return consume_json_char(s, '}');
}

static bool scan_json_array(struct json_scan *s)
{
	if (consume_json_char(s, ']'))
		return true;
	do
		if (!scan_json_value(s, NULL))
			return false;
	while (consume_json_char(s, ','));
	return consume_json_char(s, ']');
}

static bool scan_json_nested(struct json_scan *s, const char *name)
{
	bool good;

	if (++s->depth > DEPTH_MAX)
		return false;
	good = *s->at++ == '{' ? scan_json_object(s, name) : scan_json_array(s);
	s->depth--;
	return good;
}

/* name: path of the member in this value; "": the value itself; NULL: skip the value. */
static bool scan_json_value(struct json_scan *s, const char *name)
{
	bool wanted = name && !*name;

	skip_json_space(s);
	if (s->at == s->end)
		return false;
	if (*s->at == '{' || *s->at == '[')
		return scan_json_nested(s, wanted ? NULL : name);
	if (*s->at == '"') {
		s->at++;
		if (wanted)
			s->result = JSON_MEMBER_FOUND;
		return scan_json_string(s, wanted ? s->to : NULL);
	}
	if (match_json_word(s, "null")) {
		if (wanted)
			s->result = JSON_MEMBER_NULL;
		return true;
	}
	/* Python writes the last three, which RFC 8259 does not have. */
	return match_json_word(s, "true") || match_json_word(s, "false") || match_json_word(s, "NaN") ||
	       match_json_word(s, "Infinity") || match_json_word(s, "-Infinity") || skip_json_number(s);
}

enum json_member_result json_member(const char *text, size_t n, const char *name, struct buf *ret)
{
	struct json_scan s = { .at = text, .end = text + n, .to = ret, .result = JSON_MEMBER_NONE };

	skip_json_space(&s);
	if (s.at == s.end || *s.at != '{' || !scan_json_value(&s, name))
		return JSON_MEMBER_WRONG;
	skip_json_space(&s);
	if (s.at != s.end)
		return JSON_MEMBER_WRONG;
	return s.result;
}
