/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_conv_test.c: our bf16 convolutions compared with f64 sums of the same bf16 operands: all passes, both engines,
 * every instruction set of the machine, odd sizes and every kind of layer in ResNets. Plain C emulates instructions
 * that the processor lacks; the output lists which it has. Results have the same bits for any number of threads, and
 * nothing is accessed beyond the end of an operand, a result or the workspace. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/own_convs.h"
#include "trainer/ops/cast/float16.h"

#define PAGE ((size_t)4096)

struct shape_case {
	int64_t n, h, w, c, k, kernel, stride, pad;
};

static const struct shape_case cases[] = {
	{ 1, 1, 1, 1, 1, 1, 1, 0 },	{ 2, 1, 1, 3, 5, 3, 1, 1 },	{ 3, 5, 7, 16, 16, 3, 1, 1 },
	{ 2, 9, 7, 16, 32, 3, 2, 1 },	{ 2, 8, 8, 32, 64, 3, 2, 1 },	{ 1, 13, 11, 3, 20, 7, 2, 3 },
	{ 2, 12, 12, 3, 64, 7, 2, 3 },	{ 2, 10, 11, 13, 19, 3, 1, 1 }, { 3, 6, 5, 24, 8, 3, 1, 1 },
	{ 1, 9, 9, 1, 16, 3, 1, 1 },	{ 2, 5, 5, 64, 96, 1, 1, 0 },	{ 3, 7, 5, 16, 32, 1, 2, 0 },
	{ 2, 9, 9, 32, 48, 1, 2, 0 },	{ 1, 6, 6, 64, 32, 3, 1, 0 },	{ 2, 7, 9, 33, 31, 3, 2, 1 },
	{ 1, 9, 8, 8, 8, 5, 2, 2 },	{ 1, 7, 7, 40, 24, 5, 1, 2 },	{ 17, 4, 4, 32, 64, 3, 1, 1 },
	{ 13, 7, 7, 64, 32, 3, 1, 1 },	{ 33, 3, 3, 32, 16, 3, 2, 1 },	{ 2, 40, 40, 32, 16, 3, 1, 1 },
	{ 1, 70, 66, 16, 16, 3, 1, 1 }, { 5, 15, 13, 48, 40, 1, 1, 0 },	{ 1, 5, 4, 256, 40, 3, 1, 1 },
	{ 1, 3, 3, 640, 16, 1, 1, 0 },	{ 3, 6, 6, 32, 32, 3, 2, 0 },	{ 2, 4, 4, 32, 32, 3, 1, 2 },
	{ 1, 2, 9, 16, 16, 2, 2, 0 },	{ 1, 64, 65, 32, 32, 1, 1, 0 },
	{ 2, 9, 9, 24, 70, 1, 1, 0 },	{ 1, 50, 50, 32, 96, 1, 1, 0 },
};

/* Memory that ends at an inaccessible page. */
struct guarded {
	char *map, *data;
	size_t mapped, bytes;
};

static struct guarded guard_memory(size_t bytes)
{
	struct guarded g = { .mapped = (bytes + 2 * PAGE - 1) / PAGE * PAGE, .bytes = bytes };

	g.map = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g.map != MAP_FAILED);
	memset(g.map, 0xff, g.mapped); /* NaN in either type */
	assert_int_equal(mprotect(g.map + g.mapped - PAGE, PAGE, PROT_NONE), 0);
	g.data = g.map + g.mapped - PAGE - bytes;
	return g;
}

/* Fails if anything before the data was written. */
static void release_memory(const struct guarded *g)
{
	for (const char *p = g->map; p < g->data; p++)
		assert_int_equal(*p, -1);
	munmap(g->map, g->mapped);
}

struct fixture {
	struct dnn_conv_spec spec;
	int64_t count[3]; /* of y, x, w: results of forward, data gradient and weight gradient */
	struct guarded in[3]; /* bf16, except w */
	double *value[3], *exact[3], *size[3]; /* size: sums of the terms' absolute values */
};

static uint16_t round_to_bf16(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof(u));
	return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static double draw_value(struct fixture *f, int i, int64_t at, uint64_t *seed)
{
	float x;

	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	x = (float)((double)(int64_t)(*seed >> 11) / (double)(1LL << 52) - 1);
	if (i < 2)
		((uint16_t *)(void *)f->in[i].data)[at] = round_to_bf16(x);
	else
		((float *)(void *)f->in[i].data)[at] = x;
	return (double)bf16_to_float(round_to_bf16(x));
}

