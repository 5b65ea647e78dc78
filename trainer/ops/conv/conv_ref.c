/* SPDX-License-Identifier: Apache-2.0 */
/* conv_ref.c: direct convolution. For one output pixel and one kernel row r, the inputs under the kernel and the
 * weights of one output channel are both contiguous over (s, c). Every loop processes such rows. */
#include <string.h>

#include "trainer/ops/conv/conv.h"
#include "trainer/ops/ref_kernel.h"

struct conv_ref_sizes {
	int64_t n, h, w, c, k, p, q;
	int64_t kernel, stride, pad;
};

/* One kernel row: offset in an image of x, offset in an output channel of w, and length; 0 outside the image. */
struct kernel_row {
	int64_t x, w, length;
};

static struct conv_ref_sizes read_conv_sizes(const struct node *n, const struct tensor *y)
{
	const struct conv_attr *a = n->attr;
	const int64_t *in = a->in_shape.dim, *out = y->shape.dim;

	return (struct conv_ref_sizes){ .n = in[0],
					.h = in[1],
					.w = in[2],
					.c = in[3],
					.k = out[3],
					.p = out[1],
					.q = out[2],
					.kernel = a->kernel,
					.stride = a->stride,
					.pad = a->pad };
}

static struct kernel_row find_kernel_row(const struct conv_ref_sizes *z, int64_t p, int64_t q, int64_t r)
{
	int64_t h = p * z->stride - z->pad + r, w = q * z->stride - z->pad;
	int64_t first = w < 0 ? -w : 0, end = w + z->kernel > z->w ? z->w - w : z->kernel;

	if (h < 0 || h >= z->h || end <= first)
		return (struct kernel_row){ 0 };
	return (struct kernel_row){ .x = (h * z->w + w + first) * z->c,
				    .w = (r * z->kernel + first) * z->c,
				    .length = (end - first) * z->c };
}

static int run_conv_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	const struct conv_ref_sizes z = read_conv_sizes(node, node->out[0]);
	const double *x = args->in[0], *w = args->in[1];
	double *y = args->out[0];
	int64_t w_each = z.kernel * z.kernel * z.c;

	(void)err;
	memset(y, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < z.n * z.p * z.q; i++) {
		const double *image = x + i / (z.p * z.q) * z.h * z.w * z.c;

		for (int64_t r = 0; r < z.kernel; r++) {
			struct kernel_row row = find_kernel_row(&z, i / z.q % z.p, i % z.q, r);

			for (int64_t k = 0; row.length && k < z.k; k++)
				y[i * z.k + k] += ref_dot(image + row.x, w + k * w_each + row.w, row.length);
		}
	}
	return 0;
}

static int run_conv_dgrad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	const struct conv_ref_sizes z = read_conv_sizes(node, node->in[0]);
	const double *dy = args->in[0], *w = args->in[1];
	double *dx = args->out[0];
	int64_t w_each = z.kernel * z.kernel * z.c;

	(void)err;
	memset(dx, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < z.n * z.p * z.q; i++) {
		double *image = dx + i / (z.p * z.q) * z.h * z.w * z.c;

		for (int64_t r = 0; r < z.kernel; r++) {
			struct kernel_row row = find_kernel_row(&z, i / z.q % z.p, i % z.q, r);

			for (int64_t k = 0; row.length && k < z.k; k++)
				ref_axpy(image + row.x, dy[i * z.k + k], w + k * w_each + row.w, row.length);
		}
	}
	return 0;
}

static int run_conv_wgrad_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *node = state;
	const struct conv_ref_sizes z = read_conv_sizes(node, node->in[1]);
	const double *x = args->in[0], *dy = args->in[1];
	double *dw = args->out[0];
	int64_t w_each = z.kernel * z.kernel * z.c;

	(void)err;
	memset(dw, 0, tensor_bytes(node->out[0]));
	for (int64_t i = 0; i < z.n * z.p * z.q; i++) {
		const double *image = x + i / (z.p * z.q) * z.h * z.w * z.c;

		for (int64_t r = 0; r < z.kernel; r++) {
			struct kernel_row row = find_kernel_row(&z, i / z.q % z.p, i % z.q, r);

			for (int64_t k = 0; row.length && k < z.k; k++)
				ref_axpy(dw + k * w_each + row.w, dy[i * z.k + k], image + row.x, row.length);
		}
	}
	return 0;
}

const struct kernel conv_ref = REF_KERNEL(run_conv_ref);
const struct kernel conv_dgrad_ref = REF_KERNEL(run_conv_dgrad_ref);
const struct kernel conv_wgrad_ref = REF_KERNEL(run_conv_wgrad_ref);
