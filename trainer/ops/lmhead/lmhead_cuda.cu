/* lmhead_cuda.cu: the classifier with its loss, a block of rows at a time: their logits lie in the workspace and become
 * their gradients there, from which dx and dw are made at once. */
#include "trainer/backends/cuda/product.h"

extern "C" {
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"
}

namespace {

constexpr int64_t logits_bytes = 256 << 20; /* about what the logits of one block of rows take */

struct sizes {
	int64_t rows, c, v;
	int64_t each; /* rows of a block */
	size_t acc;
};

struct sizes sizes_of(const struct node *n)
{
	struct sizes z = { n->in[0]->shape.dim[0], n->in[0]->shape.dim[1], n->in[1]->shape.dim[0], 0,
			   n->in[0]->dtype == DTYPE_F64 ? sizeof(double) : sizeof(float) };
	const int64_t fit = logits_bytes / (z.v * (int64_t)z.acc) / TILE * TILE;

	z.each = fit < TILE ? TILE : fit;
	z.each = z.rows < z.each ? z.rows : z.each;
	return z;
}

size_t round_up(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

size_t logits_room(const struct sizes &z)
{
	return round_up((size_t)z.each * (size_t)z.v * z.acc);
}

size_t losses_room(const struct sizes &z)
{
	return round_up((size_t)z.rows * 2 * sizeof(double));
}

/* Workspace: logits, loss and count of each row, parts of products. */
size_t product_room(const struct sizes &z, const struct node *n)
{
	size_t most = product_workspace(z.each, z.v, z.c, z.acc);
	const size_t dx = product_workspace(z.each, z.c, z.v, z.acc);
	const size_t dw = product_workspace(z.v, z.c, z.each, z.acc);

	if (n->out[LMHEAD_DX] && dx > most)
		most = dx;
	if (n->out[LMHEAD_DW] && dw > most)
		most = dw;
	return most;
}

int lmhead_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	const struct sizes z = sizes_of(n);

	n->workspace_bytes = logits_room(z) + losses_room(z) + product_room(z, n);
	*ret_state = n;
	return product_check(n, z.v, z.c, z.rows, err);
}

/* A block a row: its loss, and its logits turned into scale (softmax - onehot) where gradients are wanted. */
template <typename M> struct rows_of_losses {
	M *logits;
	const int32_t *targets;
	double *losses; /* [rows][2] */
	const step_page *page;
	int v;
	bool gradients;
};

template <typename M> __device__ M block_max(M v)
{
	SHARED(M, of_warp, WARP);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;

	v = warp_max(v);
	__syncthreads();
	if (lane == 0)
		of_warp[warp] = v;
	__syncthreads();
	return warp_max(lane < (int)blockDim.x / WARP ? of_warp[lane] : M(-INFINITY));
}

template <typename M> __global__ void row_losses(rows_of_losses<M> r)
{
	const int32_t target = r.targets[blockIdx.x];
	M *row = r.logits + (int64_t)blockIdx.x * r.v, max = -INFINITY, sum = 0, lse, scale;

	for (int j = (int)threadIdx.x; j < r.v; j += (int)blockDim.x)
		max = !(row[j] <= max) ? row[j] : max;
	max = block_max(max);
	for (int j = (int)threadIdx.x; j < r.v; j += (int)blockDim.x)
		sum += exp(row[j] - max);
	lse = max + log(block_sum(sum));
	if (threadIdx.x == 0) {
		r.losses[2 * blockIdx.x] = target < 0 ? 0 : (double)lse - (double)row[target];
		r.losses[2 * blockIdx.x + 1] = target >= 0;
	}
	if (!r.gradients)
		return;
	__syncthreads(); /* the loss has been read */
	scale = target < 0 ? M(0) : (M)(r.page->inv_count * r.page->loss_scale);
	for (int j = (int)threadIdx.x; j < r.v; j += (int)blockDim.x)
		row[j] = target < 0 ? M(0) : scale * (exp(row[j] - lse) - (M)(j == target));
}

__global__ void sum_losses(const double *losses, int64_t rows, double *result)
{
	double loss = 0, count = 0;

	for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
		loss += losses[2 * i];
		count += losses[2 * i + 1];
	}
	loss = block_sum(loss);
	count = block_sum(count);
	if (threadIdx.x)
		return;
	result[XENT_LOSS_SUM] = loss;
	result[XENT_TOP1] = result[XENT_TOP5] = 0;
	result[XENT_COUNT] = count;
}

