/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: conversions between values and text. */
#include "tracker/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { DOUBLE_DIGITS_MAX = 17, RANDOM_BYTES_MAX = 64 };

static const char hex_digits[] = "0123456789abcdef";

int text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *text_hex(char *ret, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;
	char *to = ret;

	for (size_t i = 0; i < n; i++) {
		*to++ = hex_digits[from[i] >> 4];
		*to++ = hex_digits[from[i] & 15];
	}
	*to = '\0';
	return ret;
}

bool text_unhex(void *ret, const char *digits, size_t n)
{
	unsigned char *to = ret;

	for (size_t i = 0; i < n; i++) {
		const int high = text_hex_digit(digits[2 * i]);
		const int low = high < 0 ? -1 : text_hex_digit(digits[2 * i + 1]);

		if (low < 0)
			return false;
		to[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

bool text_is_hex(const char *text, size_t min, size_t max)
{
	const size_t n = text ? strspn(text, hex_digits) : 0;

	return text && !text[n] && n >= min && n <= max;
}

int text_random_hex(char *ret, size_t n)
{
	unsigned char bytes[RANDOM_BYTES_MAX];
	size_t done = 0;

	if (n > sizeof(bytes)) {
		errno = EINVAL;
		return -1;
	}
	while (done < n) {
		ssize_t got = getrandom(bytes + done, n - done, 0);

		if (got < 0 && errno != EINTR)
			return -1;
		done += got > 0 ? (size_t)got : 0;
	}
	text_hex(ret, bytes, n);
	return 0;
}

char *text_double(char ret[TEXT_DOUBLE_BYTES], double v, int digits)
{
	if (isnan(v) || isinf(v)) {
		snprintf(ret, TEXT_DOUBLE_BYTES, "%s", isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
		return ret;
	}
	do
		snprintf(ret, TEXT_DOUBLE_BYTES, "%.*g", digits, v);
	while (digits++ < DOUBLE_DIGITS_MAX && strtod(ret, NULL) != v);
	return ret;
}

static char fold_letter(char c)
{
	return c == '_' || c == ' ' ? '-' : (char)tolower((unsigned char)c);
}

bool text_mentions(const char *text, const char *word, bool begins)
{
	for (const char *at = text; *at; at++) {
		size_t n = 0;

		if (begins && at > text && isalnum((unsigned char)at[-1]))
			continue;
		while (word[n] && at[n] && fold_letter(at[n]) == fold_letter(word[n]))
			n++;
		if (!word[n])
			return true;
	}
	return false;
}

void text_hide_credentials(char *text)
{
	for (char *at = strstr(text, "://"); at; at = strstr(at, "://")) {
		size_t n;
		char *host;

		at += 3;
		n = strcspn(at, "/?# \t\r\n\"'<>");
		host = memrchr(at, '@', n);
		if (host)
			memmove(at, host + 1, strlen(host + 1) + 1);
	}
}
