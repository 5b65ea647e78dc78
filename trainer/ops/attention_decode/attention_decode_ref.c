/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode_ref.c: attention with a KV cache, one head of one new position at a time. */
#include <math.h>
#include <string.h>

#include "trainer/ops/attention_decode/attention_decode.h"
#include "trainer/ops/ref_kernel.h"

static void store_keys_and_values(const double *qkv, int64_t rows, int64_t c, double *keys, double *values)
{
	for (int64_t r = 0; r < rows; r++) {
		memcpy(keys + r * c, qkv + r * 3 * c + c, (size_t)c * sizeof(double));
		memcpy(values + r * c, qkv + r * 3 * c + 2 * c, (size_t)c * sizeof(double));
	}
}

/* One query of one head: n visible positions; keys and values point at this head's channels. */
struct attend_query {
	const double *q, *keys, *values;
	int64_t n, c, d;
};

static void attend_one_query(const struct attend_query *a, double *y)
{
	double max = -INFINITY, sum = 0, scale = 1 / sqrt((double)a->d);

	for (int64_t j = 0; j < a->n; j++)
		max = fmax(max, ref_dot(a->q, a->keys + j * a->c, a->d) * scale);
	memset(y, 0, (size_t)a->d * sizeof(*y));
	for (int64_t j = 0; j < a->n; j++) {
		double p = exp(ref_dot(a->q, a->keys + j * a->c, a->d) * scale - max);

		sum += p;
		ref_axpy(y, p, a->values + j * a->c, a->d);
	}
	for (int64_t i = 0; i < a->d; i++)
		y[i] /= sum;
}

static int run_attend_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t heads = ((const struct attention_decode_attr *)n->attr)->heads, rows = n->in[0]->shape.dim[0];
	int64_t c = n->in[1]->shape.dim[1], d = c / heads, first = *(const int32_t *)args->in[3];
	double *keys = args->out[1], *values = args->out[2], *y = args->out[0];
	const double *qkv = args->in[0];

	(void)err;
	store_keys_and_values(qkv, rows, c, keys + first * c, values + first * c);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t h = 0; h < heads; h++) {
			struct attend_query q = {
				qkv + r * 3 * c + h * d, keys + h * d, values + h * d, first + r + 1, c, d
			};

			attend_one_query(&q, y + r * c + h * d);
		}
	return 0;
}

const struct kernel attention_decode_ref = REF_KERNEL(run_attend_ref);
