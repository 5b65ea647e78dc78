/* SPDX-License-Identifier: Apache-2.0 */
/* bn_cuda.cu: batch normalisation: sums over the rows of [pixels, C], and loops over its elements with per-channel
 * coefficients (columns.h). */
#include "trainer/backends/cuda/columns.h"
#include "trainer/backends/cuda/many.h"

extern "C" {
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/step_guard/step_guard.h"
}

inline namespace bn_kernels {

int64_t count_pixels(const struct tensor *x)
{
	return x->shape.dim[0] * x->shape.dim[1] * x->shape.dim[2];
}

struct bn_attr read_bn_attr(const struct node *n)
{
	return *static_cast<const struct bn_attr *>(n->attr);
}

/* Coefficients per channel. All kernels compute the normalised value in the same way, so ReLU masks its gradient
 * exactly where it masked the value. */
enum { MEAN, SCALE /* gamma * rstd */, BETA, OF_CHANNEL };

template <typename A, int N>
__device__ void set_channel_coefficients(A (&number)[N], const bn_channel &ch, A gamma, A beta)
{
	number[MEAN] = (A)ch.mean;
	number[SCALE] = (A)(gamma * ch.rstd);
	number[BETA] = beta;
}

template <typename A, int N, int W> __device__ A normalise_value(A x, const A (&number)[N][W], int w)
{
	return number[SCALE][w] * (x - number[MEAN][w]) + number[BETA][w];
}

/* ---- forward ---- */

template <typename T> struct pixel_sums {
	static constexpr int sums = 2, width = vector_width<T>, ahead = 8, numbers = 0;
	using acc = acc_t<T>;
	const T *x;
	int64_t channels, pixels;
	double *stat;

	template <int W> __device__ bits<T, W> read(int64_t r, int64_t c) const
	{
		return fetch<W>(x + r * channels + c);
	}

	template <int W>
	__device__ void row(int64_t, int64_t, const bits<T, W> &in, const acc (&)[1][W], acc (&v)[2][W]) const
	{
		acc u[W];

		decompress(u, in);
		for (int w = 0; w < W; w++) {
			v[0][w] += u[w];
			v[1][w] += u[w] * u[w];
		}
	}

	__device__ void done(int64_t c, const double *sum) const
	{
		stat[c] = sum[0];
		stat[channels + c] = sum[1];
		if (c == 0)
			stat[2 * channels] = (double)pixels;
	}
};

int prepare_bn_stats_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	const struct tensor *x = n->in[0];

	n->workspace_bytes = columns_workspace(x->dtype, count_pixels(x), x->shape.dim[3], 2);
	*ret_state = n;
	return 0;
}

void run_bn_stats_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int64_t pixels = count_pixels(n->in[0]), channels = n->in[0]->shape.dim[3];

	BY_TYPE(n->in[0]->dtype, T,
		columns_run(a, pixel_sums<T>{ cuda_in<T>(a, 0), channels, pixels, cuda_out<double>(a, 0) },
			    { pixels, channels, (uintptr_t)a->in[0] % 16 == 0 }, a->workspace));
}

template <typename T> struct normalise {
	static constexpr int width = vector_width<T>, ahead = 4, numbers = OF_CHANNEL;
	using acc = acc_t<T>;
	const T *x, *residual; /* residual: may be NULL */
	const double *stat;
	const acc *gamma, *beta;
	T *y;
	int64_t channels;
	double eps;
	bool relu;

	__device__ void column(int64_t c, acc (&number)[OF_CHANNEL]) const
	{
		set_channel_coefficients(number, bn_channel_of(stat, channels, c, eps), gamma[c], beta[c]);
	}

	template <int W> struct elements {
		bits<T, W> x, residual;
	};

	template <int W> __device__ elements<W> read(int64_t r, int64_t c) const
	{
		const int64_t i = r * channels + c;

		return { fetch<W>(x + i), residual ? fetch<W>(residual + i) : bits<T, W>{} };
	}

	template <int W>
	__device__ void row(int64_t r, int64_t c, const elements<W> &in, const acc (&number)[OF_CHANNEL][W]) const
	{
		acc v[W], more[W];

		decompress(v, in.x);
		decompress(more, in.residual);
		for (int w = 0; w < W; w++) {
			v[w] = normalise_value(v[w], number, w) + more[w];
			v[w] = relu && v[w] <= 0 ? 0 : v[w];
		}
		store(y + r * channels + c, v);
	}
};

