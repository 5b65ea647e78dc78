/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c: well-formed byte sequences by table 3-7 of the Unicode standard. */
#include "tracker/base/utf8.h"

#include <stdio.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

size_t utf8_mark(const char *text, size_t n)
{
	return n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

size_t utf8_step(const unsigned char *p, size_t n)
{
	size_t len;
	unsigned lo = 0x80, hi = 0xbf;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0; /* below are overlong forms */
	else if (p[0] == 0xed)
		hi = 0x9f; /* surrogates */
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f; /* above U+10FFFF */
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

bool utf8_valid(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;

	for (size_t at = 0, step; at < len; at += step) {
		step = utf8_step(p + at, len - at);
		if (!step)
			return false;
	}
	return true;
}

size_t utf8_control(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] < 0x20 || u[0] == 0x7f)
		return 1;
	if (n > 1 && ((u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0) || (u[0] == 0xd8 && u[1] == 0x9c)))
		return 2;
	if (n > 2 && u[0] == 0xe2 && u[1] == 0x80 && ((u[2] >= 0xa8 && u[2] <= 0xae) || (u[2] & ~1) == 0x8e))
		return 3;
	return n > 2 && u[0] == 0xe2 && u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9 ? 3 : 0;
}

size_t utf8_escape(char *to, size_t cap, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t left = strlen(text), out = 0, step, add;
	char code[12];

	for (; left; p += step, left -= step, out += add) {
		const size_t control = utf8_control((const char *)p, left), good = utf8_step(p, left);

		step = control ? control : good ? good : 1;
		if (step == 1)
			snprintf(code, sizeof(code), "\\x%02x", p[0]);
		else if (step == 2)
			snprintf(code, sizeof(code), "\\u%04x", (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu));
		else
			snprintf(code, sizeof(code), "\\u%04x",
				 (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
		add = control || !good ? strlen(code) : good;
		if (out + add >= cap)
			break;
		memcpy(to + out, control || !good ? code : (const char *)p, add);
	}
	to[out] = '\0';
	return out;
}

size_t utf8_chars(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

size_t utf8_copy(char *to, size_t cap, const char *text, size_t len, bool *ret_cut)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t at = 0, out = 0, step, add;

	for (; at < len; at += step ? step : 1, out += add) {
		step = utf8_step(p + at, len - at);
		add = step ? step : sizeof(replacement) - 1;
		if (out + add >= cap)
			break;
		memcpy(to + out, step ? text + at : replacement, add);
	}
	to[out] = '\0';
	if (ret_cut)
		*ret_cut = at < len;
	return out;
}
