/* conv_cuda.cu: convolutions as products whose operands are images under the kernel's window, taken straight from the
 * images (implicit GEMM): forward y[pixel, K] = window(x)[pixel, RSC] w[K, RSC]^T and its two gradients. */
#include "trainer/backends/cuda/product.h"

extern "C" {
#include "trainer/ops/conv/conv.h"
}

namespace {

struct sizes {
	int n, h, w, c; /* x */
	int k, p, q;	/* y */
	int kernel, stride, pad;
};

struct sizes sizes_of(const struct node *n, const struct tensor *y)
{
	const struct conv_attr *a = static_cast<const struct conv_attr *>(n->attr);
	const int64_t *in = a->in_shape.dim, *out = y->shape.dim;

	return { (int)in[0],  (int)in[1],  (int)in[2], (int)in[3], (int)out[3],
		 (int)out[1], (int)out[2], a->kernel,  a->stride,  a->pad };
}

/* x at channel c under place (r, s) of the window of output pixel i; 0 outside the image. */
template <typename T> __device__ acc_t<T> under(const struct sizes &z, const T *x, int i, int place, int c)
{
	const int h = i / z.q % z.p * z.stride - z.pad + place / z.kernel;
	const int w = i % z.q * z.stride - z.pad + place % z.kernel;

	if (h < 0 || h >= z.h || w < 0 || w >= z.w)
		return 0;
	return widen(x[(((int64_t)(i / (z.p * z.q)) * z.h + h) * z.w + w) * z.c + c]);
}

template <typename T> struct forward {
	using acc = acc_t<T>;
	static constexpr bool a_along_k = true, b_along_n = false;
	int m, n, k;
	struct sizes z;
	const T *x, *w;
	T *y;

	__device__ acc a(int i, int l) const
	{
		return under(z, x, i, l / z.c, l % z.c);
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

/* dx[pixel, C] = dy under the reflected window [pixel, RSK] w[K, RS, C]. */
template <typename T> struct by_data {
	using acc = acc_t<T>;
	static constexpr bool a_along_k = true, b_along_n = true;
	int m, n, k;
	struct sizes z;
	const T *dy, *w;
	T *dx;

	__device__ acc a(int i, int l) const
	{
		const int place = l / z.k, h = i / z.w % z.h + z.pad - place / z.kernel;
		const int v = i % z.w + z.pad - place % z.kernel, p = h / z.stride, q = v / z.stride;

		if (h < 0 || v < 0 || h % z.stride || v % z.stride || p >= z.p || q >= z.q)
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
template <typename T> struct by_weights {
	using acc = acc_t<T>;
	static constexpr bool a_along_k = false, b_along_n = true;
	int m, n, k;
	struct sizes z;
	const T *x, *dy;
	acc *dw;

	__device__ acc a(int i, int l) const
	{
		return widen(dy[(int64_t)l * m + i]);
	}

	__device__ acc b(int l, int j) const
	{
		return under(z, x, l, j / z.c, j % z.c);
	}

	__device__ void put(int i, int j, acc sum) const
	{
		dw[(int64_t)i * n + j] = sum;
	}
};

struct bounds {
	int64_t m, n, k;
};

int prepare(struct node *n, const struct bounds &b, void **ret_state, struct err *err)
{
	const size_t each = n->in[0]->dtype == DTYPE_F64 ? sizeof(double) : sizeof(float);

	n->workspace_bytes = product_workspace(b.m, b.n, b.k, each);
	*ret_state = n;
	return product_check(n, b.m, b.n, b.k, err);
}

struct bounds forward_bounds(const struct sizes &z)
{
	return { (int64_t)z.n * z.p * z.q, z.k, (int64_t)z.kernel * z.kernel * z.c };
}

struct bounds data_bounds(const struct sizes &z)
{
	return { (int64_t)z.n * z.h * z.w, z.c, (int64_t)z.kernel * z.kernel * z.k };
}

struct bounds weights_bounds(const struct sizes &z)
{
	return { z.k, (int64_t)z.kernel * z.kernel * z.c, (int64_t)z.n * z.p * z.q };
}

int conv_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	return prepare(n, forward_bounds(sizes_of(n, n->out[0])), ret_state, err);
}

int dgrad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	return prepare(n, data_bounds(sizes_of(n, n->in[0])), ret_state, err);
}

int wgrad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	return prepare(n, weights_bounds(sizes_of(n, n->in[1])), ret_state, err);
}

int conv_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->out[0]);
	const struct bounds b = forward_bounds(z);

	BY_TYPE(n->in[0]->dtype, T,
		product_run(a,
			    forward<T>{ (int)b.m, (int)b.n, (int)b.k, z, cuda_in<T>(a, 0), cuda_in<T>(a, 1),
					cuda_out<T>(a, 0) },
			    a->workspace));
	return cuda_launched(n, err);
}

int dgrad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->in[0]);
	const struct bounds b = data_bounds(z);

	BY_TYPE(n->in[0]->dtype, T,
		product_run(a,
			    by_data<T>{ (int)b.m, (int)b.n, (int)b.k, z, cuda_in<T>(a, 0), cuda_in<T>(a, 1),
					cuda_out<T>(a, 0) },
			    a->workspace));
	return cuda_launched(n, err);
}

int wgrad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->in[1]);
	const struct bounds b = weights_bounds(z);

	BY_TYPE(n->in[0]->dtype, T,
		product_run(a,
			    by_weights<T>{ (int)b.m, (int)b.n, (int)b.k, z, cuda_in<T>(a, 0), cuda_in<T>(a, 1),
					   cuda_out<acc_t<T>>(a, 0) },
			    a->workspace));
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(conv, conv_prepare, conv_run);
CUDA_KERNEL(conv_dgrad, dgrad_prepare, dgrad_run);
CUDA_KERNEL(conv_wgrad, wgrad_prepare, wgrad_run);
