/* layernorm_cuda.cu: layer normalisation joined with the residual sum, a block a row: the row is read from memory once
 * and from the cache after that. Gains' gradients are sums over rows (columns.h). */
#include "trainer/backends/cuda/columns.h"

extern "C" {
#include "trainer/ops/layernorm/layernorm.h"
}

namespace {

constexpr int row_threads = 128;

/* f(i, v) for the row's elements from i on, W at a time; v: x + delta. */
template <int W, typename T, class F>
__device__ void over_row(const T *x, const T *delta, int c, const F &f)
{
	for (int i = (int)threadIdx.x * W; i < c; i += (int)blockDim.x * W) {
		acc_t<T> v[W], more[W] = {};

		load(v, x + i);
		if (delta)
			load(more, delta + i);
		for (int k = 0; k < W; k++)
			v[k] += more[k];
		f(i, v);
	}
}

template <typename T> struct forward {
	const T *x, *delta; /* delta, sum: NULL without */
	const acc_t<T> *gamma, *beta;
	T *y, *sum;
	acc_t<T> *stats;
	int c;
};

template <int W, typename T> __global__ void forward_rows(forward<T> f)
{
	using A = acc_t<T>;
	const int64_t at = (int64_t)blockIdx.x * f.c;
	const T *x = f.x + at, *delta = f.delta ? f.delta + at : nullptr;
	A total = 0, squares = 0, mean, rstd;

	over_row<W>(x, delta, f.c, [&](int, const A(&v)[W]) {
		for (int k = 0; k < W; k++)
			total += v[k];
	});
	mean = block_sum(total) / (A)f.c;
	over_row<W>(x, delta, f.c, [&](int, const A(&v)[W]) {
		for (int k = 0; k < W; k++)
			squares += (v[k] - mean) * (v[k] - mean);
	});
	rstd = 1 / sqrt(block_sum(squares) / (A)f.c + (A)LAYERNORM_EPS);
	over_row<W>(x, delta, f.c, [&](int i, const A(&v)[W]) {
		A y[W];

		for (int k = 0; k < W; k++)
			y[k] = (v[k] - mean) * rstd * f.gamma[i + k] + f.beta[i + k];
		if (f.sum)
			store(f.sum + at + i, v);
		store(f.y + at + i, y);
	});
	if (threadIdx.x == 0) {
		f.stats[2 * blockIdx.x] = mean;
		f.stats[2 * blockIdx.x + 1] = rstd;
	}
}

int layernorm_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1];
	const dim3 grid((unsigned)rows);

	if (!rows)
		return 0;
	BY_TYPE(n->in[0]->dtype, T,
		const forward<T> f = { cuda_in<T>(a, 0),	cuda_in<T>(a, 1),  cuda_in<acc_t<T>>(a, 2),
				       cuda_in<acc_t<T>>(a, 3), cuda_out<T>(a, 0), cuda_out<T>(a, 2),
				       cuda_out<acc_t<T>>(a, 1), (int)c };

		if (c % vector_width<T> == 0 && cuda_aligned(n, a))
			launch(a, grid, row_threads, forward_rows<vector_width<T>, T>, f);
		else
			launch(a, grid, row_threads, forward_rows<1, T>, f));
	return cuda_launched(n, err);
}

template <typename T> struct backward {
	const T *dy, *s, *skip; /* skip: or NULL */
	const acc_t<T> *stats, *gamma;
	T *ds;
	int c;
};

/* With h the normalised row and d = dy gamma: ds = skip + rstd (d - mean(d) - h mean(d h)). */
template <int W, typename T> __global__ void backward_rows(backward<T> f)
{
	using A = acc_t<T>;
	const int64_t at = (int64_t)blockIdx.x * f.c;
	const A mean = f.stats[2 * blockIdx.x], rstd = f.stats[2 * blockIdx.x + 1];
	A sum_d = 0, sum_dh = 0;

	for (int i = (int)threadIdx.x * W; i < f.c; i += (int)blockDim.x * W) {
		A d[W], s[W];

		load(d, f.dy + at + i);
		load(s, f.s + at + i);
		for (int k = 0; k < W; k++) {
			d[k] *= f.gamma[i + k];
			sum_d += d[k];
			sum_dh += d[k] * (s[k] - mean) * rstd;
		}
	}
	sum_d = block_sum(sum_d) / (A)f.c;
	sum_dh = block_sum(sum_dh) / (A)f.c;
	for (int i = (int)threadIdx.x * W; i < f.c; i += (int)blockDim.x * W) {
		A d[W], s[W], past[W] = {};

		load(d, f.dy + at + i);
		load(s, f.s + at + i);
		if (f.skip)
			load(past, f.skip + at + i);
		for (int k = 0; k < W; k++)
			d[k] = rstd * (d[k] * f.gamma[i + k] - sum_d - (s[k] - mean) * rstd * sum_dh) + past[k];
		store(f.ds + at + i, d);
	}
}

template <typename T> struct gain_sums {
	static constexpr int sums = 2, width = vector_width<T>;
	using acc = acc_t<T>;
	const T *dy, *s;
	const acc *stats;
	int64_t c;
	acc *dgamma, *dbeta;

	template <int W> __device__ void row(int64_t r, int64_t at, acc (&v)[2][W]) const
	{
		acc d[W], u[W];

		load(d, dy + r * c + at);
		load(u, s + r * c + at);
		for (int w = 0; w < W; w++) {
			v[0][w] += d[w] * (u[w] - stats[2 * r]) * stats[2 * r + 1];
			v[1][w] += d[w];
		}
	}

	__device__ void done(int64_t at, const double *sum) const
	{
		dgamma[at] = (acc)sum[0];
		dbeta[at] = (acc)sum[1];
	}
};

int layernorm_grad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = n->out[1] ? columns_workspace(n->in[1]->shape.dim[1], 2) : 0;
	*ret_state = n;
	return 0;
}

/* The sums come first: ds may lie over dy. */
int layernorm_grad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int64_t rows = n->in[1]->shape.dim[0], c = n->in[1]->shape.dim[1];
	const bool aligned = cuda_aligned(n, a);

	BY_TYPE(n->in[1]->dtype, T,
		const gain_sums<T> g = { cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<acc_t<T>>(a, 2), c,
					 cuda_out<acc_t<T>>(a, 1), cuda_out<acc_t<T>>(a, 2) };
		const backward<T> f = { cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<T>(a, 4),
					cuda_in<acc_t<T>>(a, 2), cuda_in<acc_t<T>>(a, 3), cuda_out<T>(a, 0), (int)c };

		if (a->out[1])
			columns_run(a, g, rows, c, aligned, a->workspace);
		if (rows && aligned && c % vector_width<T> == 0)
			launch(a, dim3((unsigned)rows), row_threads, backward_rows<vector_width<T>, T>, f);
		else if (rows)
			launch(a, dim3((unsigned)rows), row_threads, backward_rows<1, T>, f));
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(layernorm, cuda_prepare, layernorm_run);
CUDA_KERNEL(layernorm_grad, layernorm_grad_prepare, layernorm_grad_run);
