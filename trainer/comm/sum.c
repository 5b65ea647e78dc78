/* sum.c: works in blocks that stay in the first-level cache, so that every source is read once and every destination
 * written once, whatever the number of ranks. */
#pragma GCC optimize("O3")

#include "trainer/comm/sum.h"

#include <string.h>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLONED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONED
#endif

#define BLOCK_ELEMENTS 1024

union block {
	double f64[BLOCK_ELEMENTS];
	float f32[BLOCK_ELEMENTS];
	int64_t i64[BLOCK_ELEMENTS];
	uint16_t bf16[BLOCK_ELEMENTS];
};

CLONED static void add_f64(double *acc, const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		acc[i] += x[i];
}

CLONED static void add_f32(float *acc, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		acc[i] += x[i];
}

/* Unsigned, because a sum that wraps must not be undefined. */
CLONED static void add_i64(uint64_t *acc, const uint64_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		acc[i] += x[i];
}

CLONED static void widen_bf16(float *to, const uint16_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		union {
			uint32_t u;
			float f;
		} v = { .u = (uint32_t)x[i] << 16 };

		to[i] = v.f;
	}
}

CLONED static void add_bf16(float *acc, const uint16_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		union {
			uint32_t u;
			float f;
		} v = { .u = (uint32_t)x[i] << 16 };

		acc[i] += v.f;
	}
}

/* To nearest even; a NaN keeps a set bit after the cut. */
CLONED static void round_bf16(uint16_t *to, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		union {
			float f;
			uint32_t u;
		} v = { .f = x[i] };
		uint32_t rounded = (v.u + 0x7fffu + ((v.u >> 16) & 1)) >> 16;

		to[i] = (uint16_t)((v.u & 0x7fffffffu) > 0x7f800000u ? (v.u >> 16) | 0x40u : rounded);
	}
}

static const char *source(const struct sum_job *j, int k, size_t byte)
{
	return (const char *)j->from[k] + byte;
}

static void sum_block_bf16(const struct sum_job *j, size_t byte, size_t n, union block *out)
{
	float acc[BLOCK_ELEMENTS];

	widen_bf16(acc, (const uint16_t *)source(j, 0, byte), n);
	for (int k = 1; k < j->n_from; k++)
		add_bf16(acc, (const uint16_t *)source(j, k, byte), n);
	round_bf16(out->bf16, acc, n);
}

static void sum_block(const struct sum_job *j, size_t byte, size_t n, union block *out)
{
	if (j->dtype == DTYPE_BF16) {
		sum_block_bf16(j, byte, n, out);
		return;
	}
	memcpy(out, source(j, 0, byte), n * dtype_bytes(j->dtype));
	for (int k = 1; k < j->n_from; k++) {
		const char *x = source(j, k, byte);

		if (j->dtype == DTYPE_F32)
			add_f32(out->f32, (const float *)x, n);
		else if (j->dtype == DTYPE_F64)
			add_f64(out->f64, (const double *)x, n);
		else
			add_i64((uint64_t *)out->i64, (const uint64_t *)x, n);
	}
}

bool sum_takes(enum dtype t)
{
	return t == DTYPE_F64 || t == DTYPE_F32 || t == DTYPE_BF16 || t == DTYPE_I64;
}

void sum_run(const struct sum_job *j)
{
	size_t each = dtype_bytes(j->dtype);
	union block out;

	for (size_t at = 0; at < j->count; at += BLOCK_ELEMENTS) {
		size_t n = j->count - at < BLOCK_ELEMENTS ? j->count - at : BLOCK_ELEMENTS;

		sum_block(j, at * each, n, &out);
		for (int k = 0; k < j->n_to; k++)
			memcpy((char *)j->to[k] + at * each, &out, n * each);
	}
}