static void add_product(struct fixture *f, int64_t y, int64_t x, int64_t w)
{
	const int64_t at[3] = { y, x, w };

	for (int i = 0; i < 3; i++) {
		const double product = f->value[(i + 1) % 3][at[(i + 1) % 3]] * f->value[(i + 2) % 3][at[(i + 2) % 3]];

		f->exact[i][at[i]] += product;
		f->size[i][at[i]] += fabs(product);
	}
}

static void sum_exactly(struct fixture *f)
{
	const struct dnn_conv_spec *s = &f->spec;
	const int64_t taps = s->kernel * s->kernel;

	for (int64_t i = 0; i < f->count[0]; i++)
		for (int64_t tap = 0; tap < taps; tap++) {
			const int64_t k = i % s->k, pixel = i / s->k, n = pixel / s->q / s->p;
			const int64_t h = pixel / s->q % s->p * s->stride - s->pad + tap / s->kernel;
			const int64_t w = pixel % s->q * s->stride - s->pad + tap % s->kernel;

			for (int64_t c = 0; h >= 0 && w >= 0 && h < s->h && w < s->w && c < s->c; c++)
				add_product(f, i, ((n * s->h + h) * s->w + w) * s->c + c, (k * taps + tap) * s->c + c);
		}
}

static void open_case(struct fixture *f, const struct shape_case *sc)
{
	uint64_t seed = 3;

	f->spec = (struct dnn_conv_spec){ .bf16 = true, .n = sc->n, .h = sc->h, .w = sc->w, .c = sc->c, .k = sc->k };
	f->spec.kernel = sc->kernel;
	f->spec.stride = sc->stride;
	f->spec.pad = sc->pad;
	f->spec.p = (sc->h + 2 * sc->pad - sc->kernel) / sc->stride + 1;
	f->spec.q = (sc->w + 2 * sc->pad - sc->kernel) / sc->stride + 1;
	f->count[0] = f->spec.n * f->spec.p * f->spec.q * f->spec.k;
	f->count[1] = f->spec.n * f->spec.h * f->spec.w * f->spec.c;
	f->count[2] = f->spec.k * sc->kernel * sc->kernel * f->spec.c;
	for (int i = 0; i < 3; i++) {
		f->in[i] = guard_memory((size_t)f->count[i] * (i < 2 ? sizeof(uint16_t) : sizeof(float)));
		f->value[i] = calloc((size_t)f->count[i], sizeof(double));
		f->exact[i] = calloc((size_t)f->count[i], sizeof(double));
		f->size[i] = calloc((size_t)f->count[i], sizeof(double));
		assert_true(f->value[i] && f->exact[i] && f->size[i]);
		for (int64_t j = 0; j < f->count[i]; j++)
			f->value[i][j] = draw_value(f, i, j, &seed);
	}
	sum_exactly(f);
}

static void close_case(struct fixture *f)
{
	for (int i = 0; i < 3; i++) {
		release_memory(&f->in[i]);
		free(f->value[i]);
		free(f->exact[i]);
		free(f->size[i]);
	}
}

/* Returns the result of a pass; the caller releases it. */
static struct guarded run_pass(const struct fixture *f, const struct bf16_conv *c)
{
	const bool wgrad = c->spec.pass == DNN_WGRAD;
	struct guarded out, packed, workspace = guard_memory(bf16_conv_workspace_bytes(c));

	assert_int_equal(workspace.bytes % 8, 0);
	out = guard_memory((size_t)f->count[c->spec.pass] * (wgrad ? sizeof(float) : sizeof(uint16_t)));
	packed = guard_memory(bf16_conv_packed_bytes(c));
	assert_true((packed.bytes == 0) == wgrad);
	if (!wgrad)
		bf16_conv_pack(c, (const float *)(void *)f->in[2].data, packed.data);
	bf16_conv_run(c, &(struct dnn_conv_args){ f->in[c->spec.pass == DNN_DGRAD ? 0 : 1].data,
						  wgrad ? f->in[0].data : packed.data, out.data, workspace.data });
	release_memory(&packed);
	release_memory(&workspace);
	return out;
}

