/* SPDX-License-Identifier: Apache-2.0 */
/* conv_cuda.cu: convolutions by cuDNN, with channels padded as its 16-bit engines require. Otherwise, and in f64,
 * implicit GEMM: products whose operands are the windows of images, read directly from the images: forward y[pixel, K]
 * = window(x)[pixel, RSC] w[K, RSC]^T and its two gradients. */
#include <stdlib.h>

#include "trainer/backends/cuda/product.h"

extern "C" {
#include "trainer/backends/cuda/conv_plan.h"
#include "trainer/ops/conv/conv.h"
}

inline namespace conv_kernels {

/* Copies rows to and from a library's layout: pads them with zeros or truncates them, and converts the type. */
template <typename T, typename D>
__global__ void stage_kernel(const T *from, D *to, int64_t count, int from_columns, int to_columns)
{
	const int64_t stride = (int64_t)gridDim.x * blockDim.x;

	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
		const int c = (int)(i % to_columns);

		to[i] = c < from_columns ? narrow<D>((acc_t<D>)widen(from[i / to_columns * from_columns + c]))
					 : narrow<D>(acc_t<D>(0));
	}
}

struct stage_shape {
	int64_t rows;
	int from_columns, to_columns;
};

template <typename T, typename D>
void stage_rows(const struct kernel_args *a, const T *from, D *to, const struct stage_shape &s)
{
	const int64_t count = s.rows * s.to_columns;
	const unsigned blocks = cuda_blocks(count, BLOCK_THREADS);

	launch(a, dim3(blocks < GRID_BLOCKS_MAX ? blocks : GRID_BLOCKS_MAX), BLOCK_THREADS, stage_kernel<T, D>, from,
	       to, count, s.from_columns, s.to_columns);
}

struct conv_cuda_sizes {
	int n, h, w, c; /* x */
	int k, p, q;	/* y */
	int kernel, stride, pad;
};

struct conv_cuda_sizes read_conv_sizes(const struct node *n, const struct tensor *y)
{
	const struct conv_attr *a = static_cast<const struct conv_attr *>(n->attr);
	const int64_t *in = a->in_shape.dim, *out = y->shape.dim;

	return { (int)in[0],  (int)in[1],  (int)in[2], (int)in[3], (int)out[3],
		 (int)out[1], (int)out[2], a->kernel,  a->stride,  a->pad };
}

/* x at channel c under position (r, s) of the window of output pixel i; 0 outside the image. */
template <typename T>
__device__ acc_t<T> read_under_window(const struct conv_cuda_sizes &z, const T *x, int i, int place, int c)
{
	const int h = i / z.q % z.p * z.stride - z.pad + place / z.kernel;
	const int w = i % z.q * z.stride - z.pad + place % z.kernel;

	if (!inside(h >= 0 && h < z.h && w >= 0 && w < z.w))
		return 0;
	return widen(x[(((int64_t)(i / (z.p * z.q)) * z.h + h) * z.w + w) * z.c + c]);
}

template <typename T> struct conv_forward_product {
	using acc = acc_t<T>;
	static constexpr bool a_along_k = true, b_along_n = false;
	int m, n, k;
	struct conv_cuda_sizes z;
	const T *x, *w;
	T *y;

	__device__ acc a(int i, int l) const
	{
		return read_under_window(z, x, i, l / z.c, l % z.c);
	}

	__device__ acc b(int l, int j) const
	{
		return widen(w[(int64_t)j * k + l]);
	}

	__device__ void put(int i, int j, acc sum) const
	{
		y[(int64_t)i * n + j] = narrow<T>(sum);
	}
};

/* dx[pixel, C] = dy under the mirrored window [pixel, RSK] w[K, RS, C]. */
template <typename T> struct conv_data_product {
	using acc = acc_t<T>;
	static constexpr bool a_along_k = true, b_along_n = true;
	int m, n, k;
	struct conv_cuda_sizes z;
	const T *dy, *w;
	T *dx;

	__device__ acc a(int i, int l) const
	{
		const int place = l / z.k, h = i / z.w % z.h + z.pad - place / z.kernel;
		const int v = i % z.w + z.pad - place % z.kernel, p = h / z.stride, q = v / z.stride;

		if (h % z.stride || v % z.stride || !inside(h >= 0 && v >= 0 && p < z.p && q < z.q))
			return 0;
		return widen(dy[(((int64_t)(i / (z.h * z.w)) * z.p + p) * z.q + q) * z.k + l % z.k]);
	}

	__device__ acc b(int l, int j) const
	{
		return widen(w[((int64_t)(l % z.k) * z.kernel * z.kernel + l / z.k) * z.c + j]);
	}

	__device__ void put(int i, int j, acc sum) const
	{
		dx[(int64_t)i * n + j] = narrow<T>(sum);
	}
};

