/* SPDX-License-Identifier: Apache-2.0 */
/* norm_cuda.cu: sums of squares, in f64 and in a fixed order: a block sums a small tensor or a part of a large one,
 * whose parts another block sums. Exact sums use one thread per word. Then the square root of the sum. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/norm/exact.h"
#include "trainer/ops/norm/norm.h"
}

inline namespace norm_kernels {

constexpr int parts_max = 1024;
constexpr int sums_each = 256;	       /* operands per launch */
constexpr int64_t whole_max = 1 << 20; /* most elements that one block sums, concurrently with blocks of other
					* tensors */
constexpr int whole_threads = 512;
constexpr int wholes_each = 160; /* tensors per launch */

/* Sum of squares of the thread's elements: W at a time, starting with its own first ones. */
template <int W, typename T> __device__ double sum_thread_squares(const T *x, int64_t n, int64_t first, int64_t stride)
{
	double sum = 0;

	for (int64_t i = first * W; i < n; i += stride * W) {
		acc_t<T> v[W];

		for (int k = 0; k < W && i + W > n; k++)
			v[k] = inside(i + k < n) ? widen(x[i + k]) : acc_t<T>(0);
		if (inside(i + W <= n))
			load(v, x + i);
		for (int k = 0; k < W; k++)
			sum += (double)v[k] * (double)v[k];
	}
	return sum;
}

template <int W, typename T> __global__ void square_parts(const T *x, int64_t n, double *part)
{
	const double sum = block_sum(sum_thread_squares<W>(x, n, (int64_t)blockIdx.x * blockDim.x + threadIdx.x,
							   (int64_t)gridDim.x * blockDim.x));

	if (threadIdx.x == 0)
		part[blockIdx.x] = sum;
}

/* Small tensors, one block each. */
template <typename T> struct small_tensors {
	int n;
	struct {
		const T *x;
		int64_t count;
		double *sum;
	} of[wholes_each];
};

template <int W, typename T> __global__ void square_wholes(small_tensors<T> w)
{
	const int k = (int)blockIdx.x;
	const double sum = block_sum(sum_thread_squares<W>(w.of[k].x, w.of[k].count, threadIdx.x, blockDim.x));

	if (threadIdx.x == 0)
		*w.of[k].sum = sum;
}

__global__ void sum_parts(const double *part, int n, double *ret)
{
	double sum = 0;

	for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
		sum += part[i];
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		*ret = sum;
}

int prepare_sumsq_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = parts_max * sizeof(double);
	*ret_state = n;
	return 0;
}

template <typename T> void launch_wholes(const struct kernel_args *a, small_tensors<T> *w, bool wide)
{
	const dim3 grid((unsigned)w->n);

	if (w->n && wide)
		launch(a, grid, whole_threads, square_wholes<vector_width<T>, T>, *w);
	else if (w->n)
		launch(a, grid, whole_threads, square_wholes<1, T>, *w);
	w->n = 0;
}

template <typename T>
void queue_whole(const struct kernel_args *args, small_tensors<T> *w, const struct node *n, const struct kernel_args *a)
{
	if (w->n == wholes_each)
		launch_wholes(args, w, true);
	w->of[w->n++] = { cuda_in<T>(a, 0), cuda_count(n->in[0]), cuda_out<double>(a, 0) };
}

template <typename T> void launch_sumsq(const struct node *n, const struct kernel_args *a)
{
	constexpr int width = vector_width<T>;
	const int64_t count = cuda_count(n->in[0]);
	small_tensors<T> alone = {};
	const unsigned wanted = cuda_blocks(count, 8 * BLOCK_THREADS), blocks = wanted < parts_max ? wanted : parts_max;
	double *part = static_cast<double *>(a->workspace);

	if (count <= whole_max) {
		queue_whole(a, &alone, n, a);
		launch_wholes(a, &alone, cuda_aligned(n, a));
		return;
	}
	if (cuda_aligned(n, a))
		launch(a, dim3(blocks), BLOCK_THREADS, square_parts<width, T>, cuda_in<T>(a, 0), count, part);
	else
		launch(a, dim3(blocks), BLOCK_THREADS, square_parts<1, T>, cuda_in<T>(a, 0), count, part);
	launch(a, dim3(1), BLOCK_THREADS, sum_parts, part, (int)blocks, cuda_out<double>(a, 0));
}

void run_sumsq_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_sumsq<T>(n, a));
}

/* Small tensors share a launch. */
template <typename T> void launch_sumsq_many(void *const *states, const struct kernel_args *args, int nodes)
{
	small_tensors<T> w = {};

	for (int i = 0; i < nodes; i++) {
		const struct node *n = cuda_node(states[i]);

		if (cuda_count(n->in[0]) <= whole_max && cuda_aligned(n, &args[i]))
			queue_whole(args, &w, n, &args[i]);
		else
			launch_sumsq<T>(n, &args[i]);
	}
	launch_wholes(args, &w, true);
}

void run_sumsq_many_cuda(void *const *states, const struct kernel_args *args, int n)
{
	BY_TYPE(cuda_node(states[0])->in[0]->dtype, T, launch_sumsq_many<T>(states, args, n));
}

/* ---- squares: one warp per block of elements ---- */

