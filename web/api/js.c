/* SPDX-License-Identifier: Apache-2.0 */
/* js.c: writes JSON directly into a buffer. Independent of calls, routes or the store. */
#include "web/api/js.h"

#include <math.h>
#include <string.h>

/* Prints doubles with the fewest digits that read back, by Florian Loitsch's Grisu2 ("Printing Floating-Point
 * Numbers Quickly and Accurately with Integers", PLDI 2010). Always exact when read back, nearly always shortest, and
 * some twenty times faster than trying printf and strtod in turn. Independent of JSON. */

enum {
	POWER_FIRST = -348, /* exponent of power_f[0] */
	POWER_STEP = 8,
	HIDDEN_SHIFT = 52,
	EXPONENT_BIAS = 1075,
};

#define HIDDEN ((uint64_t)1 << HIDDEN_SHIFT)

/* f * 2^e */
struct scaled_u64 {
	uint64_t f;
	int e;
};

/* 10^(POWER_FIRST + i * POWER_STEP), scaled to 64 bits and rounded. */
static const uint64_t power_f[] = {
	0xfa8fd5a0081c0288, 0xbaaee17fa23ebf76, 0x8b16fb203055ac76, 0xcf42894a5dce35ea,
	0x9a6bb0aa55653b2d, 0xe61acf033d1a45df, 0xab70fe17c79ac6ca, 0xff77b1fcbebcdc4f,
	0xbe5691ef416bd60c, 0x8dd01fad907ffc3c, 0xd3515c2831559a83, 0x9d71ac8fada6c9b5,
	0xea9c227723ee8bcb, 0xaecc49914078536d, 0x823c12795db6ce57, 0xc21094364dfb5637,
	0x9096ea6f3848984f, 0xd77485cb25823ac7, 0xa086cfcd97bf97f4, 0xef340a98172aace5,
	0xb23867fb2a35b28e, 0x84c8d4dfd2c63f3b, 0xc5dd44271ad3cdba, 0x936b9fcebb25c996,
	0xdbac6c247d62a584, 0xa3ab66580d5fdaf6, 0xf3e2f893dec3f126, 0xb5b5ada8aaff80b8,
	0x87625f056c7c4a8b, 0xc9bcff6034c13053, 0x964e858c91ba2655, 0xdff9772470297ebd,
	0xa6dfbd9fb8e5b88f, 0xf8a95fcf88747d94, 0xb94470938fa89bcf, 0x8a08f0f8bf0f156b,
	0xcdb02555653131b6, 0x993fe2c6d07b7fac, 0xe45c10c42a2b3b06, 0xaa242499697392d3,
	0xfd87b5f28300ca0e, 0xbce5086492111aeb, 0x8cbccc096f5088cc, 0xd1b71758e219652c,
	0x9c40000000000000, 0xe8d4a51000000000, 0xad78ebc5ac620000, 0x813f3978f8940984,
	0xc097ce7bc90715b3, 0x8f7e32ce7bea5c70, 0xd5d238a4abe98068, 0x9f4f2726179a2245,
	0xed63a231d4c4fb27, 0xb0de65388cc8ada8, 0x83c7088e1aab65db, 0xc45d1df942711d9a,
	0x924d692ca61be758, 0xda01ee641a708dea, 0xa26da3999aef774a, 0xf209787bb47d6b85,
	0xb454e4a179dd1877, 0x865b86925b9bc5c2, 0xc83553c5c8965d3d, 0x952ab45cfa97a0b3,
	0xde469fbd99a05fe3, 0xa59bc234db398c25, 0xf6c69a72a3989f5c, 0xb7dcbf5354e9bece,
	0x88fcf317f22241e2, 0xcc20ce9bd35c78a5, 0x98165af37b2153df, 0xe2a0b5dc971f303a,
	0xa8d9d1535ce3b396, 0xfb9b7cd9a4a7443c, 0xbb764c4ca7a44410, 0x8bab8eefb6409c1a,
	0xd01fef10a657842c, 0x9b10a4e5e9913129, 0xe7109bfba19c0c9d, 0xac2820d9623bf429,
	0x80444b5e7aa7cf85, 0xbf21e44003acdd2d, 0x8e679c2f5e44ff8f, 0xd433179d9c8cb841,
	0x9e19db92b4e31ba9, 0xeb96bf6ebadf77d9, 0xaf87023b9bf0ee6b,
};

static const uint64_t tens[] = {
	1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u,
	100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u,
	100000000000000000u, 1000000000000000000u, 10000000000000000000u,
};

static struct scaled_u64 normalize_wide(struct scaled_u64 a)
{
	int shift = __builtin_clzll(a.f);

	return (struct scaled_u64){ a.f << shift, a.e - shift };
}

/* Upper half of the product, rounded. */
static struct scaled_u64 multiply_wide(struct scaled_u64 a, struct scaled_u64 b)
{
	unsigned __int128 p = (unsigned __int128)a.f * b.f;

	return (struct scaled_u64){ (uint64_t)(p >> 64) + (uint64_t)(p >> 63 & 1), a.e + b.e + 64 };
}

/* A power of ten that scales a number with this binary exponent to an exponent within [-60, -32]; *ret_k: its
 * inverse. */
static struct scaled_u64 find_power_of_ten(int e, int *ret_k)
{
	double want = (-61 - e) * 0.30102999566398114 + 347;
	int k = (int)want, index, ten;

	k += want > k;
	index = (k >> 3) + 1;
	ten = POWER_FIRST + index * POWER_STEP;
	*ret_k = -ten;
	return (struct scaled_u64){ power_f[index], (ten * 217706 >> 16) - 63 }; /* floor(ten * log2(10)) - 63 */
}

