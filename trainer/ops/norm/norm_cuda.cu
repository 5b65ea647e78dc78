/* norm_cuda.cu: sums of squares, in f64 and in a fixed order: a block sums a part of the tensor, one block the parts;
 * and the root of their sum. */
#include "trainer/backends/cuda/cuda.h"

namespace {

constexpr int parts_max = 1024;
constexpr int sums_each = 256; /* operands of one launch */

template <int W, typename T> __global__ void square_parts(const T *x, int64_t n, double *part)
{
	const int64_t stride = (int64_t)gridDim.x * blockDim.x * W;
	double sum = 0;

	for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * W; i < n; i += stride) {
		acc_t<T> v[W];

		for (int k = 0; k < W && i + W > n; k++)
			v[k] = i + k < n ? widen(x[i + k]) : acc_t<T>(0);
		if (i + W <= n)
			load(v, x + i);
		for (int k = 0; k < W; k++)
			sum += (double)v[k] * (double)v[k];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0)
		part[blockIdx.x] = sum;
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

int sumsq_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = parts_max * sizeof(double);
	*ret_state = n;
	return 0;
}

template <typename T> int sumsq(const struct node *n, const struct kernel_args *a, struct err *err)
{
	constexpr int width = vector_width<T>;
	const int64_t count = cuda_count(n->in[0]);
	const unsigned wanted = cuda_blocks(count, 8 * BLOCK_THREADS), blocks = wanted < parts_max ? wanted : parts_max;
	double *part = static_cast<double *>(a->workspace);

	if (blocks && cuda_aligned(n, a))
		launch(a, dim3(blocks), BLOCK_THREADS, square_parts<width, T>, cuda_in<T>(a, 0), count, part);
	else if (blocks)
		launch(a, dim3(blocks), BLOCK_THREADS, square_parts<1, T>, cuda_in<T>(a, 0), count, part);
	launch(a, dim3(1), BLOCK_THREADS, sum_parts, part, (int)blocks, cuda_out<double>(a, 0));
	return cuda_launched(n, err);
}

int sumsq_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return sumsq<T>(n, a, err));
}

struct operands {
	const double *v[sums_each];
	int n;
	bool first, last, root;
};

__global__ void add_up(struct operands o, const step_page *page, double *ret)
{
	double sum = o.first ? 0 : *ret;

	for (int i = 0; i < o.n; i++)
		sum += *o.v[i];
	*ret = o.last && o.root ? sqrt(sum) / page->loss_scale : sum;
}

int norm_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	for (int at = 0; at == 0 || at < n->n_in; at += sums_each) {
		struct operands o = { {}, 0, at == 0, at + sums_each >= n->n_in, !n->attr };

		for (; o.n < sums_each && at + o.n < n->n_in; o.n++)
			o.v[o.n] = cuda_in<double>(a, at + o.n);
		launch(a, dim3(1), 1, add_up, o, a->page, cuda_out<double>(a, 0));
	}
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(sumsq, sumsq_prepare, sumsq_run);
CUDA_KERNEL(norm, cuda_prepare, norm_run);
