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
#include <time.h>

#include "tracker/base/buf.h"

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

/* Reads `digits` digits, within [low, high]. */
static bool read_digits(const char **at, int digits, int low, int high, int *ret)
{
	int v = 0;

	for (int i = 0; i < digits; i++, (*at)++) {
		if (!isdigit((unsigned char)**at))
			return false;
		v = v * 10 + (**at - '0');
	}
	*ret = v;
	return v >= low && v <= high;
}

/* Reads Z, +HH:MM or -HH:MM, or nothing; *ret: seconds ahead of UTC. */
static bool read_zone(const char *at, int *ret)
{
	int sign = *at == '-' ? -1 : 1, hours, minutes;

	*ret = 0;
	if (!*at || !strcmp(at, "Z"))
		return true;
	if (*at != '+' && *at != '-')
		return false;
	at++;
	if (!read_digits(&at, 2, 0, 14, &hours))
		return false;
	at += *at == ':';
	if (!read_digits(&at, 2, 0, 59, &minutes) || *at)
		return false;
	*ret = sign * (hours * 3600 + minutes * 60);
	return true;
}

bool text_iso_time(const char *text, double *ret_s)
{
	const char *at = text;
	struct tm tm = { 0 };
	double fraction = 0;
	char *end;
	int zone, year, month;

	if (!read_digits(&at, 4, 1900, 9999, &year) || *at++ != '-' || !read_digits(&at, 2, 1, 12, &month) ||
	    *at++ != '-' || !read_digits(&at, 2, 1, 31, &tm.tm_mday))
		return false;
	if (*at == 'T' || *at == ' ') {
		at++;
		if (!read_digits(&at, 2, 0, 23, &tm.tm_hour) || *at++ != ':' || !read_digits(&at, 2, 0, 59, &tm.tm_min))
			return false;
		if (*at == ':' && (at++, !read_digits(&at, 2, 0, 60, &tm.tm_sec)))
			return false;
		if (*at == '.' && isdigit((unsigned char)at[1])) {
			fraction = strtod(at, &end);
			at = end;
		}
	}
	if (!read_zone(at, &zone))
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	*ret_s = (double)timegm(&tm) - zone + fraction;
	return tm.tm_mon == month - 1; /* timegm turns 31 February into March */
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

static bool is_secret_word(const char *word)
{
	static const char *const words[] = { "apikey",	    "accesskey", "privatekey", "secret", "secrets",
					     "secretkey",   "passwd",	 "passphrase", "pwd",	 "credential",
					     "credentials", "token",	 "auth",       "bearer", "cookie",
					     "dsn",	    "webhook",	 "webhookurl" };
	size_t n = strlen(word);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(word, words[i]))
			return true;
	return n >= 8 && !strcmp(word + n - 8, "password");
}

/* Returns true if a word of the name, or two or three in a row, say that its value is a secret, as _secrets.py of the
 * Python package judges. */
static bool is_secret_name(const char *name)
{
	char parts[3][64] = { "" }; /* the last three words in lower case: "wandb.api_key" has "api" and "key" */
	int n = 0;
	size_t at = 0;

	for (const char *c = name;; c++) {
		bool letter = isalpha((unsigned char)*c);

		if (at && (!letter || (isupper((unsigned char)*c) && islower((unsigned char)c[-1])))) {
			char joined[200];

			for (int k = 0; k < 3; k++) {
				snprintf(joined, sizeof(joined), "%s%s%s", k > 1 ? parts[(n + 1) % 3] : "",
					 k > 0 ? parts[(n + 2) % 3] : "", parts[n % 3]);
				if (is_secret_word(joined))
					return true;
			}
			n++;
			at = 0;
		}
		if (!*c)
			return false;
		if (letter && at + 1 < sizeof(parts[0])) {
			parts[n % 3][at++] = (char)tolower((unsigned char)*c);
			parts[n % 3][at] = 0;
		}
	}
}

const char *text_hide_secret(const char *name, const char *value)
{
	bool secret = is_secret_name(name) && strlen(value) >= 6 && !strchr("<[", *value) && !strpbrk(value, " \t\r\n");

	return secret ? "(hidden)" : value;
}

bool text_is_formula(const char *text)
{
	char *end;

	if (!*text || !strchr("=+-@\t\r", *text))
		return false;
	strtod(text, &end);
	return end == text || *end;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void text_add_base64(struct buf *to, const void *bytes, size_t n, bool url)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i += 3) {
		const unsigned three = (unsigned)at[i] << 16 | (i + 1 < n ? (unsigned)at[i + 1] << 8 : 0) |
				       (i + 2 < n ? at[i + 2] : 0);

		for (size_t k = 0; k < 4; k++) {
			const char digit = base64_digits[three >> (18 - 6 * k) & 63];

			if (k <= n - i)
				buf_addc(to, !url ? digit : digit == '+' ? '-' : digit == '/' ? '_' : digit);
			else if (!url)
				buf_addc(to, '=');
		}
	}
}

size_t text_unbase64(char *ret, size_t max, const char *text)
{
	const char *digit;
	unsigned acc = 0;
	int bits = 0;
	size_t n = 0;

	for (; *text && (digit = strchr(base64_digits, *text)); text++) {
		acc = acc << 6 | (unsigned)(digit - base64_digits);
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (n == max)
			return 0;
		ret[n++] = (char)(acc >> bits & 0xff);
	}
	return n;
}

void text_add_escaped(struct buf *to, const char *text, const char *stays)
{
	for (; *text; text++)
		if ((*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z') ||
		    (*text >= '0' && *text <= '9') || strchr(stays, *text))
			buf_addc(to, *text);
		else
			buf_addf(to, "%%%02X", (unsigned)(unsigned char)*text);
}