template <typename T> void launch_bn_apply(const struct node *n, const struct kernel_args *a)
{
	using M = acc_t<T>;
	const struct tensor *x = n->in[0];
	const int64_t channels = x->shape.dim[3];
	const struct bn_attr attr = read_bn_attr(n);

	columns_each(a,
		     normalise<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 4), cuda_in<double>(a, 1), cuda_in<M>(a, 2),
				   cuda_in<M>(a, 3), cuda_out<T>(a, 0), channels, attr.eps,
				   attr.relu },
		     { count_pixels(x), channels, cuda_aligned(n, a) });
}

void run_bn_apply_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_bn_apply<T>(n, a));
}

/* ---- running statistics: one thread per channel ---- */

template <typename M> struct running_update {
	const double *stat;
	const M *mean, *var;
	const step_page *page;
	bool restart; /* from mean and var at every micro-batch */
	int channels;
	double momentum;
	M *next_mean, *next_var;
};

template <typename M> __global__ void update_running(running_update<M> u)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
	const bool begin = u.restart || !u.page->micro;
	struct bn_running r;

	if (!inside(c < u.channels))
		return;
	r.mean = begin ? u.mean[c] : u.next_mean[c];
	r.var = begin ? u.var[c] : u.next_var[c];
	bn_running_update(&r, u.stat, u.channels, c, u.momentum);
	u.next_mean[c] = (M)r.mean;
	u.next_var[c] = (M)r.var;
}

/* Copies the next statistics to the running ones, unless the step is skipped. */
template <typename M> struct running_copy {
	static constexpr int width = vector_width<M>;
	const double *step;
	const M *next_mean, *next_var;
	M *mean, *var;

	template <int W> __device__ void at(int64_t c) const
	{
		M v[W];

		if (step[STEP_GUARD_SKIP] != 0)
			return;
		load(v, next_mean + c);
		store(mean + c, v);
		load(v, next_var + c);
		store(var + c, v);
	}
};

template <typename M> struct running_copy<M> make_running_copy(const struct kernel_args *a) {
	return { cuda_in<double>(a, 0), cuda_in<M>(a, 1), cuda_in<M>(a, 2), cuda_out<M>(a, 0), cuda_out<M>(a, 1) };
}

template <typename M> __global__ void fix_statistics(const M *mean, const M *var, int channels, double *stat)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (inside(c < channels))
		bn_fix(stat, channels, c, mean[c], var[c]);
}

void run_bn_running_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->in[1]->shape.dim[0];
	const dim3 grid(cuda_blocks(channels, WARP));

	BY_MASTER(n->in[1]->dtype, M,
		  launch(a, grid, WARP, update_running<M>,
			 running_update<M>{ cuda_in<double>(a, 0), cuda_in<M>(a, 1), cuda_in<M>(a, 2), a->page,
					    n->in[3] == n->in[1], channels, read_bn_attr(n).momentum, cuda_out<M>(a, 0),
					    cuda_out<M>(a, 1) }));
}

void run_bn_keep_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_MASTER(n->in[1]->dtype, M,
		  cuda_each(n, a, make_running_copy<M>(a), { cuda_count(n->out[0]), 0 }));
}

void run_bn_keep_many_cuda(void *const *states, const struct kernel_args *args, int n)
{
	BY_MASTER(cuda_node(states[0])->in[1]->dtype, M,
		  many_each<running_copy<M>>(
			  states, args, n,
			  [](const struct node *, const struct kernel_args *a) { return make_running_copy<M>(a); }));
}

