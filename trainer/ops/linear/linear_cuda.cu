/* linear_cuda.cu: the fully connected layer: three products, and the bias gradient as sums of columns. */
#include "trainer/backends/cuda/columns.h"
#include "trainer/backends/cuda/product.h"

namespace {

size_t acc_bytes(const struct node *n)
{
	return n->in[0]->dtype == DTYPE_F64 ? sizeof(double) : sizeof(float);
}

/* y[N,K] = x[N,C] w[K,C]^T + b */
int linear_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	const int64_t rows = n->out[0]->shape.dim[0], k = n->out[0]->shape.dim[1], c = n->in[0]->shape.dim[1];

	n->workspace_bytes = product_workspace(rows, k, c, acc_bytes(n));
	*ret_state = n;
	return product_check(n, rows, k, c, err);
}

template <typename T, typename D> int linear(const struct node *n, const struct kernel_args *a, struct err *err)
{
	const int64_t rows = n->out[0]->shape.dim[0], k = n->out[0]->shape.dim[1], c = n->in[0]->shape.dim[1];
	const matrix_product<T, T, D, true, false> p = { (int)rows,	   (int)k,	    (int)c,
							 cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<D>(a, 0),
							 c,		   c,		    cuda_in<acc_t<T>>(a, 2) };

	product_run(a, p, a->workspace);
	return cuda_launched(n, err);
}

int linear_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const bool same = n->out[0]->dtype == n->in[0]->dtype;

	BY_TYPE(n->in[0]->dtype, T, return same ? linear<T, T>(n, a, err) : linear<T, acc_t<T>>(n, a, err));
}

/* dx[N,C] = dy[N,K] w[K,C] */
int dgrad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	const int64_t rows = n->in[0]->shape.dim[0], k = n->in[0]->shape.dim[1], c = n->out[0]->shape.dim[1];

	n->workspace_bytes = product_workspace(rows, c, k, acc_bytes(n));
	*ret_state = n;
	return product_check(n, rows, c, k, err);
}

template <typename T> int dgrad(const struct node *n, const struct kernel_args *a, struct err *err)
{
	const int64_t rows = n->in[0]->shape.dim[0], k = n->in[0]->shape.dim[1], c = n->out[0]->shape.dim[1];
	const matrix_product<T, T, T, true, true> p = { (int)rows,	   (int)c,	    (int)k,
							cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_out<T>(a, 0),
							k,		   c };

	product_run(a, p, a->workspace);
	return cuda_launched(n, err);
}

int dgrad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return dgrad<T>(n, a, err));
}

/* dw[K,C] = dy[N,K]^T x[N,C], db[K] = the columns of dy. */
int wgrad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1], k = n->in[1]->shape.dim[1];
	const size_t product = product_workspace(k, c, rows, acc_bytes(n));
	const size_t bias = n->out[1] ? columns_workspace(k, 1) : 0;

	n->workspace_bytes = product > bias ? product : bias; /* one after the other */
	*ret_state = n;
	return product_check(n, k, c, rows, err);
}

template <typename T> struct bias_sum {
	static constexpr int sums = 1, width = vector_width<T>;
	using acc = acc_t<T>;
	const T *dy;
	int64_t pitch;
	acc *db;

	template <int W> __device__ void row(int64_t r, int64_t c, acc (&v)[1][W]) const
	{
		acc d[W];

		load(d, dy + r * pitch + c);
		for (int w = 0; w < W; w++)
			v[0][w] += d[w];
	}

	__device__ void done(int64_t c, const double *sum) const
	{
		db[c] = (acc)sum[0];
	}
};

template <typename T> int wgrad(const struct node *n, const struct kernel_args *a, struct err *err)
{
	using M = acc_t<T>;
	const int64_t rows = n->in[0]->shape.dim[0], c = n->in[0]->shape.dim[1], k = n->in[1]->shape.dim[1];
	const matrix_product<T, T, M, false, true> p = { (int)k,	   (int)c,	    (int)rows,
							 cuda_in<T>(a, 1), cuda_in<T>(a, 0), cuda_out<M>(a, 0),
							 k,		   c };

	product_run(a, p, a->workspace);
	if (a->out[1])
		columns_run(a, bias_sum<T>{ cuda_in<T>(a, 1), k, cuda_out<M>(a, 1) }, rows, k, cuda_aligned(n, a),
			    a->workspace);
	return cuda_launched(n, err);
}

int wgrad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return wgrad<T>(n, a, err));
}

} // namespace

CUDA_KERNEL(linear, linear_prepare, linear_run);
CUDA_KERNEL(linear_dgrad, dgrad_prepare, dgrad_run);
CUDA_KERNEL(linear_wgrad, wgrad_prepare, wgrad_run);
