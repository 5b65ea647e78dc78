/* SPDX-License-Identifier: Apache-2.0 */
/* xent_cuda.cu: softmax cross-entropy: one warp per row, whose losses one block adds in order; and its gradient,
 * elementwise. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/xent/xent.h"
}

inline namespace xent_kernels {

constexpr int rows_each = BLOCK_THREADS / WARP; /* rows per block */

/* Log-sum-exp of a row, by one warp. */
template <typename M> __device__ M compute_log_sum_exp(const M *row, int k)
{
	const int lane = (int)threadIdx.x % WARP;
	M max = row[0], sum = 0;

	for (int j = lane; j < k; j += WARP)
		max = row[j] > max ? row[j] : max;
	max = warp_max(max);
	for (int j = lane; j < k; j += WARP)
		sum += exp(row[j] - max);
	return max + log(warp_sum(sum));
}

template <typename M> __device__ int count_label_rank(const M *row, int k, int label)
{
	int before = 0;

	for (int j = (int)threadIdx.x % WARP; j < k; j += WARP)
		before += j != label && xent_before(row[j], row[label], j < label);
	return warp_sum(before);
}

template <typename M> struct xent_rows {
	const M *logits;
	const int32_t *labels;
	int64_t rows;
	int k, per_row; /* per_row: labels */
	double smoothing;
	const step_page *page;
	M *lse;
	double *parts;
};

/* Computes the results of each row, into parts [rows][XENT_RESULTS]. */
template <typename M> __global__ void row_results(xent_rows<M> r)
{
	const int64_t i = (int64_t)blockIdx.x * rows_each + threadIdx.x / WARP;
	const int lane = (int)threadIdx.x % WARP, k = r.k;
	const double smoothing = r.smoothing;
	const M *row = r.logits + i * k;
	double *parts = r.parts;
	double others = 0;
	struct xent_labels labels;
	int label, rank;
	M of_row;

	if (!inside(i < r.rows))
		return;
	labels = xent_labels_of(r.labels, i, r.per_row, r.page->label_weight);
	label = xent_main_label(labels);
	of_row = compute_log_sum_exp(row, k);
	for (int j = lane; smoothing > 0 && j < k; j += WARP)
		others += (double)of_row - (double)row[j];
	others = warp_sum(others);
	rank = label < 0 ? 0 : count_label_rank(row, k, label);
	if (lane)
		return;
	r.lse[i] = of_row;
	parts += i * XENT_RESULTS;
	parts[XENT_LOSS_SUM] =
		label < 0 ? 0
			  : (1 - smoothing) * ((double)of_row - xent_label_logit((double)row[labels.first],
										 (double)row[labels.second],
										 labels.weight)) +
				    smoothing / k * others;
	parts[XENT_TOP1] = label >= 0 && xent_hits((double)row[label], rank, 1);
	parts[XENT_TOP5] = label >= 0 && xent_hits((double)row[label], rank, 5);
	parts[XENT_COUNT] = label >= 0;
}

__global__ void sum_results(const double *parts, int64_t rows, double *result)
{
	for (int k = 0; k < XENT_RESULTS; k++) {
		double sum = 0;

		for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
			sum += parts[i * XENT_RESULTS + k];
		sum = block_sum(sum);
		if (threadIdx.x == 0)
			result[k] = sum;
	}
}

/* Copies the losses out of the rows' results. */
struct loss_copy {
	static constexpr int width = 1;
	const double *parts;
	double *losses;

	template <int W> __device__ void at(int64_t i) const
	{
		losses[i] = parts[i * XENT_RESULTS + XENT_LOSS_SUM];
	}
};

int prepare_xent_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = (size_t)n->in[0]->shape.dim[0] * XENT_RESULTS * sizeof(double);
	*ret_state = n;
	return 0;
}

void run_xent_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = n->in[0]->shape.dim[0];
	const int k = (int)n->in[0]->shape.dim[1];
	const double smoothing = static_cast<const struct xent_attr *>(n->attr)->label_smoothing;
	double *parts = static_cast<double *>(a->workspace);

	if (rows) {
		BY_MASTER(n->in[0]->dtype, M,
			  launch(a, dim3(cuda_blocks(rows, rows_each)), BLOCK_THREADS, row_results<M>,
				 xent_rows<M>{ cuda_in<M>(a, 0), cuda_in<int32_t>(a, 1), rows, k,
					       (int)n->in[1]->shape.ndim, smoothing, a->page,
					       cuda_out<M>(a, XENT_OUT_LSE), parts }));
	}
	if (rows && n->out[XENT_OUT_LOSSES])
		cuda_each(n, a, loss_copy{ parts, cuda_out<double>(a, XENT_OUT_LOSSES) }, { rows, 0 });
	launch(a, dim3(1), BLOCK_THREADS, sum_results, static_cast<const double *>(parts), rows,
	       cuda_out<double>(a, XENT_OUT_RESULT));
}

template <typename M> struct xent_backward {
	static constexpr int width = vector_width<M>;
	struct xent_attr attr;
	const step_page *page;
	const M *logits, *lse;
	const int32_t *labels;
	M *d;
	int k, per_row;

	template <int W> __device__ void at(int64_t i) const
	{
		const double scale = page->inv_count * page->loss_scale, rest = attr.label_smoothing / k;
		const int64_t row = i / k;
		const struct xent_labels l = xent_labels_of(labels, row, per_row, page->label_weight);
		const int first = (int)(i % k);
		M v[W];

		load(v, logits + i);
		for (int j = 0; j < W; j++) {
			const double target = rest + (1 - attr.label_smoothing) * xent_share(l, first + j);

			v[j] = l.first < 0 ? M(0) : (M)((exp(v[j] - lse[row]) - (M)target) * (M)scale);
		}
		store(d + i, v);
	}
};

void run_xent_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const struct xent_attr attr = *static_cast<const struct xent_attr *>(n->attr);
	const int k = (int)n->in[0]->shape.dim[1];

	BY_MASTER(n->in[0]->dtype, M,
		  cuda_each(n, a,
			    xent_backward<M>{ attr, a->page, cuda_in<M>(a, 0), cuda_in<M>(a, 2), cuda_in<int32_t>(a, 1),
					      cuda_out<M>(a, 0), k, (int)n->in[1]->shape.ndim },
			    { cuda_count(n->in[0]), k }));
}

} // namespace xent_kernels

CUDA_KERNEL(xent, prepare_xent_cuda, run_xent_cuda);
CUDA_KERNEL(xent_grad, cuda_prepare, run_xent_grad_cuda);
