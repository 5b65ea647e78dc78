/* SPDX-License-Identifier: Apache-2.0 */
/* tiles_test.c: products of tiles.c, of bf16 and of split f32 operands, compared with f64 sums: every storage layout,
 * sizes around those of a tile, a panel, a group and a slice, with and without bias and sum; the same bits for any
 * number of threads; sums of 4096 terms of f32 within 1e-5. With emulated tiles, and with the processor's if it has
 * them (otherwise a line reports that it has none). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backends/cpu/amx.h"
#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/ops/cast/float16.h"

#define STORED_PAST 5 /* elements after a row, in the cases with strides */

struct size_case {
	int64_t m, n, k;
};

static const struct size_case sizes[] = {
	{ 1, 1, 1 },   { 16, 16, 32 }, { 31, 33, 31 },	  { 64, 32, 64 },    { 17, 100, 129 },
	{ 5, 300, 7 }, { 300, 5, 66 }, { 40, 20, 1025 }, { 33, 47, 2200 },
	{ 40, 70, 600 },
};

struct product {
	struct dnn_matmul_spec s;
	void *a, *b; /* bf16 or f32 */
	float *bias;
	void *before; /* initial contents of out */
	double *want;
	size_t out_bytes;
};

static double held(const void *p, bool bf16, int64_t i)
{
	return bf16 ? (double)bf16_to_float(((const uint16_t *)p)[i]) : (double)((const float *)p)[i];
}

