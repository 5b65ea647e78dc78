/* bn_cuda.cu: batch normalisation. Sums over pixels are sums over the rows of [pixels, C] (columns.h); what is applied
 * to every pixel of a channel is worked out once a channel, into the workspace. */
#include "trainer/backends/cuda/columns.h"

extern "C" {
#include "trainer/ops/bn/bn.h"
#include "trainer/ops/bn/bn_math.h"
#include "trainer/ops/guard/guard.h"
}

namespace {

int64_t pixels_of(const struct tensor *x)
{
	return x->shape.dim[0] * x->shape.dim[1] * x->shape.dim[2];
}

struct bn_attr attr_of(const struct node *n)
{
	return *static_cast<const struct bn_attr *>(n->attr);
}

/* Workspace: mean and rstd of each channel, in doubles so that both types fit, then what columns.h needs. */
size_t channel_bytes(int64_t channels)
{
	return (2 * (size_t)channels * sizeof(double) + 63) / 64 * 64;
}

void *columns_room(const struct kernel_args *a, int64_t channels)
{
	return static_cast<char *>(a->workspace) + channel_bytes(channels);
}

/* mean [C] and rstd [C], from stat, or from running statistics where stat is NULL. */
template <typename M>
__global__ void channel_values(const double *stat, const M *mean, const M *var, int channels, double eps, M *values)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
	struct bn_channel ch;

	if (!inside(c < channels))
		return;
	if (stat)
		ch = bn_channel_of(stat, channels, c, eps);
	else
		ch = { (double)mean[c], 1 / sqrt((double)var[c] + eps) };
	values[c] = (M)ch.mean;
	values[channels + c] = (M)ch.rstd;
}

template <typename M>
M *channel_launch(const struct kernel_args *a, const double *stat, const M *mean, const M *var, int channels,
		  double eps)
{
	M *values = static_cast<M *>(a->workspace);

	launch(a, dim3(cuda_blocks(channels, WARP)), WARP, channel_values<M>, stat, mean, var, channels, eps, values);
	return values;
}

int channels_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = channel_bytes(n->out[0]->shape.dim[3]);
	*ret_state = n;
	return 0;
}

/* ---- forward ---- */

template <typename T> struct pixel_sums {
	static constexpr int sums = 2, width = vector_width<T>;
	using acc = acc_t<T>;
	const T *x;
	int64_t channels, pixels;
	double *stat;

	template <int W> __device__ void row(int64_t r, int64_t c, acc (&v)[2][W]) const
	{
		acc u[W];

		load(u, x + r * channels + c);
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

int stats_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	n->workspace_bytes = columns_workspace(n->in[0]->shape.dim[3], 2);
	*ret_state = n;
	return 0;
}

int stats_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int64_t pixels = pixels_of(n->in[0]), channels = n->in[0]->shape.dim[3];

	BY_TYPE(n->in[0]->dtype, T,
		columns_run(a, pixel_sums<T>{ cuda_in<T>(a, 0), channels, pixels, cuda_out<double>(a, 0) }, pixels,
			    channels, (uintptr_t)a->in[0] % 16 == 0, a->workspace));
	return cuda_launched(n, err);
}

template <typename T> struct normalise {
	static constexpr int width = vector_width<T>;
	using A = acc_t<T>;
	const T *x, *residual; /* residual: or NULL */
	const A *values, *gamma, *beta;
	T *y;
	int channels;
	bool relu;

	template <int W> __device__ void at(int64_t i) const
	{
		const int c = (int)(i % channels);
		A v[W], more[W] = {};

		load(v, x + i);
		if (residual)
			load(more, residual + i);
		for (int k = 0; k < W; k++) {
			const A xhat = (v[k] - values[c + k]) * values[channels + c + k];

			v[k] = gamma[c + k] * xhat + beta[c + k] + more[k];
			v[k] = relu && v[k] <= 0 ? 0 : v[k];
		}
		store(y + i, v);
	}
};

template <typename T>
int apply(const struct node *n, const struct kernel_args *a, const normalise<T> &f, struct err *err)
{
	return cuda_each(n, a, f, cuda_count(n->out[0]), f.channels, err);
}

template <typename T> int apply_batch(const struct node *n, const struct kernel_args *a, struct err *err)
{
	using M = acc_t<T>;
	const int channels = (int)n->in[0]->shape.dim[3];
	const struct bn_attr attr = attr_of(n);
	const M *none = nullptr, *values = channel_launch(a, cuda_in<double>(a, 1), none, none, channels, attr.eps);

	return apply(n, a,
		     normalise<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 4), values, cuda_in<M>(a, 2), cuda_in<M>(a, 3),
				   cuda_out<T>(a, 0), channels, attr.relu },
		     err);
}

