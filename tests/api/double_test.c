/* SPDX-License-Identifier: Apache-2.0 */
/* double_test.c: printed doubles read back bit for bit, and are at most one digit longer than the C library's shortest
 * form. strtod and printf are the reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "web/api/js.h"

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t digits_of(const char *text)
{
	size_t n = 0, zeros = 0;

	for (; *text && *text != 'e'; text++) {
		if (*text < '0' || *text > '9' || (*text == '0' && !n))
			continue;
		n++;
		zeros = *text == '0' ? zeros + 1 : 0;
	}
	return n - zeros;
}

/* Significant digits that the C library needs. */
static size_t digits_needed(double v)
{
	char text[64];
	int digits;

	for (digits = 1; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits - 1, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return (size_t)digits;
}

static void expect_back(double v)
{
	char text[JS_DOUBLE_MAX];
	size_t n = js_print_double(text, v);
	double back = strtod(text, NULL);

	assert_int_equal(n, strlen(text));
	assert_true(n < JS_DOUBLE_MAX);
	if (memcmp(&back, &v, sizeof(v)))
		fail_msg("%.17g was printed as %s", v, text);
}

static void test_round_trip(void **state)
{
	static const double edges[] = { 0.0, -0.0, 1, -1, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308,
					1.7976931348623157e308, 0.1, 1e22, 1e23, 1e16, 1e17, 1e18, 9007199254740993.0,
					0.0001, 0.00001, 123456.789, 4.35, -2.5e-7, INFINITY, -INFINITY };
	uint64_t seed = 88172645463325252u, bits;
	double v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		expect_back(edges[i]);
	for (i = 0; i < 300000; i++) {
		bits = next_random(&seed);
		memcpy(&v, &bits, sizeof(v));
		if (isfinite(v))
			expect_back(v);
		expect_back((float)((double)(bits >> 11) * 0x1p-53));
		expect_back((double)(int64_t)(bits >> i % 60) / 1000);
	}
}

static void test_short(void **state)
{
	uint64_t seed = 7, bits;
	char text[JS_DOUBLE_MAX];
	size_t i, longer = 0;
	double v;

	(void)state;
	for (i = 0; i < 20000; i++) {
		bits = next_random(&seed);
		v = i % 2 ? (double)(bits % 100000) / 1000 + 0.001 : (double)(bits >> 11) * 0x1p-53 + 1e-9;
		js_print_double(text, v);
		assert_true(digits_of(text) <= 17);
		longer += digits_of(text) > digits_needed(v);
	}
	assert_true(longer < 200);
}

static void test_words(void **state)
{
	char text[JS_DOUBLE_MAX];

	(void)state;
	js_print_double(text, NAN);
	assert_string_equal(text, "NaN");
	js_print_double(text, -INFINITY);
	assert_string_equal(text, "-Infinity");
	js_print_double(text, -0.0);
	assert_string_equal(text, "-0.0");
	js_print_double(text, 100);
	assert_string_equal(text, "100");
	js_print_double(text, 0.0001);
	assert_string_equal(text, "0.0001");
	js_print_double(text, 1.5e300);
	assert_string_equal(text, "1.5e300");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
