/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode_cuda.cu: attention with a KV cache. The new keys and values are stored first. */
#include "trainer/backends/cuda/attend.h"

extern "C" {
#include "trainer/ops/attention_decode/attention_decode.h"
}

inline namespace attention_decode_kernels {

template <typename T> struct cache_writer {
	static constexpr int width = vector_width<T>;
	const T *qkv;
	const int32_t *first;
	acc_t<T> *keys, *values;
	int64_t c;

	template <int W> __device__ void at(int64_t i) const
	{
		const int64_t row = i / c, at = i % c, to = (*first + row) * c + at;
		acc_t<T> v[W];

		load(v, qkv + row * 3 * c + c + at);
		store(keys + to, v);
		load(v, qkv + row * 3 * c + 2 * c + at);
		store(values + to, v);
	}
};

template <typename T> struct attend_operands {
	const T *qkv;
	const int32_t *first;
	const acc_t<T> *keys, *values;
	T *y;
	int64_t rows; /* heads over all new positions */
	int c, d, heads;
};

template <typename T> __global__ void attend_kernel(attend_operands<T> a)
{
	using A = acc_t<T>;
	SHARED(A, queries, QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp, row = number / a.heads;
	const int at = (int)(number % a.heads) * a.d;
	A *q = queries + warp * HEAD_MAX, out[HEAD_EACH] = {};

	for (int i = lane; i < a.d && number < a.rows; i += WARP)
		q[i] = (A)widen(a.qkv[row * 3 * a.c + at + i]) / (A)sqrt((double)a.d);
	__syncthreads();
	if (!inside(number < a.rows))
		return;
	warp_answer(q, head_rows<A>{ a.keys + at, a.values + at, a.c, (int)(*a.first + row + 1), a.d },
		    [](int) { return A(1); }, out);
	head_put(a.y + row * a.c + at, out, A(1), a.d);
}

int prepare_attend_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	const int64_t heads = static_cast<const struct attention_decode_attr *>(n->attr)->heads;

	*ret_state = n;
	return n->in[1]->shape.dim[1] / heads <= HEAD_MAX
		       ? 0
		       : err_set(err, ERR_UNSUPPORTED, "cuda: %s: head size must be at most %d", n->name, HEAD_MAX);
}

template <typename T> void launch_attend(const struct node *n, const struct kernel_args *a)
{
	using A = acc_t<T>;
	const int heads = (int)static_cast<const struct attention_decode_attr *>(n->attr)->heads,
		  c = (int)n->in[1]->shape.dim[1];
	const int64_t rows = n->in[0]->shape.dim[0];
	const attend_operands<T> q = { cuda_in<T>(a, 0), cuda_in<int32_t>(a, 3), cuda_out<A>(a, 1), cuda_out<A>(a, 2),
				cuda_out<T>(a, 0), rows * heads, c, c / heads, heads };

	cuda_each(n, a, cache_writer<T>{ q.qkv, q.first, cuda_out<A>(a, 1), cuda_out<A>(a, 2), c }, { rows * c, c });
	if (rows)
		launch(a, dim3(cuda_blocks(q.rows, QUERIES_EACH)), QUERIES_EACH * WARP, attend_kernel<T>, q);
}

void run_attend_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_attend<T>(n, a));
}

} // namespace attention_decode_kernels

CUDA_KERNEL(attention_decode, prepare_attend_cuda, run_attend_cuda);
