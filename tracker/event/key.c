/* key.c: checks names. */
#include "tracker/event/key.h"

#include <string.h>

#include "tracker/base/utf8.h"
#include "tracker/event/limits.h"

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