/* dw[K, RSC] = dy[pixel, K]^T window(x)[pixel, RSC]. */
template <typename T> struct conv_weights_product {
	using acc = acc_t<T>;
	static constexpr bool a_along_k = false, b_along_n = true;
	int m, n, k;
	struct conv_cuda_sizes z;
	const T *x, *dy;
	acc *dw;

	__device__ acc a(int i, int l) const
	{
		return widen(dy[(int64_t)l * m + i]);
	}

	__device__ acc b(int l, int j) const
	{
		return read_under_window(z, x, l, j / z.c, j % z.c);
	}

	__device__ void put(int i, int j, acc sum) const
	{
		dw[(int64_t)i * n + j] = sum;
	}
};

struct product_bounds {
	int64_t m, n, k;
};

struct product_bounds forward_bounds(const struct conv_cuda_sizes &z)
{
	return { (int64_t)z.n * z.p * z.q, z.k, (int64_t)z.kernel * z.kernel * z.c };
}

struct product_bounds data_bounds(const struct conv_cuda_sizes &z)
{
	return { (int64_t)z.n * z.h * z.w, z.c, (int64_t)z.kernel * z.kernel * z.k };
}

struct product_bounds weights_bounds(const struct conv_cuda_sizes &z)
{
	return { z.k, (int64_t)z.kernel * z.kernel * z.c, (int64_t)z.n * z.p * z.q };
}

struct product_bounds pick_product_bounds(enum conv_pass pass, const struct conv_cuda_sizes &z)
{
	return pass == CONV_FORWARD ? forward_bounds(z) : pass == CONV_BY_DATA ? data_bounds(z) : weights_bounds(z);
}

constexpr int channels_each = 8; /* channel multiple that the library's 16-bit engines require */
constexpr size_t room_align = 256;

struct conv_layer {
	const struct node *n;
	struct conv_cuda_sizes z;
	enum conv_pass pass;
	struct dnn_plan *plan;	/* NULL: tiled kernels */
	int channels;		/* channels of images and weights as passed to the library */
	size_t images, weights; /* workspace bytes for padded images and weights; 0: none */
};

size_t round_up_bytes(size_t bytes)
{
	return (bytes + room_align - 1) / room_align * room_align;
}

bool is_low(const struct conv_layer *l)
{
	return l->n->in[0]->dtype == DTYPE_BF16 || l->n->in[0]->dtype == DTYPE_F16;
}

/* Plans the library's implementation; leaves plan NULL if it has none. Weights always get workspace: as parts of other
 * tensors they may be unaligned, and 16-bit gradients are widened afterwards. */
int plan_cudnn_conv(struct conv_layer *l, const struct kernel_env *env, struct err *err)
{
	const struct conv_cuda_sizes &z = l->z;
	const enum dtype type = l->n->in[0]->dtype;
	struct conv_spec s = { l->pass, type, z.n, z.h, z.w, z.c, z.k, z.p, z.q, z.kernel, z.stride, z.pad };
	int rc;

	if (type == DTYPE_F64 || !z.n || (is_low(l) && z.k % channels_each))
		return 0;
	if (is_low(l))
		s.c = (z.c + channels_each - 1) / channels_each * channels_each;
	l->channels = (int)s.c;
	rc = conv_plan_new(&l->plan, env, &s, err);
	if (rc)
		return rc == ERR_UNSUPPORTED ? 0 : rc;
	if (l->channels != z.c)
		l->images = round_up_bytes((size_t)(s.n * s.h * s.w * s.c) * dtype_bytes(type));
	l->weights = round_up_bytes((size_t)(s.k * s.kernel * s.kernel * s.c) * dtype_bytes(type));
	return 0;
}

void release_conv_cuda(void *state)
{
	struct conv_layer *l = static_cast<struct conv_layer *>(state);

	if (l)
		conv_plan_free(l->plan);
	free(l);
}

const char *name_conv_impl(const void *state)
{
	const struct dnn_plan *plan = static_cast<const struct conv_layer *>(state)->plan;

	return !plan ? "tiles" : conv_plan_uses_tensor_cores(plan) ? "cuDNN on tensor cores" : "cuDNN";
}

int prepare_conv_layer(const struct kernel_env *env, struct node *n, enum conv_pass pass, void **ret_state,
		       struct err *err)
{
	const struct tensor *y = pass == CONV_FORWARD ? n->out[0] : pass == CONV_BY_DATA ? n->in[0] : n->in[1];
	struct conv_layer *l = static_cast<struct conv_layer *>(mem_zalloc(sizeof(*l)));
	const size_t each = n->in[0]->dtype == DTYPE_F64 ? sizeof(double) : sizeof(float);
	struct product_bounds b;
	size_t library;
	int rc;

	l->n = n;
	l->z = read_conv_sizes(n, y);
	l->pass = pass;
	b = pick_product_bounds(pass, l->z);
	rc = product_check(n, b.m, b.n, b.k, err);
	if (!rc)
		rc = plan_cudnn_conv(l, env, err);
	if (rc) {
		release_conv_cuda(l);
		return rc;
	}
	library = l->plan ? room_align + l->images + l->weights + conv_plan_workspace(l->plan) : 0;
	n->workspace_bytes = product_workspace(b.m, b.n, b.k, each);
	if (library > n->workspace_bytes)
		n->workspace_bytes = library;
	*ret_state = l;
	return 0;
}

