/* SPDX-License-Identifier: Apache-2.0 */
/* maxpool_ref.c: the windowed maximum, and its gradient scattered to the maxima. */
#include <math.h>
#include <string.h>

#include "trainer/ops/maxpool/maxpool.h"
#include "trainer/ops/ref_kernel.h"

/* First row or column of the window of output p; may be outside the image. */
static int64_t find_window_start(const struct maxpool_attr *a, int64_t p)
{
	return p * a->stride - a->pad;
}

/* Finds the maximum of one window and channel: returns its position r * kernel + s, *best is its value. x points to the
 * channel in one image. */
static uint8_t find_window_max(const struct maxpool_attr *a, const double *x, int64_t p, int64_t q, double *best)
{
	const int64_t *in = a->in_shape.dim;
	int found = -1;

	for (int place = 0; place < a->kernel * a->kernel; place++) {
		int64_t h = find_window_start(a, p) + place / a->kernel,
			w = find_window_start(a, q) + place % a->kernel;
		double v;

		if (h < 0 || h >= in[1] || w < 0 || w >= in[2])
			continue;
		v = x[(h * in[2] + w) * in[3]];
		if (found < 0 || v > *best || (isnan(v) && !isnan(*best))) {
			found = place;
			*best = v;
		}
	}
	return (uint8_t)found;
}

static int run_maxpool_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct maxpool_attr *a = n->attr;
	const int64_t *in = a->in_shape.dim, *out = n->out[0]->shape.dim;
	const double *x = args->in[0];
	double *y = args->out[0];
	uint8_t *index = args->out[1];

	(void)err;
	for (int64_t i = 0; i < shape_count(&n->out[0]->shape); i++) {
		int64_t c = i % out[3], q = i / out[3] % out[2], p = i / out[3] / out[2] % out[1];
		int64_t image = i / (out[1] * out[2] * out[3]);

		index[i] = find_window_max(a, x + image * in[1] * in[2] * in[3] + c, p, q, &y[i]);
	}
	return 0;
}

static int run_maxpool_grad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct maxpool_attr *a = n->attr;
	const int64_t *in = a->in_shape.dim, *out = n->in[0]->shape.dim;
	const double *dy = args->in[0];
	const uint8_t *index = args->in[1];
	double *dx = args->out[0];

	(void)err;
	memset(dx, 0, tensor_bytes(n->out[0]));
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		int64_t c = i % out[3], q = i / out[3] % out[2], p = i / out[3] / out[2] % out[1];
		int64_t image = i / (out[1] * out[2] * out[3]);
		int64_t h = find_window_start(a, p) + index[i] / a->kernel,
			w = find_window_start(a, q) + index[i] % a->kernel;

		dx[((image * in[1] + h) * in[2] + w) * in[3] + c] += dy[i];
	}
	return 0;
}

const struct kernel maxpool_ref = REF_KERNEL(run_maxpool_ref);
const struct kernel maxpool_grad_ref = REF_KERNEL(run_maxpool_grad_ref);
