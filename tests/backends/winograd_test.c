/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_test.c: the three passes of Winograd's convolutions compared with plain f64 loops, at odd sizes: within ten
 * times the distance of oneDNN's direct kernel, and with the same bits for any number of threads. With operands of
 * bf16, each result is the exact one rounded to bf16, or within its rounding in f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backends/cpu/own_convs.h"

struct shape_case {
	int64_t n, h, w, c, k, pad;
};

static const struct shape_case cases[] = {
	{ 2, 8, 8, 16, 16, 1 },	 { 2, 7, 5, 3, 17, 1 },	    { 3, 9, 14, 17, 3, 0 },   { 2, 13, 11, 96, 96, 2 },
	{ 1, 4, 4, 48, 80, 1 },	 { 2, 14, 14, 64, 128, 1 }, { 3, 30, 31, 17, 32, 1 }, { 2, 1, 1, 16, 16, 1 },
	{ 40, 4, 5, 33, 16, 1 }, { 28, 16, 15, 16, 64, 1 },
};

/* Operands and results of the passes; the exact values in f64. */
struct fixture {
	struct dnn *direct;
	struct dnn_conv_spec spec;
	int64_t count[3]; /* of y, x, w: results of forward, dgrad and wgrad */
	float *in[3];	  /* y's gradient, x, w; with bf16 what it can hold */
	uint16_t *low[3]; /* the same in bf16 */
	float *unrounded; /* w, of which in[2] is the rounded one */
	double *exact[3];
};

static float from_bf16(uint16_t v)
{
	uint32_t u = (uint32_t)v << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

/* Returns the nearer of the two neighbours, the even one if they are equally near. */
static uint16_t to_bf16(float v)
{
	uint32_t u;
	uint16_t down;
	double below, above;

	memcpy(&u, &v, sizeof(u));
	down = (uint16_t)(u >> 16);
	below = fabs((double)v - from_bf16(down));
	above = fabs((double)v - from_bf16((uint16_t)(down + 1)));
	return below < above || (below == above && down % 2 == 0) ? down : (uint16_t)(down + 1);
}

static float noise(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (float)((double)(int64_t)(*seed >> 11) / (double)(1LL << 52) - 1);
}

static void *room(int64_t bytes)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, 64, (size_t)bytes + 64), 0);
	memset(p, 0xff, (size_t)bytes + 64);
	return p;
}

/* One product of forward, which is also a product of both gradients. */
static void add(struct fixture *f, int64_t y, int64_t x, int64_t w)
{
	const int64_t at[3] = { y, x, w };

	for (int i = 0; i < 3; i++) {
		float a = f->in[(i + 1) % 3][at[(i + 1) % 3]], b = f->in[(i + 2) % 3][at[(i + 2) % 3]];

		f->exact[i][at[i]] += (double)a * (double)b;
	}
}

static void loops(struct fixture *f)
{
	const struct dnn_conv_spec *s = &f->spec;

	for (int64_t i = 0; i < f->count[0]; i++)
		for (int64_t tap = 0; tap < 9; tap++) {
			int64_t k = i % s->k, pixel = i / s->k, n = pixel / s->q / s->p;
			int64_t h = pixel / s->q % s->p - s->pad + tap / 3, w = pixel % s->q - s->pad + tap % 3;

			for (int64_t c = 0; h >= 0 && w >= 0 && h < s->h && w < s->w && c < s->c; c++)
				add(f, i, ((n * s->h + h) * s->w + w) * s->c + c, (k * 9 + tap) * s->c + c);
		}
}

static void round_operand(struct fixture *f, int i)
{
	f->low[i] = room(f->count[i] * 2);
	if (i == 2) {
		f->unrounded = room(f->count[2] * 4);
		memcpy(f->unrounded, f->in[2], (size_t)f->count[2] * 4);
	}
	for (int64_t j = 0; j < f->count[i]; j++) {
		f->low[i][j] = to_bf16(f->in[i][j]);
		f->in[i][j] = from_bf16(f->low[i][j]);
	}
}

