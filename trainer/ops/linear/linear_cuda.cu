/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cuda.cu: the fully connected layer: three matrix products, and the bias gradient as column sums. */
#include "trainer/backends/cuda/columns.h"

extern "C" {
#include "trainer/backends/cuda/cuda_matmul.h"
}

inline namespace linear_kernels {

int prepare_matmul(const struct kernel_env *env, struct node *n, const struct matmul_spec &spec, void **ret_state,
		   struct err *err)
{
	struct matmul *m = nullptr;
	int rc = matmul_new(&m, env, n, &spec, err);

	if (rc)
		return rc;
	n->workspace_bytes = matmul_workspace(m);
	*ret_state = m;
	return 0;
}

/* y[N,K] = x[N,C] w[K,C]^T + b */
int prepare_linear_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const int64_t k = n->out[0]->shape.dim[1], c = n->in[0]->shape.dim[1];
	struct matmul_spec s = {};

	s.m = n->out[0]->shape.dim[0];
	s.n = s.d_pitch = k;
	s.k = s.a_pitch = s.b_pitch = c;
	s.b_turned = true;
	s.in = n->in[0]->dtype;
	s.out = n->out[0]->dtype;
	s.bias = n->in[2] != nullptr;
	return prepare_matmul(env, n, s, ret_state, err);
}

void run_linear_cuda(void *state, const struct kernel_args *a)
{
	const struct matmul_operands o = { a->in[0], a->in[1], a->out[0], a->in[2], false, a->workspace, a->stream };

	matmul_run(static_cast<const struct matmul *>(state), &o);
}

/* dx[N,C] = dy[N,K] w[K,C] */
int prepare_linear_dgrad_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const int64_t k = n->in[0]->shape.dim[1], c = n->out[0]->shape.dim[1];
	struct matmul_spec s = {};

	s.m = n->in[0]->shape.dim[0];
	s.n = s.b_pitch = s.d_pitch = c;
	s.k = s.a_pitch = k;
	s.in = s.out = n->in[0]->dtype;
	return prepare_matmul(env, n, s, ret_state, err);
}

void run_linear_dgrad_cuda(void *state, const struct kernel_args *a)
{
	const struct matmul_operands o = { a->in[0], a->in[1], a->out[0], nullptr, false, a->workspace, a->stream };

	matmul_run(static_cast<const struct matmul *>(state), &o);
}

/* dw[K,C] = dy[N,K]^T x[N,C]; db[K] = column sums of dy. */
int prepare_linear_wgrad_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const int64_t c = n->in[0]->shape.dim[1], k = n->in[1]->shape.dim[1];
	const size_t bias = n->out[1] ? columns_workspace(n->in[1]->dtype, n->in[1]->shape.dim[0], k, 1) : 0;
	struct matmul_spec s = {};
	int rc;

	s.m = s.a_pitch = k;
	s.n = s.b_pitch = s.d_pitch = c;
	s.k = n->in[0]->shape.dim[0];
	s.a_turned = true;
	s.in = n->in[0]->dtype;
	s.out = n->out[0]->dtype;
	rc = prepare_matmul(env, n, s, ret_state, err);
	if (!rc && bias > n->workspace_bytes)
		n->workspace_bytes = bias; /* the two uses follow each other */
	return rc;
}

template <typename T> struct bias_sum {
	static constexpr int sums = 1, width = vector_width<T>, ahead = 8, numbers = 0;
	using acc = acc_t<T>;
	const T *dy;
	int64_t pitch;
	acc *db;

	template <int W> __device__ bits<T, W> read(int64_t r, int64_t c) const
	{
		return fetch<W>(dy + r * pitch + c);
	}

	template <int W>
	__device__ void row(int64_t, int64_t, const bits<T, W> &in, const acc (&)[1][W], acc (&v)[1][W]) const
	{
		acc d[W];

		decompress(d, in);
		for (int w = 0; w < W; w++)
			v[0][w] += d[w];
	}

	__device__ void done(int64_t c, const double *sum) const
	{
		db[c] = (acc)sum[0];
	}
};

template <typename T> void launch_bias_grad(const struct node *n, const struct kernel_args *a)
{
	const int64_t rows = n->in[1]->shape.dim[0], k = n->in[1]->shape.dim[1];

	columns_run(a, bias_sum<T>{ cuda_in<T>(a, 1), k, cuda_out<acc_t<T>>(a, 1) }, { rows, k, cuda_aligned(n, a) },
		    a->workspace);
}

void run_linear_wgrad_cuda(void *state, const struct kernel_args *a)
{
	const struct matmul_operands o = { a->in[1], a->in[0], a->out[0], nullptr, false, a->workspace, a->stream };
	const struct node *n = matmul_node(state);

	matmul_run(static_cast<const struct matmul *>(state), &o);
	if (n->out[1])
		BY_TYPE(n->in[0]->dtype, T, launch_bias_grad<T>(n, a));
}

} // namespace linear_kernels

CUDA_KERNEL_OF(linear, prepare_linear_cuda, run_linear_cuda, matmul_free, matmul_impl);
CUDA_KERNEL_OF(linear_dgrad, prepare_linear_dgrad_cuda, run_linear_dgrad_cuda, matmul_free, matmul_impl);
CUDA_KERNEL_OF(linear_wgrad, prepare_linear_wgrad_cuda, run_linear_wgrad_cuda, matmul_free, matmul_impl);
