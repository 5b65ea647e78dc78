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
	struct attention_decode_sizes z;

	template <int W> __device__ void at(int64_t i) const
	{
		const int64_t row = i / z.kept, at = i % z.kept, to = (*first + row) * z.kept + at;
		const int64_t from = row * 3 * z.c + at / z.d * z.group * z.d + at % z.d;
		acc_t<T> v[W];

		load(v, qkv + from + z.c);
		store(keys + to, v);
		load(v, qkv + from + 2 * z.c);
		store(values + to, v);
	}
};

template <typename T> struct attend_operands {
	const T *qkv;
	const int32_t *first;
	const acc_t<T> *keys, *values;
	T *y;
	int64_t queries; /* heads over all new positions */
	struct attention_decode_sizes z;
	struct attention_decode_attr attr;
};

template <typename T> __global__ void attend_kernel(attend_operands<T> a)
{
	using A = acc_t<T>;
	SHARED(A, queries, QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp, row = number / a.z.heads;
	const int64_t head = number % a.z.heads, at = row * 3 * a.z.c + head * a.z.d, shared = head / a.z.group * a.z.d;
	const int64_t position = *a.first + row, begin = attention_decode_begin(&a.attr, position);
	const int64_t kept = begin * a.z.kept + shared;
	A *q = queries + warp * HEAD_MAX, out[HEAD_EACH] = {};

	for (int i = lane; i < a.z.d && number < a.queries; i += WARP)
		q[i] = (A)widen(a.qkv[at + i]) / (A)sqrt((double)a.z.d);
	__syncthreads();
	if (!inside(number < a.queries))
		return;
	warp_answer(q,
		    head_rows<A>{ a.keys + kept, a.values + kept, a.z.kept, (int)(position + 1 - begin), (int)a.z.d,
				  a.attr.cap },
		    [](int) { return A(1); }, out);
	head_put(a.y + row * a.z.c + head * a.z.d, out, A(1), (int)a.z.d);
}

int prepare_attend_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	*ret_state = n;
	return attention_decode_sizes(n).d <= HEAD_MAX
		       ? 0
		       : err_set(err, ERR_UNSUPPORTED, "cuda: %s: head size must be at most %d", n->name, HEAD_MAX);
}

template <typename T> void launch_attend(const struct node *n, const struct kernel_args *a)
{
	using A = acc_t<T>;
	const struct attention_decode_sizes z = attention_decode_sizes(n);
	const attend_operands<T> q = { cuda_in<T>(a, 0),
				       cuda_in<int32_t>(a, 3),
				       cuda_out<A>(a, 1),
				       cuda_out<A>(a, 2),
				       cuda_out<T>(a, 0),
				       z.rows * z.heads,
				       z,
				       *static_cast<const struct attention_decode_attr *>(n->attr) };

	cuda_each(n, a, cache_writer<T>{ q.qkv, q.first, cuda_out<A>(a, 1), cuda_out<A>(a, 2), z },
		  { z.rows * z.kept, z.d });
	if (z.rows)
		launch(a, dim3(cuda_blocks(q.queries, QUERIES_EACH)), QUERIES_EACH * WARP, attend_kernel<T>, q);
}

void run_attend_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_attend<T>(n, a));
}

} // namespace attention_decode_kernels

CUDA_KERNEL(attention_decode, prepare_attend_cuda, run_attend_cuda);