template <typename T> int apply_running(const struct node *n, const struct kernel_args *a, struct err *err)
{
	using M = acc_t<T>;
	const int channels = (int)n->in[0]->shape.dim[3];
	const struct bn_attr attr = attr_of(n);
	const double *none = nullptr;
	const M *values = channel_launch(a, none, cuda_in<M>(a, 3), cuda_in<M>(a, 4), channels, attr.eps);

	return apply(n, a,
		     normalise<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 5), values, cuda_in<M>(a, 1), cuda_in<M>(a, 2),
				   cuda_out<T>(a, 0), channels, attr.relu },
		     err);
}

int apply_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return apply_batch<T>(n, a, err));
}

int infer_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, return apply_running<T>(n, a, err));
}

/* ---- running statistics: a thread a channel ---- */

template <typename M>
__global__ void update_running(const double *stat, const M *mean, const M *var, const step_page *page, bool anew,
			       int channels, double momentum, M *next_mean, M *next_var)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
	const bool begin = anew || !page->micro;
	double m, v;

	if (!inside(c < channels))
		return;
	m = begin ? mean[c] : next_mean[c];
	v = begin ? var[c] : next_var[c];
	bn_running_update(stat, channels, c, momentum, &m, &v);
	next_mean[c] = (M)m;
	next_var[c] = (M)v;
}

template <typename M>
__global__ void keep_running(const double *step, const M *next_mean, const M *next_var, int channels, M *mean, M *var)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (!inside(c < channels) || step[GUARD_SKIP] != 0)
		return;
	mean[c] = next_mean[c];
	var[c] = next_var[c];
}

template <typename M> __global__ void fix_statistics(const M *mean, const M *var, int channels, double *stat)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (inside(c < channels))
		bn_fix(stat, channels, c, mean[c], var[c]);
}

int running_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->in[1]->shape.dim[0];
	const dim3 grid(cuda_blocks(channels, WARP));

	BY_MASTER(n->in[1]->dtype, M,
		  launch(a, grid, WARP, update_running<M>, cuda_in<double>(a, 0), cuda_in<M>(a, 1), cuda_in<M>(a, 2),
			 a->page, n->in[3] == n->in[1], channels, attr_of(n).momentum, cuda_out<M>(a, 0),
			 cuda_out<M>(a, 1)));
	return cuda_launched(n, err);
}

int keep_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->in[1]->shape.dim[0];

	BY_MASTER(n->in[1]->dtype, M,
		  launch(a, dim3(cuda_blocks(channels, WARP)), WARP, keep_running<M>, cuda_in<double>(a, 0),
			 cuda_in<M>(a, 1), cuda_in<M>(a, 2), channels, cuda_out<M>(a, 0), cuda_out<M>(a, 1)));
	return cuda_launched(n, err);
}

int fixed_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->in[0]->shape.dim[0];

	BY_MASTER(n->in[0]->dtype, M,
		  launch(a, dim3(cuda_blocks(channels, WARP)), WARP, fix_statistics<M>, cuda_in<M>(a, 0),
			 cuda_in<M>(a, 1), channels, cuda_out<double>(a, 0)));
	return cuda_launched(n, err);
}

/* ---- backward ---- */

template <typename T> struct gradient_sums {
	static constexpr int sums = 2, width = vector_width<T>;
	using acc = acc_t<T>;
	const T *dy, *dy2, *x, *y; /* dy2, y: or NULL */
	const acc *values, *gamma, *beta;
	double *dstat;
	T *g; /* NULL: not wanted */
	int64_t channels;
	bool relu, residual;

	/* Whether what the rectifier let through at this element was positive. */
	__device__ bool passes(acc out, acc xhat, int64_t c) const
	{
		return residual ? !y || !(out <= 0) : !(gamma[c] * xhat + beta[c] <= 0);
	}

	template <int W> __device__ void row(int64_t r, int64_t c, acc (&v)[2][W]) const
	{
		const int64_t i = r * channels + c;
		acc d[W], more[W] = {}, u[W], out[W] = {};

		load(d, dy + i);
		load(u, x + i);
		if (dy2)
			load(more, dy2 + i);
		if (residual && y)
			load(out, y + i);
		for (int w = 0; w < W; w++) {
			const acc xhat = (u[w] - values[c + w]) * values[channels + c + w];

			d[w] += more[w];
			if (relu && !passes(out[w], xhat, c + w))
				d[w] = 0;
			v[0][w] += d[w];
			v[1][w] += d[w] * xhat;
		}
		if (g)
			store(g + i, d);
	}

	__device__ void done(int64_t c, const double *sum) const
	{
		dstat[c] = sum[0];
		dstat[channels + c] = sum[1];
	}
};

