/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c: well-formed byte sequences by table 3-7 of the Unicode standard. */
#include "tracker/base/utf8.h"

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