int prepare_conv_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_conv_layer(env, n, CONV_FORWARD, ret_state, err);
}

int prepare_conv_dgrad_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_conv_layer(env, n, CONV_BY_DATA, ret_state, err);
}

int prepare_conv_wgrad_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_conv_layer(env, n, CONV_BY_WEIGHTS, ret_state, err);
}

/* ---- the library ---- */

struct library_workspace {
	void *images, *weights, *library;
};

struct library_workspace place_library_operands(const struct conv_layer *l, const struct kernel_args *a)
{
	char *at = reinterpret_cast<char *>(round_up_bytes(reinterpret_cast<uintptr_t>(a->workspace)));

	return { at, at + l->images, at + l->images + l->weights };
}

bool is_aligned(const void *p)
{
	return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

/* Returns images or weights as the library needs them: in place, or copied to the workspace. */
template <typename T>
const void *stage_operand(const struct conv_layer *l, const struct kernel_args *a, const void *p, int64_t rows,
			  void *room)
{
	if (l->channels == l->z.c && is_aligned(p))
		return p;
	stage_rows(a, static_cast<const T *>(p), static_cast<T *>(room), { rows, l->z.c, l->channels });
	return room;
}

template <typename T> void run_conv_library(const struct conv_layer *l, const struct kernel_args *a)
{
	const struct conv_cuda_sizes &z = l->z;
	const int64_t pixels = (int64_t)z.n * z.h * z.w, filters = (int64_t)z.k * z.kernel * z.kernel;
	const struct library_workspace room = place_library_operands(l, a);
	const bool cut = l->channels != z.c;
	struct conv_operands o = { nullptr, nullptr, nullptr, room.library, a->stream };

	if (l->pass == CONV_BY_DATA)
		o.x = cut ? room.images : a->out[0];
	else
		o.x = stage_operand<T>(l, a, a->in[0], pixels, room.images);
	if (l->pass == CONV_BY_WEIGHTS)
		o.w = cut || is_low(l) || !is_aligned(a->out[0]) ? room.weights : a->out[0];
	else
		o.w = stage_operand<T>(l, a, a->in[1], filters, room.weights);
	o.y = l->pass == CONV_FORWARD ? a->out[0] : l->pass == CONV_BY_DATA ? a->in[0] : a->in[1];
	conv_plan_run(l->plan, l->n, &o);
	if (l->pass == CONV_BY_DATA && cut)
		stage_rows(a, static_cast<const T *>(o.x), cuda_out<T>(a, 0), { pixels, l->channels, z.c });
	if (l->pass == CONV_BY_WEIGHTS && o.w != a->out[0])
		stage_rows(a, static_cast<const T *>(o.w), cuda_out<acc_t<T>>(a, 0), { filters, l->channels, z.c });
}

/* ---- tiles ---- */

template <typename T> void run_conv_tiles(const struct conv_layer *l, const struct kernel_args *a)
{
	const struct conv_cuda_sizes &z = l->z;
	const struct product_bounds b = pick_product_bounds(l->pass, z);
	const int m = (int)b.m, n = (int)b.n, k = (int)b.k;

	if (l->pass == CONV_FORWARD)
		product_run(
			a, conv_forward_product<T>{ m, n, k, z, cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
			a->workspace);
	else if (l->pass == CONV_BY_DATA)
		product_run(a,
			    conv_data_product<T>{ m, n, k, z, cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0) },
			    a->workspace);
	else
		product_run(a,
			    conv_weights_product<T>{ m, n, k, z, cuda_in<T>(a, 0), cuda_in<T>(a, 1),
						     cuda_out<acc_t<T>>(a, 0) },
			    a->workspace);
}

/* Returns true if the library can run: the planner aligns images; only weights may be unaligned parts of other
 * tensors. */
bool can_run_library(const struct conv_layer *l, const struct kernel_args *a)
{
	const void *first = l->pass == CONV_BY_DATA ? a->out[0] : a->in[0];
	const void *second = l->pass == CONV_FORWARD ? a->out[0] : l->pass == CONV_BY_DATA ? a->in[0] : a->in[1];

	return l->plan && is_aligned(first) && is_aligned(second);
}

void run_conv_cuda(void *state, const struct kernel_args *a)
{
	const struct conv_layer *l = static_cast<const struct conv_layer *>(state);

	BY_TYPE(l->n->in[0]->dtype, T, can_run_library(l, a) ? run_conv_library<T>(l, a) : run_conv_tiles<T>(l, a));
}

} // namespace conv_kernels

CUDA_KERNEL_OF(conv, prepare_conv_cuda, run_conv_cuda, release_conv_cuda, name_conv_impl);
CUDA_KERNEL_OF(conv_dgrad, prepare_conv_dgrad_cuda, run_conv_cuda, release_conv_cuda, name_conv_impl);
CUDA_KERNEL_OF(conv_wgrad, prepare_conv_wgrad_cuda, run_conv_cuda, release_conv_cuda, name_conv_impl);