template <typename M> struct copy {
	static constexpr int width = 1;
	const M *from;
	M *to;

	template <int W> __device__ void at(int64_t i) const
	{
		to[i] = from[i];
	}
};

/* Rows first to first + rows of the batch. */
template <typename T>
int block_of_rows(const struct node *n, const struct kernel_args *a, int64_t first, int rows, struct err *err)
{
	using M = acc_t<T>;
	const struct sizes z = sizes_of(n);
	const int v = (int)z.v, c = (int)z.c;
	const T *x = cuda_in<T>(a, 0) + first * c, *w = cuda_in<T>(a, 1);
	M *logits = static_cast<M *>(a->workspace);
	double *losses = reinterpret_cast<double *>(static_cast<char *>(a->workspace) + logits_room(z)) + 2 * first;
	void *room = static_cast<char *>(a->workspace) + logits_room(z) + losses_room(z);
	int rc = 0;

	product_run(a, matrix_product<T, T, M, true, false>{ rows, v, c, x, w, logits, c, c }, room);
	if (a->out[LMHEAD_LOGITS])
		rc = cuda_each(n, a, copy<M>{ logits, cuda_out<M>(a, LMHEAD_LOGITS) + first * v }, (int64_t)rows * v, 0,
			       err);
	launch(a, dim3((unsigned)rows), BLOCK_THREADS, row_losses<M>,
	       rows_of_losses<M>{ logits, cuda_in<int32_t>(a, 2) + first, losses, a->page, v,
				  a->out[LMHEAD_DX] || a->out[LMHEAD_DW] });
	if (a->out[LMHEAD_DX])
		product_run(a,
			    matrix_product<M, T, T, true, true>{ rows, c, v, logits, w,
								 cuda_out<T>(a, LMHEAD_DX) + first * c, v, c },
			    room);
	if (a->out[LMHEAD_DW])
		product_run(a,
			    matrix_product<M, T, M, false, true>{ v, c, rows, logits, x, cuda_out<M>(a, LMHEAD_DW), v,
								  c, nullptr, first > 0 },
			    room);
	return rc;
}

/* A batch without rows leaves no gradient. */
template <typename T> int no_rows(const struct node *n, const struct kernel_args *a, struct err *err)
{
	cudaMemsetAsync(a->out[LMHEAD_DW], 0, tensor_bytes(n->out[LMHEAD_DW]), (cudaStream_t)a->stream);
	return cuda_launched(n, err);
}

template <typename T> int lmhead(const struct node *n, const struct kernel_args *a, struct err *err)
{
	const struct sizes z = sizes_of(n);
	const double *losses = reinterpret_cast<double *>(static_cast<char *>(a->workspace) + logits_room(z));
	int rc = 0;

	for (int64_t first = 0; !rc && (first < z.rows || first == 0); first += z.each ? z.each : 1) {
		const int64_t left = z.rows - first;

		if (left)
			rc = block_of_rows<T>(n, a, first, (int)(left < z.each ? left : z.each), err);
		else if (a->out[LMHEAD_DW])
			rc = no_rows<T>(n, a, err);
	}
	launch(a, dim3(1), BLOCK_THREADS, sum_losses, losses, z.rows, cuda_out<double>(a, LMHEAD_RESULT));
	return rc ? rc : cuda_launched(n, err);
}

int lmhead_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return lmhead<T>(n, a, err));
}

} // namespace

CUDA_KERNEL(lmhead, lmhead_prepare, lmhead_run);
