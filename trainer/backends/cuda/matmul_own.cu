/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_own.cu: matrix products by the tiles of product.h, where no library can be used. */
#include "trainer/backends/cuda/product.h"

extern "C" {
#include "trainer/backends/cuda/cuda_matmul.h"
}

inline namespace matmul_own_kernels {

/* The index that is contiguous in memory is known at compile time. */
template <typename T, typename D, bool a_along, bool b_along> struct matrix_product {
	using acc = acc_t<D>;
	static constexpr bool a_along_k = a_along, b_along_n = b_along;
	int m, n, k;
	const T *a_at, *b_at;
	D *d;
	int64_t a_pitch, b_pitch, d_pitch; /* elements between rows in memory */
	const acc *bias;		   /* NULL: no bias */
	bool adds;

	__device__ acc a(int i, int l) const
	{
		return (acc)widen(a_along ? a_at[i * a_pitch + l] : a_at[l * a_pitch + i]);
	}

	__device__ acc b(int l, int j) const
	{
		return (acc)widen(b_along ? b_at[l * b_pitch + j] : b_at[j * b_pitch + l]);
	}

	__device__ void put(int i, int j, acc sum) const
	{
		D *to = d + i * d_pitch + j;

		if (bias)
			sum += bias[j];
		*to = narrow<D>(adds ? sum + (acc)widen(*to) : sum);
	}
};

/* Arguments for kernel helpers, which use only the stream. */
struct kernel_args make_stream_args(const struct matmul_operands *o)
{
	struct kernel_args a = {};

	a.stream = o->stream;
	return a;
}

template <typename T, typename D, bool a_along, bool b_along>
void launch_matrix_product(const struct matmul_spec *s, const struct matmul_operands *o)
{
	const struct kernel_args args = make_stream_args(o);
	const matrix_product<T, D, a_along, b_along> p = { (int)s->m,
							   (int)s->n,
							   (int)s->k,
							   static_cast<const T *>(o->a),
							   static_cast<const T *>(o->b),
							   static_cast<D *>(o->d),
							   s->a_pitch,
							   s->b_pitch,
							   s->d_pitch,
							   s->bias ? static_cast<const acc_t<D> *>(o->bias) : nullptr,
							   o->adds };

	product_run(&args, p, o->workspace);
}

template <typename T, typename D> void launch_matmul_types(const struct matmul_spec *s, const struct matmul_operands *o)
{
	if (s->a_turned)
		s->b_turned ? launch_matrix_product<T, D, false, false>(s, o)
			    : launch_matrix_product<T, D, false, true>(s, o);
	else
		s->b_turned ? launch_matrix_product<T, D, true, false>(s, o)
			    : launch_matrix_product<T, D, true, true>(s, o);
}

/* Adds the bias, element by element in row order. */
template <typename D> __global__ void add_bias(D *d, int64_t pitch, const acc_t<D> *bias, int64_t count, int64_t n)
{
	const int64_t stride = (int64_t)gridDim.x * blockDim.x;

	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
		D *to = d + i / n * pitch + i % n;

		*to = narrow<D>(widen(*to) + bias[i % n]);
	}
}

template <typename D> __global__ void round_bias(D *to, const acc_t<D> *bias, int64_t n)
{
	const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (inside(i < n))
		to[i] = narrow<D>(bias[i]);
}

} // namespace matmul_own_kernels

extern "C" size_t matmul_own_workspace(const struct matmul_spec *s)
{
	return product_workspace(s->m, s->n, s->k, s->in == DTYPE_F64 ? sizeof(double) : sizeof(float));
}

extern "C" void matmul_own_run(const struct matmul_spec *s, const struct matmul_operands *o)
{
	BY_TYPE(s->in, T, s->out == s->in ? launch_matmul_types<T, T>(s, o) : launch_matmul_types<T, acc_t<T>>(s, o));
}

extern "C" void matmul_own_bias(const struct matmul_spec *s, const struct matmul_operands *o)
{
	const struct kernel_args args = make_stream_args(o);
	const int64_t count = s->m * s->n;
	const unsigned blocks = cuda_blocks(count, BLOCK_THREADS);

	BY_TYPE(s->out, D,
		launch(&args, dim3(blocks < GRID_BLOCKS_MAX ? blocks : GRID_BLOCKS_MAX), BLOCK_THREADS, add_bias<D>,
		       static_cast<D *>(o->d), s->d_pitch, static_cast<const acc_t<D> *>(o->bias), count, s->n));
}

extern "C" void matmul_own_round(const struct matmul_spec *s, const struct matmul_operands *o, void *to)
{
	const struct kernel_args args = make_stream_args(o);

	BY_TYPE(s->out, D,
		launch(&args, dim3(cuda_blocks(s->n, BLOCK_THREADS)), BLOCK_THREADS, round_bias<D>,
		       static_cast<D *>(to), static_cast<const acc_t<D> *>(o->bias), s->n));
}
