/* SPDX-License-Identifier: Apache-2.0 */
/* glu_cuda.cu: the gated unit and its gradient, elementwise. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/glu/glu.h"
}

inline namespace glu_kernels
{

/* What both kernels share. f: width of y; step: between rows of gate and up. */
template <typename T> struct glu_operands {
	using A = acc_t<T>;
	const T *gate, *up;
	int64_t f, step;
	A slope, cubic;

	__device__ A sigmoid(A x) const
	{
		return 1 / (1 + exp(-slope * x * (1 + cubic * x * x)));
	}

	__device__ int64_t find(int64_t i) const
	{
		return i / f * step + i % f;
	}
};

template <typename T> glu_operands<T> make_glu_operands(const struct node *n, const struct kernel_args *a, int first)
{
	const struct glu_attr *attr = static_cast<const struct glu_attr *>(n->attr);
	const int64_t f = glu_width(n->in[first], n->in[first + 1]);
	const T *gate = cuda_in<T>(a, first);

	return { gate,
		 n->in[first + 1] ? cuda_in<T>(a, first + 1) : gate + f,
		 f,
		 n->in[first]->shape.dim[1],
		 (acc_t<T>)attr->slope,
		 (acc_t<T>)attr->cubic };
}

template <typename T> struct glu_forward {
	static constexpr int width = vector_width<T>;
	using A = acc_t<T>;
	glu_operands<T> o;
	T *y;

	template <int W> __device__ void at(int64_t i) const
	{
		A x[W], up[W];

		load(x, o.gate + o.find(i));
		load(up, o.up + o.find(i));
		for (int k = 0; k < W; k++)
			x[k] *= o.sigmoid(x[k]) * up[k];
		store(y + i, x);
	}
};

template <typename T> struct glu_backward {
	static constexpr int width = vector_width<T>;
	using A = acc_t<T>;
	glu_operands<T> o;
	const T *dy;
	T *dgate, *dup;

	template <int W> __device__ void at(int64_t i) const
	{
		A d[W], x[W], up[W];

		load(d, dy + i);
		load(x, o.gate + o.find(i));
		load(up, o.up + o.find(i));
		for (int k = 0; k < W; k++) {
			const A s = o.sigmoid(x[k]), du = o.slope * (1 + 3 * o.cubic * x[k] * x[k]);
			const A flat = s * (1 - s); /* 0 where du may overflow */

			up[k] *= d[k] * (s + (flat == 0 ? 0 : x[k] * flat * du));
			x[k] *= d[k] * s;
		}
		store(dgate + o.find(i), up);
		store(dup + o.find(i), x);
	}
};

void run_glu_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, const glu_operands<T> o = make_glu_operands<T>(n, a, 0);
		cuda_each(n, a, glu_forward<T>{ o, cuda_out<T>(a, 0) }, { cuda_count(n->out[0]), o.f }));
}

void run_glu_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, const glu_operands<T> o = make_glu_operands<T>(n, a, 1);
		T *dgate = cuda_out<T>(a, 0);
		cuda_each(n, a,
			  glu_backward<T>{ o, cuda_in<T>(a, 0), dgate, n->out[1] ? cuda_out<T>(a, 1) : dgate + o.f },
			  { cuda_count(n->in[0]), o.f }));
}

} // namespace glu_kernels

CUDA_KERNEL(glu, cuda_prepare, run_glu_cuda);
CUDA_KERNEL(glu_grad, cuda_prepare, run_glu_grad_cuda);
