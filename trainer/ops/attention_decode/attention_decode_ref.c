/* attention_decode_ref.c: attention to what is kept, one head of one new position at a time. */
#include <math.h>
#include <string.h>

#include "trainer/ops/attention_decode/attention_decode.h"
#include "trainer/ops/ref_kernel.h"

static void keep(const double *qkv, int64_t rows, int64_t c, double *keys, double *values)
{
	for (int64_t r = 0; r < rows; r++) {
		memcpy(keys + r * c, qkv + r * 3 * c + c, (size_t)c * sizeof(double));
		memcpy(values + r * c, qkv + r * 3 * c + 2 * c, (size_t)c * sizeof(double));
	}
}

/* n positions are seen; keys and values point at this head's channels. */
struct query {
	const double *q, *keys, *values;
	int64_t n, c, d;
};

static void answer(const struct query *a, double *y)
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

static int attend_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	int64_t heads = ((const struct attention_decode_attr *)n->attr)->heads, rows = n->in[0]->shape.dim[0];
	int64_t c = n->in[1]->shape.dim[1], d = c / heads, first = *(const int32_t *)args->in[3];
	double *keys = args->out[1], *values = args->out[2], *y = args->out[0];
	const double *qkv = args->in[0];

	(void)err;
	keep(qkv, rows, c, keys + first * c, values + first * c);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t h = 0; h < heads; h++) {
			struct query q = { qkv + r * 3 * c + h * d, keys + h * d, values + h * d, first + r + 1, c, d };

			answer(&q, y + r * c + h * d);
		}
	return 0;
}

const struct kernel attention_decode_ref = REF_KERNEL(attend_run);
