/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c: adds block by block. A block fits into the first-level cache, so that every source is read once and every
 * destination written once, for any number of ranks. */
#pragma GCC optimize("O3")

#include "trainer/comm/sum.h"

#include <string.h>

#include "trainer/graph/reduction_tree.h"

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

__extension__ typedef _Float16 half;

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

/* `to` may be x or y. */
CLONED static void add_two_f64(double *to, const double *x, const double *y, size_t n)
{
#pragma GCC ivdep
	for (size_t i = 0; i < n; i++)
		to[i] = x[i] + y[i];
}

CLONED static void add_two_f32(float *to, const float *x, const float *y, size_t n)
{
#pragma GCC ivdep
	for (size_t i = 0; i < n; i++)
		to[i] = x[i] + y[i];
}

/* Unsigned, because a sum that wraps must not be undefined. */
CLONED static void add_two_i64(uint64_t *to, const uint64_t *x, const uint64_t *y, size_t n)
{
#pragma GCC ivdep
	for (size_t i = 0; i < n; i++)
		to[i] = x[i] + y[i];
}

/* Stores the sum in both; reading it again to copy it would take as long as adding. */
CLONED static void add_two_into_two_f32(float *to, float *other, const float *x, const float *y, size_t n)
{
#pragma GCC ivdep
	for (size_t i = 0; i < n; i++)
		to[i] = other[i] = x[i] + y[i];
}

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

CLONED static void add_f16(float *acc, const half *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		acc[i] += (float)x[i];
}

CLONED static void add_two_f16(half *to, const half *x, const half *y, size_t n)
{
#pragma GCC ivdep
	for (size_t i = 0; i < n; i++)
		to[i] = (half)((float)x[i] + (float)y[i]);
}

static const char *source_at(const struct sum_job *j, int k, size_t byte)
{
	return (const char *)j->from[k] + byte;
}

static void sum_block_bf16(const struct sum_job *j, size_t byte, size_t n, union block *out)
{
	float acc[BLOCK_ELEMENTS];

	widen_bf16(acc, (const uint16_t *)source_at(j, 0, byte), n);
	for (int k = 1; k < j->n_from; k++)
		add_bf16(acc, (const uint16_t *)source_at(j, k, byte), n);
	round_bf16(out->bf16, acc, n);
}

static void sum_block_f16(const struct sum_job *j, size_t byte, size_t n, void *out)
{
	float acc[BLOCK_ELEMENTS] = { 0 };
	half *to = out;

	for (int k = 0; k < j->n_from; k++)
		add_f16(acc, (const half *)source_at(j, k, byte), n);
	for (size_t i = 0; i < n; i++)
		to[i] = (half)acc[i];
}

static void add_into(void *acc, const void *x, size_t n, enum dtype dtype)
{
	if (dtype == DTYPE_F32)
		add_f32(acc, x, n);
	else if (dtype == DTYPE_F64)
		add_f64(acc, x, n);
	else
		add_i64(acc, x, n); /* unsigned: the same storage */
}

static void sum_block(const struct sum_job *j, size_t byte, size_t n, union block *out)
{
	if (j->dtype == DTYPE_BF16 || j->dtype == DTYPE_F16) {
		if (j->dtype == DTYPE_BF16)
			sum_block_bf16(j, byte, n, out);
		else
			sum_block_f16(j, byte, n, out);
		return;
	}
	memcpy(out, source_at(j, 0, byte), n * dtype_bytes(j->dtype));
	for (int k = 1; k < j->n_from; k++)
		add_into(out, source_at(j, k, byte), n, j->dtype);
}

static void add_two(void *to, const void *x, const void *y, size_t n, enum dtype dtype)
{
	if (dtype == DTYPE_F32)
		add_two_f32(to, x, y, n);
	else if (dtype == DTYPE_F64)
		add_two_f64(to, x, y, n);
	else if (dtype == DTYPE_F16)
		add_two_f16(to, x, y, n);
	else
		add_two_i64(to, x, y, n); /* unsigned: the same storage */
}

static bool is_of_two(const struct sum_job *j)
{
	return j->n_from == 2 && j->dtype != DTYPE_BF16;
}

/* Two ranks: adds straight into the block of the first destination, which may be a source. */
static const void *sum_two(const struct sum_job *j, size_t byte, size_t n)
{
	void *to = (char *)j->to[0] + byte;

	add_two(to, source_at(j, 0, byte), source_at(j, 1, byte), n, j->dtype);
	return to;
}

#define BOTTLENECK_ELEMENTS 256 /* elements per block, so that all waiting sums stay in the cache */

union tree_block {
	half f16[BOTTLENECK_ELEMENTS];
	double f64[BOTTLENECK_ELEMENTS];
	float f32[BOTTLENECK_ELEMENTS];
	int64_t i64[BOTTLENECK_ELEMENTS];
};

/* Adds a block along the tree. Nodes that wait for their right neighbour are on a stack: terms are read in place, sums
 * have their own room. The last sum goes to the first destination, which may be a source. */
static const void *sum_tree(const struct sum_job *j, size_t byte, size_t n)
{
	const void *waits[REDUCTION_TREE_ROOTS_MAX + 1];
	union tree_block room[REDUCTION_TREE_ROOTS_MAX];
	int top = 0;

	for (int k = 0; k < j->n_from; k++) {
		waits[top] = source_at(j, k, byte);
		for (int i = 0; i < j->adds[k]; i++, top--) {
			const bool is_last = k == j->n_from - 1 && top == 1;
			void *to = is_last ? (char *)j->to[0] + byte : (void *)&room[top - 1];

			add_two(to, waits[top - 1], waits[top], n, j->dtype);
			waits[top - 1] = to;
		}
		top++;
	}
	return waits[0];
}

bool sum_takes(enum dtype t)
{
	return t == DTYPE_F64 || t == DTYPE_F32 || t == DTYPE_BF16 || t == DTYPE_F16 || t == DTYPE_I64;
}

/* Computes the sum of a block; returns where it is stored. */
static const void *sum_once(const struct sum_job *j, size_t byte, size_t n, union block *scratch)
{
	if (is_of_two(j))
		return sum_two(j, byte, n);
	if (j->adds)
		return sum_tree(j, byte, n);
	sum_block(j, byte, n, scratch);
	return scratch;
}

void sum_run(const struct sum_job *j)
{
	const size_t each = dtype_bytes(j->dtype),
		     block = j->adds && j->n_from > 2 ? BOTTLENECK_ELEMENTS : BLOCK_ELEMENTS;
	union block scratch;

	if (is_of_two(j) && j->n_to == 2 && j->dtype == DTYPE_F32) {
		add_two_into_two_f32(j->to[0], j->to[1], j->from[0], j->from[1], j->count);
		return;
	}
	for (size_t at = 0; at < j->count; at += block) {
		const size_t n = j->count - at < block ? j->count - at : block;
		const void *sum = sum_once(j, at * each, n, &scratch);

		for (int k = 0; k < j->n_to; k++)
			if (sum != (char *)j->to[k] + at * each)
				memcpy((char *)j->to[k] + at * each, sum, n * each);
	}
}