int grad_stats_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *)
{
	const int64_t channels = n->in[2]->shape.dim[3];

	n->workspace_bytes = channel_bytes(channels) + columns_workspace(channels, 2);
	*ret_state = n;
	return 0;
}

template <typename T> int grad_stats(const struct node *n, const struct kernel_args *a, struct err *err)
{
	using M = acc_t<T>;
	const int64_t channels = n->in[2]->shape.dim[3];
	const struct bn_attr attr = attr_of(n);
	const double *stat = cuda_in<double>(a, 3);
	const M *none = nullptr, *values = channel_launch(a, stat, none, none, (int)channels, attr.eps);
	T *g = attr.write_g ? cuda_out<T>(a, 1) : nullptr;

	columns_run(a,
		    gradient_sums<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<T>(a, 2), cuda_in<T>(a, 6), values,
				      cuda_in<M>(a, 4), cuda_in<M>(a, 5), cuda_out<double>(a, 0), g, channels,
				      attr.relu, attr.residual },
		    pixels_of(n->in[2]), channels, cuda_aligned(n, a), columns_room(a, channels));
	return cuda_launched(n, err);
}

int grad_stats_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[2]->dtype, T, return grad_stats<T>(n, a, err));
}

template <typename T> struct denormalise {
	static constexpr int width = vector_width<T>;
	using A = acc_t<T>;
	const T *g, *x;
	const A *values, *gamma, *beta;
	const double *stat, *dstat;
	T *dx;
	int channels;
	bool relu;

	template <int W> __device__ void at(int64_t i) const
	{
		const int c = (int)(i % channels);
		const double per = 1 / stat[2 * channels];
		A d[W], u[W];

		load(d, g + i);
		load(u, x + i);
		for (int k = 0; k < W; k++) {
			const A rstd = values[channels + c + k], xhat = (u[k] - values[c + k]) * rstd;
			const A mean_g = (A)(dstat[c + k] * per), mean_gx = (A)(dstat[channels + c + k] * per);

			if (relu && gamma[c + k] * xhat + beta[c + k] <= 0)
				d[k] = 0;
			d[k] = gamma[c + k] * rstd * (d[k] - mean_g - xhat * mean_gx);
		}
		store(dx + i, d);
	}
};

template <typename T> int grad_apply(const struct node *n, const struct kernel_args *a, struct err *err)
{
	using M = acc_t<T>;
	const int channels = (int)n->in[1]->shape.dim[3];
	const struct bn_attr attr = attr_of(n);
	const double *stat = cuda_in<double>(a, 2);
	const M *none = nullptr, *values = channel_launch(a, stat, none, none, channels, attr.eps);

	return cuda_each(n, a,
			 denormalise<T>{ cuda_in<T>(a, 0), cuda_in<T>(a, 1), values, cuda_in<M>(a, 4), cuda_in<M>(a, 5),
					 stat, cuda_in<double>(a, 3), cuda_out<T>(a, 0), channels, attr.relu },
			 cuda_count(n->in[1]), channels, err);
}

int grad_apply_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[1]->dtype, T, return grad_apply<T>(n, a, err));
}

template <typename M> __global__ void parameter_gradients(const double *dstat, int channels, M *dgamma, M *dbeta)
{
	const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (!inside(c < channels))
		return;
	dgamma[c] = (M)dstat[channels + c];
	dbeta[c] = (M)dstat[c];
}

int grad_params_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const int channels = (int)n->out[0]->shape.dim[0];

	BY_MASTER(n->out[0]->dtype, M,
		  launch(a, dim3(cuda_blocks(channels, WARP)), WARP, parameter_gradients<M>, cuda_in<double>(a, 0),
			 channels, cuda_out<M>(a, 0), cuda_out<M>(a, 1)));
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(bn_stats, stats_prepare, stats_run);
CUDA_KERNEL(bn_apply, channels_prepare, apply_run);
CUDA_KERNEL(bn_running, cuda_prepare, running_run);
CUDA_KERNEL(bn_keep, cuda_prepare, keep_run);
CUDA_KERNEL(bn_fixed, cuda_prepare, fixed_run);
CUDA_KERNEL(bn_infer, channels_prepare, infer_run);
CUDA_KERNEL(bn_grad_stats, grad_stats_prepare, grad_stats_run);
CUDA_KERNEL(bn_grad_apply, channels_prepare, grad_apply_run);
CUDA_KERNEL(bn_grad_params, cuda_prepare, grad_params_run);