static void open_case(struct fixture *f, const struct shape_case *sc, bool bf16)
{
	uint64_t seed = 7;

	f->spec = (struct dnn_conv_spec){ .bf16 = bf16,
					  .n = sc->n,
					  .h = sc->h,
					  .w = sc->w,
					  .c = sc->c,
					  .k = sc->k,
					  .kernel = 3,
					  .stride = 1,
					  .pad = sc->pad,
					  .p = sc->h + 2 * sc->pad - 2,
					  .q = sc->w + 2 * sc->pad - 2 };
	f->count[0] = f->spec.n * f->spec.p * f->spec.q * f->spec.k;
	f->count[1] = f->spec.n * f->spec.h * f->spec.w * f->spec.c;
	f->count[2] = f->spec.k * 9 * f->spec.c;
	for (int i = 0; i < 3; i++) {
		f->in[i] = room(f->count[i] * 4);
		f->exact[i] = calloc((size_t)f->count[i], sizeof(double));
		for (int64_t j = 0; j < f->count[i]; j++)
			f->in[i][j] = noise(&seed);
		if (bf16)
			round_operand(f, i);
	}
	loops(f);
}

static void close_case(struct fixture *f)
{
	for (int i = 0; i < 3; i++) {
		free(f->in[i]);
		free(f->low[i]);
		free(f->exact[i]);
	}
	free(f->unrounded);
}

/* Returns y's gradient (0) or x (1) as the passes read it. */
static void *activations(const struct fixture *f, int i)
{
	return f->spec.bf16 ? (void *)f->low[i] : (void *)f->in[i];
}

/* Returns the result of a pass with this many threads, in f32; the caller frees it. */
static float *run(struct fixture *f, enum dnn_pass pass, int threads)
{
	float *out = room(f->count[pass] * 4);
	void *workspace, *packed;

	f->spec.pass = pass;
	workspace = room((int64_t)winograd_workspace_bytes(&f->spec, threads));
	packed = room((int64_t)winograd_packed_bytes(&f->spec));
	if (winograd_packed_bytes(&f->spec))
		winograd_pack(&f->spec, threads, f->unrounded, packed);
	winograd_run(&f->spec, threads,
		     &(struct dnn_conv_args){ activations(f, pass == DNN_DGRAD ? 0 : 1),
					      pass == DNN_WGRAD ? activations(f, 0)
					      : f->spec.bf16	? packed
								: f->in[2],
					      out, workspace });
	for (int64_t i = f->count[pass] - 1; f->spec.bf16 && pass != DNN_WGRAD && i >= 0; i--) {
		uint16_t low;

		memcpy(&low, (char *)out + 2 * i, sizeof(low));
		out[i] = from_bf16(low);
	}
	free(workspace);
	free(packed);
	return out;
}

/* The same with the library's first choice. */
static float *run_direct(struct fixture *f, enum dnn_pass pass)
{
	float *out = room(f->count[pass] * 4);
	void *packed, *workspace;
	struct dnn_conv *c;
	struct err err = ERR_INIT;

	f->spec.pass = pass;
	if (dnn_conv_new(&c, f->direct, &f->spec, NULL, &err))
		fail_msg("%s", err.text);
	packed = room((int64_t)dnn_conv_packed_bytes(c));
	workspace = room((int64_t)dnn_conv_workspace_bytes(c));
	if (pass != DNN_WGRAD)
		dnn_conv_pack(c, f->in[2], packed);
	dnn_conv_run(c, &(struct dnn_conv_args){ f->in[pass == DNN_DGRAD ? 0 : 1],
						 pass == DNN_WGRAD ? (void *)f->in[0] : packed, out, workspace });
	if (dnn_take_failure(f->direct, &err))
		fail_msg("%s", err.text);
	dnn_conv_free(c);
	free(packed);
	free(workspace);
	return out;
}

static double distance(const float *got, const double *want, int64_t n)
{
	double sum = 0, size = 0;

	for (int64_t i = 0; i < n; i++) {
		sum += (got[i] - want[i]) * (got[i] - want[i]);
		size += want[i] * want[i];
	}
	return sqrt(sum / size);
}

static void check_pass(struct fixture *f, enum dnn_pass pass)
{
	float *one = run(f, pass, 1), *three = run(f, pass, 3), *direct = run_direct(f, pass);
	double far = distance(one, f->exact[pass], f->count[pass]);
	double other = distance(direct, f->exact[pass], f->count[pass]);

	if (!(far <= 10 * other && far < 3e-6))
		fail_msg("%lldx%lldx%lldx%lld to %lld, pass %d: %.2g from f64, the direct kernel %.2g",
			 (long long)f->spec.n, (long long)f->spec.h, (long long)f->spec.w, (long long)f->spec.c,
			 (long long)f->spec.k, (int)pass, far, other);
	assert_memory_equal(one, three, (size_t)f->count[pass] * sizeof(float));
	free(one);
	free(three);
	free(direct);
}

