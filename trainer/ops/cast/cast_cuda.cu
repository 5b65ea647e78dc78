/* SPDX-License-Identifier: Apache-2.0 */
/* cast_cuda.cu: conversion between any two float types. */
#include "trainer/backends/cuda/cuda.h"

inline namespace cast_kernels {

template <typename From, typename To> struct convert {
	static constexpr int width = sizeof(From) < sizeof(To) ? vector_width<From> : vector_width<To>;
	const From *x;
	To *y;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<To> v[W];

		load(v, x + i);
		store(y + i, v);
	}
};

template <typename From> void convert_to(const struct node *n, const struct kernel_args *a)
{
	BY_TYPE(n->out[0]->dtype, T,
		cuda_each(n, a, convert<From, T>{ cuda_in<From>(a, 0), cuda_out<T>(a, 0) },
			  { cuda_count(n->in[0]), 0 }));
}

void run_cast_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, convert_to<T>(n, a));
}

} // namespace cast_kernels

CUDA_KERNEL(cast, cuda_prepare, run_cast_cuda);
