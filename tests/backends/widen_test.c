/* SPDX-License-Identifier: Apache-2.0 */
/* widen_test.c: conversions between f16 and f32 with every instruction set of the machine: all 65536 values of f16
 * against the definition of the format in f64; f32 values around every value of f16 and every rounding point against
 * rint() at the scale of the value; sizes around those of a vector and of a thread's part. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backends/cpu/widen.h"

#define F16_VALUES 65536
#define GUARD 0x5a5a

static float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* The value that a pattern means. */
static double exact_f16(uint16_t h)
{
	const int exponent = h >> 10 & 31, mantissa = h & 1023;
	const double v = exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY) :
		exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

	return h & 0x8000 ? -v : v;
}

/* The value of f16 nearest to x, the even one of two. */
static double nearest_f16(double x)
{
	int e;
	double scale, r;

	if (isnan(x) || isinf(x) || fpclassify(x) == FP_ZERO)
		return x;
	frexp(x, &e); /* |x| in [2^(e-1), 2^e) has steps of 2^(e-11), at least 2^-24 */
	scale = ldexp(1, e - 11 > -24 ? e - 11 : -24);
	r = rint(x / scale) * scale;
	return fabs(r) >= 65536 ? copysign((double)INFINITY, x) : copysign(r, x);
}

static bool same_value(double a, double b)
{
	return isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof(a));
}

static void test_all_f16_values(void **state)
{
	uint16_t *h = malloc(F16_VALUES * sizeof(*h));
	float *f = malloc(F16_VALUES * sizeof(*f));

	(void)state;
	assert_true(h && f);
	for (int i = 0; i < F16_VALUES; i++)
		h[i] = (uint16_t)i;
	for (int isa = 0; isa <= (int)cpu_isa_detect(); isa++) {
		const struct cpu_module m = { .isa = (enum cpu_isa)isa };

		widen_f16(&m, 2, h, f, F16_VALUES);
		for (int i = 0; i < F16_VALUES; i++)
			if (!same_value((double)f[i], exact_f16((uint16_t)i)))
				fail_msg("%s: f16 0x%04x is %g, not %g", cpu_isa_name(m.isa), (unsigned)i, (double)f[i],
					 exact_f16((uint16_t)i));
	}
	free(h);
	free(f);
}

/* Every sign, exponent and 11 bits of mantissa, one more than f16 has, with these bits below them. */
#define UPPER_VALUES (1 << 20)
static const uint32_t lower_bits[] = { 0, 1, 0x7ff, 0x800, 0x801, 0xfff };

static void test_rounding(void **state)
{
	float *f = malloc(UPPER_VALUES * sizeof(*f));
	uint16_t *h = malloc(UPPER_VALUES * sizeof(*h));

	(void)state;
	assert_true(f && h);
	for (size_t k = 0; k < sizeof(lower_bits) / sizeof(*lower_bits); k++) {
		for (uint32_t i = 0; i < UPPER_VALUES; i++)
			f[i] = float_of(i << 12 | lower_bits[k]);
		for (int isa = 0; isa <= (int)cpu_isa_detect(); isa++) {
			const struct cpu_module m = { .isa = (enum cpu_isa)isa };

			widen_to_f16(&m, 2, f, h, UPPER_VALUES);
			for (int i = 0; i < UPPER_VALUES; i++)
				if (!same_value(exact_f16(h[i]), nearest_f16((double)f[i])))
					fail_msg("%s: %a rounds to 0x%04x, %a, not %a", cpu_isa_name(m.isa),
						 (double)f[i], (unsigned)h[i], exact_f16(h[i]),
						 nearest_f16((double)f[i]));
		}
	}
	free(f);
	free(h);
}

static void check_size(const struct cpu_module *m, int threads, int64_t n)
{
	uint16_t *h = malloc((size_t)(2 * n + 1) * sizeof(*h)), *back = h + n;
	float *f = malloc((size_t)(n + 1) * sizeof(*f));

	assert_true(h && f);
	for (int64_t i = 0; i < n; i++)
		h[i] = (uint16_t)(i * 7 % 0x7c00);
	f[n] = 1234;
	back[n] = GUARD;
	widen_f16(m, threads, h, f, n);
	widen_to_f16(m, threads, f, back, n);
	assert_memory_equal(h, back, (size_t)n * sizeof(*h));
	assert_float_equal(f[n], 1234, 0);
	assert_int_equal(back[n], GUARD);
	free(h);
	free(f);
}

static void test_sizes(void **state)
{
	static const int64_t sizes[] = { 0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 33, 8191, 16384, 16389, 50001 };

	(void)state;
	for (int isa = 0; isa <= (int)cpu_isa_detect(); isa++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (int threads = 1; threads <= 3; threads++)
				check_size(&(struct cpu_module){ .isa = (enum cpu_isa)isa }, threads, sizes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_f16_values), cmocka_unit_test(test_rounding),
					    cmocka_unit_test(test_sizes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