/* Each term's rounding is relative to the sum of magnitudes; bf16 results are rounded once more. */
static void check_values(const struct fixture *f, const struct bf16_conv *c, const struct guarded *out)
{
	const enum dnn_pass pass = c->spec.pass;
	const struct dnn_conv_spec *s = &f->spec;

	for (int64_t i = 0; i < f->count[pass]; i++) {
		const double want = f->exact[pass][i], got = pass == DNN_WGRAD
			? (double)((const float *)(const void *)out->data)[i]
			: (double)bf16_to_float(((const uint16_t *)(const void *)out->data)[i]);
		const double room = 1e-6 * f->size[pass][i] + (pass == DNN_WGRAD ? 0 : fabs(want) / 255);

		if (!(fabs(got - want) <= room))
			fail_msg("%lldx%lldx%lldx%lld to %lld, %lldx%lld/%lld, pass %d, engine %d, isa %d: "
				 "element %lld is %.9g, not %.9g", (long long)s->n, (long long)s->h, (long long)s->w,
				 (long long)s->c, (long long)s->k, (long long)s->kernel, (long long)s->kernel,
				 (long long)s->stride, (int)pass, (int)c->engine, (int)c->module->isa, (long long)i,
					 got,
				 want);
	}
}

static void check_case(const struct cpu_module *m, enum bf16_engine engine, const struct fixture *f)
{
	for (int pass = DNN_FORWARD; pass <= DNN_WGRAD; pass++) {
		struct bf16_conv c = { .module = m, .engine = engine, .spec = f->spec, .threads = 1 };
		struct guarded one, four;

		c.spec.pass = (enum dnn_pass)pass;
		assert_true(bf16_conv_takes(m, engine, &c.spec));
		one = run_pass(f, &c);
		check_values(f, &c, &one);
		c.threads = 4;
		four = run_pass(f, &c);
		assert_memory_equal(one.data, four.data, one.bytes);
		release_memory(&one);
		release_memory(&four);
	}
}

/* Uses the instructions where the processor has them, and their emulation always. */
static void check_engines(const struct fixture *f)
{
	const enum cpu_isa best = cpu_isa_detect();
	const enum cpu_tiles real = cpu_tiles_detect(best);

	for (int isa = CPU_BASE; isa <= (int)best; isa++) {
		const struct cpu_module plain = { .isa = (enum cpu_isa)isa,
						  .tiles = CPU_TILES_EMULATED,
						  .plain_dots = true };

		check_case(&plain, BF16_DOTS, f);
		check_case(&plain, BF16_TILES, f);
	}
	if (real == CPU_TILES_AMX)
		check_case(&(struct cpu_module){ .isa = best, .tiles = real }, BF16_TILES, f);
}

static void test_passes(void **state)
{
	(void)state;
	unsetenv("DPTRAIN_CPU_TILES");
	unsetenv("DPTRAIN_CPU_ISA");
	print_message("dot products: %s; tiles: %s\n",
		      cpu_isa_detect() == CPU_AVX512_BF16 ? "the processor's too" : "plain C alone",
		      cpu_tiles_detect(cpu_isa_detect()) == CPU_TILES_AMX ? "the processor's too" : "plain C alone");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = { 0 };

		open_case(&f, &cases[i]);
		check_engines(&f);
		close_case(&f);
	}
}

static void test_supported_shapes(void **state)
{
	const struct dnn_conv_spec fits = { .bf16 = true, .n = 1, .h = 8, .w = 8, .c = 16, .k = 16, .p = 8, .q = 8,
					    .kernel = 3, .stride = 1, .pad = 1 };
	struct dnn_conv_spec wide = fits, far = fits, full = fits;
	const struct cpu_module m = { .isa = CPU_AVX512_BF16 };

	(void)state;
	wide.kernel = 9;
	far.stride = 3;
	full.bf16 = false;
	assert_true(bf16_conv_takes(&m, BF16_DOTS, &fits));
	assert_false(bf16_conv_takes(&m, BF16_TILES, &fits));
	assert_false(bf16_conv_takes(&m, BF16_DOTS, &wide) || bf16_conv_takes(&m, BF16_DOTS, &far));
	assert_false(bf16_conv_takes(&m, BF16_DOTS, &full));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_passes), cmocka_unit_test(test_supported_shapes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