/* delta: the interval within which the digits read back as v. below: distance of the true value from its upper
 * bound. */
struct digit_bounds {
	uint64_t delta, below;
};

/* Decrements the last digit while that gets closer to the true value and stays within the bounds. */
static void round_last_digit(char *last, const struct digit_bounds *r, uint64_t rest, uint64_t unit)
{
	while (rest < r->below && r->delta - rest >= unit &&
	       (rest + unit < r->below || r->below - rest > rest + unit - r->below)) {
		--*last;
		rest += unit;
	}
}

static int count_decimal_digits(uint32_t n)
{
	int i = 1;

	while (i < 10 && n >= tens[i])
		i++;
	return i;
}

/* Writes the digits of the shortest number within r.delta below top; returns their number and adds to *k. */
static int generate_digits(char *digits, struct scaled_u64 top, struct digit_bounds r, int *k)
{
	const int shift = -top.e;
	const uint64_t one = (uint64_t)1 << shift;
	uint32_t whole = (uint32_t)(top.f >> shift);
	uint64_t part = top.f & (one - 1), rest;
	int left = count_decimal_digits(whole), n = 0, below = 0;

	while (left > 0) {
		uint32_t d = whole / (uint32_t)tens[left - 1];

		whole %= (uint32_t)tens[left - 1];
		if (d || n)
			digits[n++] = (char)('0' + d);
		left--;
		rest = ((uint64_t)whole << shift) + part;
		if (rest <= r.delta) {
			*k += left;
			round_last_digit(&digits[n - 1], &r, rest, tens[left] << shift);
			return n;
		}
	}
	for (;;) {
		part *= 10;
		r.delta *= 10;
		below++;
		if (part >> shift || n)
			digits[n++] = (char)('0' + (part >> shift));
		part &= one - 1;
		if (part < r.delta)
			break;
	}
	*k -= below;
	r.below *= below < 20 ? tens[below] : 0;
	round_last_digit(&digits[n - 1], &r, part, one);
	return n;
}

/* Digits of v (finite, above 0) and, in *ret_k, the power of ten to multiply them by. */
static int find_shortest_digits(char *digits, double v, int *ret_k)
{
	uint64_t bits;
	struct scaled_u64 w, high, low, power;

	memcpy(&bits, &v, sizeof(bits));
	w.f = bits & (HIDDEN - 1);
	w.e = (int)(bits >> HIDDEN_SHIFT);
	if (w.e)
		w = (struct scaled_u64){ w.f + HIDDEN, w.e - EXPONENT_BIAS };
	else
		w.e = 1 - EXPONENT_BIAS;
	/* halfway to the neighbours above and below; below a power of two the neighbour is half as far */
	high = normalize_wide((struct scaled_u64){ (w.f << 1) + 1, w.e - 1 });
	low = w.f == HIDDEN ? (struct scaled_u64){ (w.f << 2) - 1, w.e - 2 }
			    : (struct scaled_u64){ (w.f << 1) - 1, w.e - 1 };
	low = (struct scaled_u64){ low.f << (low.e - high.e), high.e };
	power = find_power_of_ten(high.e, ret_k);
	w = multiply_wide(normalize_wide(w), power);
	high = multiply_wide(high, power);
	low = multiply_wide(low, power);
	low.f++;
	high.f--;
	return generate_digits(digits, high, (struct digit_bounds){ high.f - low.f, high.f - w.f }, ret_k);
}

static size_t print_exponent(char *to, int v)
{
	char text[12];
	size_t n = 0, i;

	do
		text[n++] = (char)('0' + v % 10);
	while (v /= 10);
	for (i = 0; i < n; i++)
		to[i] = text[n - 1 - i];
	return n;
}

/* Writes the digits with a decimal point: plain from 1e-5 to 1e17, else with an exponent. */
static size_t place_decimal_point(char *to, const char *digits, int n, int k)
{
	int point = n + k; /* digits before the point */
	size_t at = 0;

	if (point > 0 && point <= 17) {
		int before = n < point ? n : point;

		memcpy(to, digits, (size_t)before);
		memset(to + before, '0', (size_t)(point - before));
		at = (size_t)point;
		if (n > point) {
			to[at++] = '.';
			memcpy(to + at, digits + point, (size_t)(n - point));
			at += (size_t)(n - point);
		}
		return at;
	}
	if (point <= 0 && point > -5) {
		memcpy(to, "0.0000", 6);
		at = (size_t)(2 - point);
		memcpy(to + at, digits, (size_t)n);
		return at + (size_t)n;
	}
	to[at++] = digits[0];
	if (n > 1) {
		to[at++] = '.';
		memcpy(to + at, digits + 1, (size_t)n - 1);
		at += (size_t)n - 1;
	}
	to[at++] = 'e';
	if (point < 1)
		to[at++] = '-';
	return at + print_exponent(to + at, point < 1 ? 1 - point : point - 1);
}

/* Writes v (finite, not 0) as a JSON number with a terminating NUL; returns its length. */
static size_t double_print(char *text, double v)
{
	char digits[24];
	size_t at = 0;
	int n, k;

	if (v < 0) {
		text[at++] = '-';
		v = -v;
	}
	n = find_shortest_digits(digits, v, &k);
	at += place_decimal_point(text + at, digits, n, k);
	text[at] = '\0';
	return at;
}

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

void js_key_open(struct js *j, const char *key, char bracket)
{
	js_key(j, key);
	js_open(j, bracket);
}

void js_key_bool(struct js *j, const char *key, bool v)
{
	js_key(j, key);
	js_bool(j, v);
}

enum call_next js_reply(struct call *c, struct js *j)
{
	js_close(j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
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
