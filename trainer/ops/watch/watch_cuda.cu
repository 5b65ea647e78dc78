/* SPDX-License-Identifier: Apache-2.0 */
/* watch_cuda.cu: a block processes tiles of one value per thread and stores their bucket numbers in shared memory. Each
 * thread then counts one bucket in a quarter of the tile, without atomics. One block adds the blocks' values in
 * order. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/watch/watch.h"
}

inline namespace watch_kernels {

constexpr int blocks_max = 512;
constexpr int shares = BLOCK_THREADS / WATCH_BUCKETS; /* threads that count the same bucket */
constexpr int share = BLOCK_THREADS / shares;	      /* values of a tile that each of them examines */

struct thread_tally { /* statistics of one thread */
	double sumsq, largest, zeros, nonfinite;
};

/* Updates the statistics and returns the bucket of v; -1: none. */
__device__ int count_watched_value(struct thread_tally *s, double v)
{
	if (!isfinite(v)) {
		s->nonfinite++;
		return -1;
	}
	s->sumsq += v * v;
	s->largest = fmax(s->largest, fabs(v));
	if (v == 0) {
		s->zeros++;
		return -1;
	}
	return watch_bucket(watch_exponent(v));
}

__device__ void store_block_values(const struct thread_tally *s, double *values)
{
	const double sumsq = block_sum(s->sumsq), zeros = block_sum(s->zeros), bad = block_sum(s->nonfinite);
	const double largest = block_max(s->largest);

	if (threadIdx.x == 0) {
		values[WATCH_SUMSQ] = sumsq;
		values[WATCH_LARGEST] = largest;
		values[WATCH_ZEROS] = zeros;
		values[WATCH_NONFINITE] = bad;
	}
}

template <typename T>
__global__ void watch_part_kernel(const T *x, const T *before, int64_t n, const step_page *page, double *part)
{
	SHARED(int, bucket, BLOCK_THREADS);
	SHARED(double, counted, BLOCK_THREADS);
	const int64_t stride = (int64_t)gridDim.x * blockDim.x;
	const int mine = (int)threadIdx.x % WATCH_BUCKETS, from = (int)threadIdx.x / WATCH_BUCKETS * share;
	double *values = part + (int64_t)blockIdx.x * WATCH_VALUES, count = 0;
	struct thread_tally s = { 0, 0, 0, 0 };

	if (!page->watch)
		return;
	for (int64_t tile = (int64_t)blockIdx.x * blockDim.x; tile < n; tile += stride) {
		const int64_t i = tile + threadIdx.x;

		bucket[threadIdx.x] = inside(i < n)
					      ? count_watched_value(&s, (double)(before ? widen(x[i]) - widen(before[i])
											: widen(x[i])))
					      : -1;
		__syncthreads();
		for (int k = 0; k < share; k++)
			count += bucket[from + k] == mine ? 1 : 0;
		__syncthreads();
	}
	counted[threadIdx.x] = count;
	__syncthreads();
	for (int k = 1; threadIdx.x < WATCH_BUCKETS && k < shares; k++)
		count += counted[threadIdx.x + k * WATCH_BUCKETS];
	if (inside(threadIdx.x < WATCH_BUCKETS))
		values[WATCH_BUCKET + threadIdx.x] = count;
	store_block_values(&s, values);
}

__global__ void add_parts(const double *part, int n, const step_page *page, double *values)
{
	const int k = (int)threadIdx.x;
	double sum = 0;

	if (!page->watch || !inside(k < WATCH_VALUES))
		return;
	for (int i = 0; i < n; i++) {
		const double v = part[i * WATCH_VALUES + k];

		sum = k == WATCH_LARGEST ? fmax(sum, v) : sum + v;
	}
	values[k] = sum;
}

int prepare_watch_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = (size_t)blocks_max * WATCH_VALUES * sizeof(double);
	*ret_state = n;
	return 0;
}

template <typename T> void launch_watch(const struct node *n, const struct kernel_args *a)
{
	const int64_t count = cuda_count(n->in[0]);
	const unsigned wanted = cuda_blocks(count, 4 * BLOCK_THREADS);
	const unsigned blocks = wanted < blocks_max ? wanted : blocks_max;
	double *part = static_cast<double *>(a->workspace);

	if (blocks)
		launch(a, dim3(blocks), BLOCK_THREADS, watch_part_kernel<T>, cuda_in<T>(a, 0), cuda_in<T>(a, 1), count,
		       a->page, part);
	launch(a, dim3(1), BLOCK_THREADS, add_parts, part, (int)blocks, a->page, cuda_out<double>(a, 0));
}

void run_watch_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_watch<T>(n, a));
}

template <typename T> struct watch_copy {
	static constexpr int width = vector_width<T>;
	const T *x;
	T *y;
	const step_page *page;

	template <int W> __device__ void at(int64_t i) const
	{
		if (page->watch)
			for (int k = 0; k < W; k++)
				y[i + k] = x[i + k];
	}
};

void run_watch_hold_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, watch_copy<T>{ cuda_in<T>(a, 0), cuda_out<T>(a, 0), a->page },
			  { cuda_count(n->in[0]), 0 }));
}

} // namespace watch_kernels

CUDA_KERNEL(watch, prepare_watch_cuda, run_watch_cuda);
CUDA_KERNEL(watch_hold, cuda_prepare, run_watch_hold_cuda);