/* A result of bf16 is at most half a unit of its last digit from the exact one, and the rounding of f32. */
static void check_low_pass(struct fixture *f, enum dnn_pass pass)
{
	float *one = run(f, pass, 1), *three = run(f, pass, 3);
	double size = 0;

	for (int64_t i = 0; i < f->count[pass]; i++)
		size += f->exact[pass][i] * f->exact[pass][i] / (double)f->count[pass];
	for (int64_t i = 0; i < f->count[pass]; i++) {
		double exact = f->exact[pass][i], half = pass == DNN_WGRAD ? 0 : fabs(exact) / 256;

		if (!(fabs(one[i] - exact) <= half + 2e-5 * sqrt(size)))
			fail_msg("%lldx%lldx%lldx%lld to %lld, pass %d, bf16: result %lld is %.9g, exactly %.9g",
				 (long long)f->spec.n, (long long)f->spec.h, (long long)f->spec.w, (long long)f->spec.c,
				 (long long)f->spec.k, (int)pass, (long long)i, one[i], exact);
	}
	assert_memory_equal(one, three, (size_t)f->count[pass] * sizeof(float));
	free(one);
	free(three);
}

static void skip_without_avx512(void)
{
	if (cpu_isa_detect() < CPU_AVX512) {
		print_message("this processor has no AVX-512: nothing was tested\n");
		skip();
	}
}

static void test_bf16(void **state)
{
	(void)state;
	skip_without_avx512();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = { .direct = NULL };

		open_case(&f, &cases[i], true);
		check_low_pass(&f, DNN_FORWARD);
		check_low_pass(&f, DNN_DGRAD);
		check_low_pass(&f, DNN_WGRAD);
		close_case(&f);
	}
}

/* Numbers beyond those of bf16 become infinite, ties go to the even digit, a NaN stays one. */
static void test_bf16_extremes(void **state)
{
	static const struct {
		float in;
		uint16_t out;
	} numbers[9] = { { INFINITY, 0x7f80 }, { -INFINITY, 0xff80 },	{ 3.4e38f, 0x7f80 },
			 { -3.4e38f, 0xff80 }, { 1.00390625f, 0x3f80 }, { 1.01171875f, 0x3f82 },
			 { 0.0f, 0 },	       { -0.0f, 0x8000 },	{ 1e-40f, 1 } };
	const struct dnn_conv_spec s = { .c = 1, .k = 2, .kernel = 3, .bf16 = true };
	float in[18];
	uint16_t out[18];

	(void)state;
	skip_without_avx512();
	for (int i = 0; i < 18; i++)
		in[i] = i < 9 ? numbers[i].in : i % 2 ? NAN : -NAN;
	winograd_pack(&s, 1, in, out);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(out[i], numbers[i].out);
		assert_true(isnan(from_bf16(out[9 + i])));
	}
}

static void test_passes(void **state)
{
	struct dnn *direct;
	struct err err = ERR_INIT;

	(void)state;
	skip_without_avx512();
	if (dnn_new(&direct, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = { .direct = direct };

		open_case(&f, &cases[i], false);
		check_pass(&f, DNN_FORWARD);
		check_pass(&f, DNN_DGRAD);
		check_pass(&f, DNN_WGRAD);
		close_case(&f);
	}
	dnn_free(direct);
}

/* --conv-algo direct and other shapes are not supported. */
static void test_supported_shapes(void **state)
{
	const struct dnn_conv_spec fits = {
		.n = 1, .h = 8, .w = 8, .c = 16, .k = 16, .p = 8, .q = 8, .kernel = 3, .stride = 1, .pad = 1
	};
	struct dnn_conv_spec strided = fits, low = fits;
	struct cpu_module m = { .isa = CPU_AVX512 };

	(void)state;
	strided.stride = 2;
	low.bf16 = true;
#if defined(__x86_64__)
	assert_true(winograd_takes(&m, &fits) && winograd_takes(&m, &low));
#endif
	assert_false(winograd_takes(&m, &strided));
	m.direct = true;
	assert_false(winograd_takes(&m, &fits));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_passes), cmocka_unit_test(test_bf16),
					    cmocka_unit_test(test_bf16_extremes),
					    cmocka_unit_test(test_supported_shapes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