void run_bn_fixed_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->in[0]->shape.dim[0];

	BY_MASTER(n->in[0]->dtype, M,
		  launch(a, dim3(cuda_blocks(channels, WARP)), WARP, fix_statistics<M>, cuda_in<M>(a, 0),
			 cuda_in<M>(a, 1), channels, cuda_out<double>(a, 0)));
}

/* ---- backward ---- */

/* Sums of g and of g * (x - mean); the complete second sum times rstd is that of g * xhat. plain: reads dy and x and
 * writes nothing, which leaves registers for more rows. */
template <typename T, bool plain> struct gradient_sums {
	static constexpr int sums = 2, width = vector_width<T>, ahead = plain ? 4 : 2, numbers = OF_CHANNEL;
	using acc = acc_t<T>;
	const T *dy, *dy2, *x, *y; /* dy2, y: may be NULL */
	const double *stat;
	const acc *gamma, *beta;
	double *dstat;
	T *g; /* NULL: not written */
	int64_t channels;
	double eps;
	bool relu, residual;

	__device__ void column(int64_t c, acc (&number)[OF_CHANNEL]) const
	{
		set_channel_coefficients(number, bn_channel_of(stat, channels, c, eps), gamma[c], beta[c]);
	}

	template <int W> struct elements {
		bits<T, W> dy, dy2, x, y;
	};

	template <int W> __device__ elements<W> read(int64_t r, int64_t c) const
	{
		const int64_t i = r * channels + c;

		return { fetch<W>(dy + i), !plain && dy2 ? fetch<W>(dy2 + i) : bits<T, W>{}, fetch<W>(x + i),
			 !plain && y ? fetch<W>(y + i) : bits<T, W>{} };
	}

	/* Returns true if the output of ReLU at this element was positive. normal: the normalised value, without the
	 * residual. */
	__device__ bool passes(acc out, acc normalise_value) const
	{
		return !plain && residual ? !y || !(out <= 0) : !(normalise_value <= 0);
	}

	template <int W>
	__device__ void row(int64_t r, int64_t c, const elements<W> &in, const acc (&number)[OF_CHANNEL][W],
			    acc (&v)[2][W]) const
	{
		acc d[W], more[W], u[W], out[W];

		decompress(d, in.dy);
		decompress(more, in.dy2);
		decompress(u, in.x);
		decompress(out, in.y);
		for (int w = 0; w < W; w++) {
			d[w] += more[w];
			if (relu && !passes(out[w], normalise_value(u[w], number, w)))
				d[w] = 0;
			v[0][w] += d[w];
			v[1][w] += d[w] * (u[w] - number[MEAN][w]);
		}
		if (!plain && g)
			store(g + r * channels + c, d);
	}

	__device__ void done(int64_t c, const double *sum) const
	{
		dstat[c] = sum[0];
		dstat[channels + c] = sum[1] * bn_channel_of(stat, channels, c, eps).rstd;
	}
};

int prepare_bn_grad_stats_cuda(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	const struct tensor *x = n->in[2];

	n->workspace_bytes = columns_workspace(x->dtype, count_pixels(x), x->shape.dim[3], 2);
	*ret_state = n;
	return 0;
}

template <typename T, bool plain> void launch_bn_grad_stats(const struct node *n, const struct kernel_args *a)
{
	using M = acc_t<T>;
	const struct tensor *x = n->in[2];
	const int64_t channels = x->shape.dim[3];
	const struct bn_attr attr = read_bn_attr(n);
	T *g = attr.write_g ? cuda_out<T>(a, 1) : nullptr;

	columns_run(a,
		    gradient_sums<T, plain>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<T>(a, 2), cuda_in<T>(a, 6),
					     cuda_in<double>(a, 3), cuda_in<M>(a, 4), cuda_in<M>(a, 5),
					     cuda_out<double>(a, 0), g, channels, attr.eps, attr.relu, attr.residual },
		    { count_pixels(x), channels, cuda_aligned(n, a) }, a->workspace);
}

void run_bn_grad_stats_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[2]->dtype, T,
		if (read_bn_attr(n).residual || read_bn_attr(n).write_g || n->in[1])
			launch_bn_grad_stats<T, false>(n, a);
		else launch_bn_grad_stats<T, true>(n, a));
}