template <typename T> __global__ void square_blocks(const T *x, int64_t n, double *ret)
{
	const int64_t block = (int64_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
	const int64_t begin = block * SQUARES_BLOCK, end = begin + SQUARES_BLOCK < n ? begin + SQUARES_BLOCK : n;
	const int lane = (int)threadIdx.x % WARP;
	double sum = 0;

	for (int64_t i = begin + lane; i < end; i += WARP) {
		const double v = (double)widen(x[i]);

		sum += v * v;
	}
	sum = warp_sum(sum);
	if (lane == 0 && inside(begin < n))
		ret[block] = sum;
}

void run_squares_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t count = cuda_count(n->in[0]);
	const unsigned blocks = cuda_blocks(count, (int64_t)SQUARES_BLOCK * (BLOCK_THREADS / WARP));

	if (blocks)
		BY_TYPE(n->in[0]->dtype, T,
			launch(a, dim3(blocks), BLOCK_THREADS, square_blocks<T>, cuda_in<T>(a, 0), count,
			       cuda_out<double>(a, 0)));
}

/* ---- exact sums: one thread per word ---- */

constexpr int word_threads = (EXACT_WORDS + WARP - 1) / WARP * WARP;
constexpr int exact_parts = 256;

__global__ void add_terms(const double *terms, int64_t n, int64_t *part)
{
	const int word = (int)threadIdx.x;
	int64_t sum = 0;

	for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
		const struct exact_term t = exact_term_of(terms[i]);

		for (int k = 0; k < 3; k++)
			sum += t.word + k == word ? t.add[k] : 0;
	}
	if (inside(word < EXACT_WORDS))
		part[(int64_t)blockIdx.x * EXACT_WORDS + word] = sum;
}

__global__ void add_parts(const int64_t *part, int n, int64_t *words)
{
	const int word = (int)threadIdx.x;
	int64_t sum = 0;

	for (int i = 0; i < n && word < EXACT_WORDS; i++)
		sum += part[i * EXACT_WORDS + word];
	if (inside(word < EXACT_WORDS))
		words[word] = sum;
}

int prepare_exact_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = exact_parts * EXACT_WORDS * sizeof(int64_t);
	*ret_state = n;
	return 0;
}

void run_exact_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t count = cuda_count(n->in[0]);
	const int parts = (int)(count < exact_parts ? count : exact_parts);
	int64_t *part = static_cast<int64_t *>(a->workspace);

	if (parts)
		launch(a, dim3((unsigned)parts), word_threads, add_terms, cuda_in<double>(a, 0), count, part);
	launch(a, dim3(1), word_threads, add_parts, part, parts, cuda_out<int64_t>(a, 0));
}

/* ---- the norm ---- */

struct norm_operands {
	const void *v[sums_each];
	int n;
	bool first;
};

__device__ double finish_norm(double sum, struct norm_attr attr, const step_page *page)
{
	return attr.sum || attr.square ? sum : sqrt(sum) / page->loss_scale;
}

__global__ void add_sums_kernel(struct norm_operands o, double *ret)
{
	double sum = o.first ? 0 : *ret;

	for (int i = 0; i < o.n; i++)
		sum += *static_cast<const double *>(o.v[i]);
	*ret = sum;
}

__global__ void add_words(struct norm_operands o, int64_t *words)
{
	const int word = (int)threadIdx.x;
	int64_t sum = 0;

	if (!inside(word < EXACT_WORDS))
		return;
	sum = o.first ? 0 : words[word];
	for (int i = 0; i < o.n; i++)
		sum += static_cast<const int64_t *>(o.v[i])[word];
	words[word] = sum;
}

__global__ void finish_sum(struct norm_attr attr, const step_page *page, double *ret)
{
	*ret = finish_norm(*ret, attr, page);
}

__global__ void finish_words(const int64_t *words, struct norm_attr attr, const step_page *page, double *ret)
{
	*ret = finish_norm(exact_value(words), attr, page);
}

int prepare_norm_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = EXACT_WORDS * sizeof(int64_t);
	*ret_state = n;
	return 0;
}

void run_norm_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const struct norm_attr attr = n->attr ? *static_cast<const struct norm_attr *>(n->attr) : norm_attr{};
	const bool exact = n->n_in > 0 && n->in[0]->dtype == DTYPE_I64, kept = exact && attr.sum;
	int64_t *words = kept ? cuda_out<int64_t>(a, 0) : static_cast<int64_t *>(a->workspace);

	for (int at = 0; at == 0 || at < n->n_in; at += sums_each) {
		struct norm_operands o = { {}, 0, at == 0 };

		for (; o.n < sums_each && at + o.n < n->n_in; o.n++)
			o.v[o.n] = a->in[at + o.n];
		if (exact)
			launch(a, dim3(1), word_threads, add_words, o, words);
		else
			launch(a, dim3(1), 1, add_sums_kernel, o, cuda_out<double>(a, 0));
	}
	if (exact && !kept)
		launch(a, dim3(1), 1, finish_words, words, attr, a->page, cuda_out<double>(a, 0));
	else if (!exact)
		launch(a, dim3(1), 1, finish_sum, attr, a->page, cuda_out<double>(a, 0));
}

} // namespace norm_kernels

CUDA_KERNEL_MANY(sumsq, prepare_sumsq_cuda, run_sumsq_cuda, run_sumsq_many_cuda);
CUDA_KERNEL(squares, cuda_prepare, run_squares_cuda);
CUDA_KERNEL(exact, prepare_exact_cuda, run_exact_cuda);
CUDA_KERNEL(norm, prepare_norm_cuda, run_norm_cuda);