static void put(void *p, bool bf16, int64_t i, float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	if (bf16)
		((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
	else
		((float *)p)[i] = x;
}

/* Numbers in [-1, 1), in an allocation of exact size, so that reads past it are detected. */
static void *draw(int64_t n, bool bf16, uint64_t *seed)
{
	void *p = malloc((size_t)n * (bf16 ? sizeof(uint16_t) : sizeof(float)));

	assert_non_null(p);
	for (int64_t i = 0; i < n; i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		put(p, bf16, i, (float)((double)(int64_t)(*seed >> 11) / (double)(1LL << 52) - 1));
	}
	return p;
}

static double sum_of(const struct product *p, int64_t i, int64_t j)
{
	const struct dnn_matmul_spec *s = &p->s;
	double sum = s->bias ? (double)p->bias[j] : 0;

	for (int64_t k = 0; k < s->k; k++)
		sum += held(p->a, s->bf16, s->a_turned ? k * s->a_step + i : i * s->a_step + k) *
		       held(p->b, s->bf16, s->b_turned ? j * s->k + k : k * s->n + j);
	return s->add ? sum + held(p->before, s->out_bf16, i * s->out_step + j) : sum;
}

static void open_product(struct product *p, struct dnn_matmul_spec s)
{
	uint64_t seed = 11;

	s.a_step = (s.a_turned ? s.m : s.k) + STORED_PAST;
	s.out_step = s.n + STORED_PAST;
	p->s = s;
	p->out_bytes = (size_t)(s.m * s.out_step) * (s.out_bf16 ? sizeof(uint16_t) : sizeof(float));
	p->a = draw((s.a_turned ? s.k : s.m) * s.a_step - STORED_PAST, s.bf16, &seed);
	p->b = draw(s.k * s.n, s.bf16, &seed);
	p->bias = calloc((size_t)s.n, sizeof(float));
	p->before = calloc(1, p->out_bytes);
	p->want = calloc((size_t)(s.m * s.n), sizeof(double));
	assert_true(p->bias && p->before && p->want);
	for (int64_t j = 0; j < s.n; j++)
		p->bias[j] = (float)(j % 5);
	for (int64_t i = 0; i < s.m * s.out_step; i++)
		put(p->before, s.out_bf16, i, 1);
	for (int64_t i = 0; i < s.m * s.n; i++)
		p->want[i] = sum_of(p, i / s.n, i % s.n);
}

static void close_product(struct product *p)
{
	free(p->a);
	free(p->b);
	free(p->bias);
	free(p->before);
	free(p->want);
}

/* Returns the product computed with this many threads; the caller frees it. */
static void *run(const struct cpu_module *m, const struct product *p, int threads)
{
	void *workspace = malloc(tiles_workspace_bytes(&p->s, threads)), *out = malloc(p->out_bytes);

	assert_true(workspace && out);
	memset(workspace, 0xff, tiles_workspace_bytes(&p->s, threads));
	memcpy(out, p->before, p->out_bytes);
	tiles_run(m, &p->s, threads,
		  &(struct dnn_matmul_args){
			  .a = p->a, .b = p->b, .bias = p->bias, .out = out, .workspace = workspace });
	free(workspace);
	return out;
}

/* Relative to the sum of the terms' magnitudes, as rounding is. */
static void check_values(const struct product *p, const void *out)
{
	const struct dnn_matmul_spec *s = &p->s;
	const double most = s->out_bf16 ? 4e-3 : s->bf16 ? 1e-6 : 5e-6;

	for (int64_t i = 0; i < s->m; i++) {
		for (int64_t j = 0; j < s->n; j++) {
			double want = p->want[i * s->n + j], got = held(out, s->out_bf16, i * s->out_step + j);

			if (!(fabs(got - want) <= most * (fabs(want) + (double)s->k / 4 + 5)))
				fail_msg("%lldx%lldx%lld a_turned %d b_turned %d: [%lld][%lld] is %.9g, not %.9g",
					 (long long)s->m, (long long)s->n, (long long)s->k, s->a_turned, s->b_turned,
					 (long long)i, (long long)j, got, want);
		}
		for (int64_t j = s->n; j < s->out_step; j++)
			assert_true(held(out, s->out_bf16, i * s->out_step + j) == 1);
	}
}

static void check_product(const struct cpu_module *m, struct dnn_matmul_spec s)
{
	struct product p;
	void *one, *three;

	open_product(&p, s);
	one = run(m, &p, 1);
	three = run(m, &p, 3);
	check_values(&p, one);
	assert_memory_equal(one, three, p.out_bytes);
	free(one);
	free(three);
	close_product(&p);
}

static void check_all(enum cpu_isa isa, enum cpu_tiles tiles)
{
	const struct cpu_module m = { .isa = isa, .tiles = tiles, .split = true };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int ways = 0; ways < 16; ways++) {
			struct dnn_matmul_spec s = { .m = sizes[i].m, .n = sizes[i].n, .k = sizes[i].k };

			s.a_turned = ways & 1;
			s.b_turned = ways & 2;
			s.bf16 = ways & 4;
			s.out_bf16 = ways & 8;
			s.bias = (ways + (int)i) % 2;
			s.add = (ways + (int)i) % 3 == 0;
			check_product(&m, s);
		}
}

/* One block of 32 x 32 whose operands and sums are parts of wider rows. */
static void check_block(enum cpu_tiles how, bool add)
{
	enum { STEPS = 3, K = 32 * STEPS, A_ROW = K + 8, B_ROW = 2 * (32 + 5), C_ROW = 32 + 3 };
	uint16_t a[32 * A_ROW], b[K / 2 * B_ROW];
	float c[32 * C_ROW];

	for (int i = 0; i < 32 * A_ROW; i++)
		put(a, true, i, (float)(i * 37 % 64 - 32) / 32);
	for (int i = 0; i < K / 2 * B_ROW; i++)
		put(b, true, i, (float)(i * 29 % 64 - 32) / 32);
	for (int i = 0; i < 32 * C_ROW; i++)
		c[i] = (float)(i % 7);
	amx_begin(how);
	amx_multiply(how, &(struct amx_product){ a, b, A_ROW * 2, B_ROW * 2, STEPS, c, C_ROW * 4, add });
	amx_end(how);
	for (int i = 0; i < 32; i++)
		for (int j = 0; j < C_ROW; j++) {
			double want = add || j >= 32 ? (i * C_ROW + j) % 7 : 0;

			for (int k = 0; j < 32 && k < K; k++)
				want += held(a, true, i * A_ROW + k) * held(b, true, k / 2 * B_ROW + 2 * j + k % 2);
			assert_true(fabs((double)c[i * C_ROW + j] - want) < 1e-4);
		}
}

static void check_blocks(enum cpu_tiles how)
{
	check_block(how, false);
	check_block(how, true);
}

static void test_long_sums(void **state)
{
	const struct cpu_module m = { .isa = cpu_isa_detect(), .tiles = CPU_TILES_EMULATED, .split = true };
	double far = 0, size = 0;
	struct product p;
	float *out;

	(void)state;
	open_product(&p, (struct dnn_matmul_spec){ .m = 8, .n = 16, .k = 4096 });
	out = run(&m, &p, 1);
	for (int64_t i = 0; i < p.s.m * p.s.n; i++) {
		double d = (double)out[i / p.s.n * p.s.out_step + i % p.s.n] - p.want[i];

		far += d * d;
		size += p.want[i] * p.want[i];
	}
	assert_true(sqrt(far / size) < 1e-5);
	free(out);
	close_product(&p);
}

static void test_in_place_of_tiles(void **state)
{
	(void)state;
	check_blocks(CPU_TILES_EMULATED);
	for (int isa = CPU_BASE; isa <= (int)cpu_isa_detect(); isa++)
		check_all((enum cpu_isa)isa, CPU_TILES_EMULATED);
}

static void test_in_tiles(void **state)
{
	(void)state;
	unsetenv("DPTRAIN_CPU_TILES");
	unsetenv("DPTRAIN_CPU_ISA");
	if (cpu_tiles_detect(cpu_isa_detect()) != CPU_TILES_AMX) {
		puts("this processor has no tiles: not tested with them");
		skip();
	}
	check_blocks(CPU_TILES_AMX);
	check_all(CPU_AVX512_BF16, CPU_TILES_AMX);
}

static void test_reported(void **state)
{
	(void)state;
	setenv("DPTRAIN_CPU_TILES", "no", 1);
	assert_int_equal(cpu_tiles_detect(cpu_isa_detect()), CPU_TILES_NONE);
	setenv("DPTRAIN_CPU_TILES", "emulate", 1);
	assert_int_equal(cpu_tiles_detect(CPU_BASE), CPU_TILES_EMULATED);
	unsetenv("DPTRAIN_CPU_TILES");
	assert_int_equal(cpu_tiles_detect(CPU_AVX2), CPU_TILES_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_place_of_tiles),
		cmocka_unit_test(test_long_sums),
		cmocka_unit_test(test_in_tiles),
		cmocka_unit_test(test_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