template <typename T> struct denormalise {
	enum { MEAN_G = OF_CHANNEL, SLOPE /* mean of g * xhat, times rstd */, NUMBERS };
	static constexpr int width = vector_width<T>, ahead = 4, numbers = NUMBERS;
	using acc = acc_t<T>;
	const T *g, *x;
	const double *stat, *dstat;
	const acc *gamma, *beta;
	T *dx;
	int64_t channels;
	double eps;
	bool relu;

	__device__ void column(int64_t c, acc (&number)[NUMBERS]) const
	{
		const bn_channel ch = bn_channel_of(stat, channels, c, eps);
		const double per = 1 / stat[2 * channels];

		set_channel_coefficients(number, ch, gamma[c], beta[c]);
		number[MEAN_G] = (acc)(dstat[c] * per);
		number[SLOPE] = (acc)(dstat[channels + c] * per * ch.rstd);
	}

	template <int W> struct elements {
		bits<T, W> g, x;
	};

	template <int W> __device__ elements<W> read(int64_t r, int64_t c) const
	{
		const int64_t i = r * channels + c;

		return { fetch<W>(g + i), fetch<W>(x + i) };
	}

	template <int W>
	__device__ void row(int64_t r, int64_t c, const elements<W> &in, const acc (&number)[NUMBERS][W]) const
	{
		acc d[W], u[W];

		decompress(d, in.g);
		decompress(u, in.x);
		for (int w = 0; w < W; w++) {
			if (relu && normalise_value(u[w], number, w) <= 0)
				d[w] = 0;
			d[w] -= number[MEAN_G][w] + (u[w] - number[MEAN][w]) * number[SLOPE][w];
			d[w] *= number[SCALE][w];
		}
		store(dx + r * channels + c, d);
	}
};

template <typename T> void launch_bn_grad_apply(const struct node *n, const struct kernel_args *a)
{
	using M = acc_t<T>;
	const struct tensor *x = n->in[1];
	const int64_t channels = x->shape.dim[3];
	const struct bn_attr attr = read_bn_attr(n);

	columns_each(a,
		     denormalise<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<double>(a, 2), cuda_in<double>(a, 3),
				     cuda_in<M>(a, 4), cuda_in<M>(a, 5), cuda_out<T>(a, 0), channels, attr.eps,
				     attr.relu },
		     { count_pixels(x), channels, cuda_aligned(n, a) });
}

void run_bn_grad_apply_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[1]->dtype, T, launch_bn_grad_apply<T>(n, a));
}

template <typename M> __global__ void parameter_gradients(const double *dstat, int channels, M *dgamma, M *dbeta)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (!inside(c < channels))
		return;
	dgamma[c] = (M)dstat[channels + c];
	dbeta[c] = (M)dstat[c];
}

void run_bn_grad_params_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->out[0]->shape.dim[0];

	BY_MASTER(n->out[0]->dtype, M,
		  launch(a, dim3(cuda_blocks(channels, WARP)), WARP, parameter_gradients<M>, cuda_in<double>(a, 0),
			 channels, cuda_out<M>(a, 0), cuda_out<M>(a, 1)));
}

} // namespace bn_kernels

CUDA_KERNEL(bn_stats, prepare_bn_stats_cuda, run_bn_stats_cuda);
CUDA_KERNEL(bn_apply, cuda_prepare, run_bn_apply_cuda);
CUDA_KERNEL(bn_running, cuda_prepare, run_bn_running_cuda);
CUDA_KERNEL_MANY(bn_keep, cuda_prepare, run_bn_keep_cuda, run_bn_keep_many_cuda);
CUDA_KERNEL(bn_fixed, cuda_prepare, run_bn_fixed_cuda);
CUDA_KERNEL(bn_grad_stats, prepare_bn_grad_stats_cuda, run_bn_grad_stats_cuda);
CUDA_KERNEL(bn_grad_apply, cuda_prepare, run_bn_grad_apply_cuda);
CUDA_KERNEL(bn_grad_params, cuda_prepare, run_bn_grad_params_cuda);
