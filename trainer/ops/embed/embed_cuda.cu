/* embed_cuda.cu: the embedding, and its gradient without atomics: the block of a token's first place in the batch adds
 * the rows of all its places, in their order; the blocks of later places find that it is not theirs to do. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/embed/embed.h"
}

namespace {

constexpr int threads = 128;

template <typename T, typename E> struct look_up {
	static constexpr int width = vector_width<T> < vector_width<E> ? vector_width<T> : vector_width<E>;
	const int32_t *tokens;
	const E *wte, *wpe;
	T *x;
	int64_t c, positions;

	template <int W> __device__ void at(int64_t i) const
	{
		const int64_t row = i / c, at = i % c;
		acc_t<T> v[W], p[W];

		load(v, wte + tokens[row] * c + at);
		load(p, wpe + row % positions * c + at);
		for (int k = 0; k < W; k++)
			v[k] += p[k];
		store(x + i, v);
	}
};

template <typename T, typename E> int embed(const struct node *n, const struct kernel_args *a, struct err *err)
{
	const int64_t c = n->out[0]->shape.dim[1];

	return cuda_each(n, a,
			 look_up<T, E>{ cuda_in<int32_t>(a, 0), cuda_in<E>(a, 1), cuda_in<E>(a, 2), cuda_out<T>(a, 0),
					c, n->in[0]->shape.dim[1] },
			 cuda_count(n->out[0]), c, err);
}

int embed_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const bool same = n->in[1]->dtype == n->out[0]->dtype;

	if (n->in[1]->dtype != n->in[2]->dtype)
		return err_set(err, ERR_UNSUPPORTED, "cuda: %s: tables of two types", n->name);
	BY_TYPE(n->out[0]->dtype, T, return same ? embed<T, T>(n, a, err) : embed<T, acc_t<T>>(n, a, err));
}

/* table = more, or zeros. */
template <typename M> struct begin_with {
	static constexpr int width = vector_width<M>;
	const M *more;
	M *table;

	template <int W> __device__ void at(int64_t i) const
	{
		M v[W] = {};

		if (more)
			load(v, more + i);
		store(table + i, v);
	}
};

/* Whether the token stands at any of the places [0, end); the same in every thread. */
__device__ bool stands_before(const int32_t *tokens, int end, int32_t token)
{
	for (int from = 0; from < end; from += threads * 4) {
		int found = 0;

		for (int k = 0; k < 4; k++) {
			const int i = from + k * threads + (int)threadIdx.x;

			found |= inside(i < end) && tokens[i] == token;
		}
		if (block_sum(found))
			return true;
	}
	return false;
}

/* Block (r, y): adds the rows of the token at place r to columns y * threads … of its row. */
template <typename T>
__global__ void add_rows(const T *dx, const int32_t *tokens, int rows, int c, acc_t<T> *dwte)
{
	SHARED(int, same, threads);
	const int first = (int)blockIdx.x, at = (int)(blockIdx.y * threads + threadIdx.x);
	const int32_t token = tokens[first];
	acc_t<T> sum;

	if (stands_before(tokens, first, token))
		return;
	sum = at < c ? dwte[(int64_t)token * c + at] : 0;
	for (int from = first; from < rows; from += threads) {
		const int i = from + (int)threadIdx.x;

		__syncthreads();
		same[threadIdx.x] = inside(i < rows) && tokens[i] == token;
		__syncthreads();
		for (int k = 0; k < threads && at < c; k++)
			if (same[k])
				sum += widen(dx[(int64_t)(from + k) * c + at]);
	}
	if (inside(at < c))
		dwte[(int64_t)token * c + at] = sum;
}

template <typename T> struct add_positions {
	static constexpr int width = vector_width<acc_t<T>>;
	const T *dx;
	acc_t<T> *dwpe;
	int64_t rows, c, positions;

	template <int W> __device__ void at(int64_t i) const
	{
		acc_t<T> sum[W] = {}, v[W];

		for (int64_t r = i / c; i / c < positions && r < rows; r += positions) {
			load(v, dx + r * c + i % c);
			for (int k = 0; k < W; k++)
				sum[k] += v[k];
		}
		store(dwpe + i, sum);
	}
};

template <typename T> int embed_grad(const struct node *n, const struct kernel_args *a, struct err *err)
{
	using M = acc_t<T>;
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1], positions = n->in[1]->shape.dim[1];
	const dim3 grid((unsigned)rows, cuda_blocks(c, threads));
	int rc = cuda_each(n, a, begin_with<M>{ cuda_in<M>(a, 2), cuda_out<M>(a, 0) }, cuda_count(n->out[0]), 0, err);

	if (!rc && rows)
		launch(a, grid, threads, add_rows<T>, cuda_in<T>(a, 0), cuda_in<int32_t>(a, 1), (int)rows, (int)c,
		       cuda_out<M>(a, 0));
	return rc ? rc
		  : cuda_each(n, a, add_positions<T>{ cuda_in<T>(a, 0), cuda_out<M>(a, 1), rows, c, positions },
			      cuda_count(n->out[1]), c, err);
}

int embed_grad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return embed_grad<T>(n, a, err));
}

} // namespace

CUDA_KERNEL(embed, cuda_prepare, embed_run);
CUDA_KERNEL(embed_grad, cuda_prepare, embed_grad_run);
