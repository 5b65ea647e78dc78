/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_test.c: the three passes of Winograd's convolutions compared with plain f64 loops, at odd sizes: within ten
 * times the distance of oneDNN's direct kernel, and with the same bits for any number of threads. */
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
	{ 2, 8, 8, 16, 16, 1 },	  { 2, 7, 5, 3, 17, 1 },   { 3, 9, 14, 17, 3, 0 },  { 2, 13, 11, 96, 96, 2 },
	{ 1, 4, 4, 48, 80, 1 },	  { 2, 14, 14, 64, 128, 1 }, { 3, 30, 31, 17, 32, 1 }, { 2, 1, 1, 16, 16, 1 },
	{ 40, 4, 5, 33, 16, 1 }, { 28, 16, 15, 16, 64, 1 },
};

/* Operands and results of the passes; the exact values in f64. */
struct fixture {
	struct dnn *direct;
	struct dnn_conv_spec spec;
	int64_t count[3]; /* of y, x, w: results of forward, dgrad and wgrad */
	float *in[3];	  /* y's gradient, x, w */
	double *exact[3];
};

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

static void open_case(struct fixture *f, const struct shape_case *sc)
{
	uint64_t seed = 7;

	f->spec = (struct dnn_conv_spec){ .n = sc->n, .h = sc->h, .w = sc->w, .c = sc->c, .k = sc->k, .kernel = 3,
					  .stride = 1,
					  .pad = sc->pad, .p = sc->h + 2 * sc->pad - 2, .q = sc->w + 2 * sc->pad - 2 };
	f->count[0] = f->spec.n * f->spec.p * f->spec.q * f->spec.k;
	f->count[1] = f->spec.n * f->spec.h * f->spec.w * f->spec.c;
	f->count[2] = f->spec.k * 9 * f->spec.c;
	for (int i = 0; i < 3; i++) {
		f->in[i] = room(f->count[i] * 4);
		f->exact[i] = calloc((size_t)f->count[i], sizeof(double));
		for (int64_t j = 0; j < f->count[i]; j++)
			f->in[i][j] = noise(&seed);
	}
	loops(f);
}

static void close_case(struct fixture *f)
{
	for (int i = 0; i < 3; i++) {
		free(f->in[i]);
		free(f->exact[i]);
	}
}

/* Returns the result of a pass with this many threads; the caller frees it. */
static float *run(struct fixture *f, enum dnn_pass pass, int threads)
{
	float *out = room(f->count[pass] * 4);
	void *workspace;

	f->spec.pass = pass;
	workspace = room((int64_t)winograd_workspace_bytes(&f->spec, threads));
	winograd_run(&f->spec, threads,
		     &(struct dnn_conv_args){ f->in[pass == DNN_DGRAD ? 0 : 1], pass == DNN_WGRAD ? f->in[0] : f->in[2],
					      out, workspace });
	free(workspace);
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
	if ((pass != DNN_WGRAD && dnn_conv_pack(c, f->in[2], packed, &err)) ||
	    dnn_conv_run(c, &(struct dnn_conv_args){ f->in[pass == DNN_DGRAD ? 0 : 1],
						     pass == DNN_WGRAD ? (void *)f->in[0] : packed, out, workspace },
			 &err))
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

static void test_passes(void **state)
{
	struct dnn *direct;
	struct err err = ERR_INIT;

	(void)state;
	if (cpu_isa_detect() < CPU_AVX512) {
		print_message("this processor has no AVX-512: nothing was tested\n");
		skip();
	}
	if (dnn_new(&direct, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = { .direct = direct };

		open_case(&f, &cases[i]);
		check_pass(&f, DNN_FORWARD);
		check_pass(&f, DNN_DGRAD);
		check_pass(&f, DNN_WGRAD);
		close_case(&f);
	}
	dnn_free(direct);
}

/* --conv-algo direct, bf16 and other shapes are not supported. */
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
	assert_true(winograd_takes(&m, &fits));
#endif
	assert_false(winograd_takes(&m, &strided) || winograd_takes(&m, &low));
	m.direct = true;
	assert_false(winograd_takes(&m, &fits));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_passes), cmocka_unit_test(test_supported_shapes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
