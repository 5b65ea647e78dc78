/* SPDX-License-Identifier: Apache-2.0 */
/* maxpool_cuda.cu: the windowed maximum. Each input pixel gathers its gradient from the windows that cover it, in their
 * order. A thread handles neighbouring channels of one pixel; threads of a block access neighbouring memory. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/maxpool/maxpool.h"
}

inline namespace maxpool_kernels {

struct maxpool_sizes {
	int kernel, stride, pad;
	int h, w, c; /* x */
	int p, q;    /* y */
};

struct maxpool_sizes read_maxpool_sizes(const struct node *n, const struct tensor *y)
{
	const struct maxpool_attr *a = static_cast<const struct maxpool_attr *>(n->attr);
	const int64_t *in = a->in_shape.dim, *out = y->shape.dim;

	return { a->kernel, a->stride, a->pad, (int)in[1], (int)in[2], (int)in[3], (int)out[1], (int)out[2] };
}

/* Position of an element in a [N,rows,columns,C] array. */
struct place {
	int64_t image;
	int row, column, c;
};

template <typename I> __device__ struct place split_index(I i, unsigned rows, unsigned columns, unsigned channels)
{
	const I pixel = i / channels, line = pixel / columns;

	return { (int64_t)(line / rows), (int)(line % rows), (int)(pixel % columns), (int)(i % channels) };
}

/* Uses 32-bit division where possible, which is several times faster. */
__device__ struct place find_place(int64_t i, int rows, int columns, int channels)
{
	if (i <= UINT32_MAX)
		return split_index((uint32_t)i, (unsigned)rows, (unsigned)columns, (unsigned)channels);
	return split_index((uint64_t)i, (unsigned)rows, (unsigned)columns, (unsigned)channels);
}

__device__ int clamp_between(int v, int least, int most)
{
	return v < least ? least : v > most ? most : v;
}

template <typename T> struct maxpool_forward {
	static constexpr int width = vector_width<T>, ahead = 3; /* pixels loaded ahead */
	struct maxpool_sizes z;
	const T *x;
	T *y;
	uint8_t *index;

	/* The maxima so far; index -1: none yet. */
	template <int W> struct winners {
		acc_t<T> v[W];
		int index[W];

		__device__ void meet(const bits<T, W> &pixel, int k)
		{
			acc_t<T> u[W];

			decompress(u, pixel);
			for (int i = 0; i < W; i++)
				if (index[i] < 0 || u[i] > v[i] || (u[i] != u[i] && v[i] == v[i])) {
					index[i] = k;
					v[i] = u[i];
				}
		}
	};

	/* Processes row r of the window that starts at column `left` of the line. */
	template <int W> __device__ void meet_row(winners<W> &best, const T *line, int left, int r) const
	{
		for (int s = 0; s < z.kernel; s += ahead) {
			bits<T, W> pixel[ahead];

			for (int j = 0; j < ahead; j++)
				pixel[j] = fetch<W>(line + (int64_t)clamp_between(left + s + j, 0, z.w - 1) * z.c);
			for (int j = 0; j < ahead; j++)
				if (s + j < z.kernel && inside(left + s + j >= 0 && left + s + j < z.w))
					best.meet(pixel[j], r * z.kernel + s + j);
		}
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const struct place o = find_place(i, z.p, z.q, z.c);
		const int left = o.column * z.stride - z.pad;
		winners<W> best;
		pack<uint8_t, W> found;

		for (int k = 0; k < W; k++)
			best.v[k] = 0, best.index[k] = -1;
		for (int r = 0; r < z.kernel; r++) {
			const int h = o.row * z.stride - z.pad + r;

			if (inside(h >= 0 && h < z.h))
				meet_row(best, x + (o.image * z.h + h) * z.w * z.c + o.c, left, r);
		}
		for (int k = 0; k < W; k++)
			found.v[k] = (uint8_t)best.index[k];
		store(y + i, best.v);
		*reinterpret_cast<pack<uint8_t, W> *>(index + i) = found;
	}
};

template <typename T> struct maxpool_backward {
	static constexpr int width = vector_width<T>, ahead = 2; /* windows loaded ahead */
	struct maxpool_sizes z;
	const T *dy;
	const uint8_t *index;
	T *dx;

	/* First window that covers line or column h. */
	__device__ int first_over(int h) const
	{
		const int early = h + z.pad - z.kernel;

		return early < 0 ? 0 : early / z.stride + 1;
	}

	__device__ int last_over(int h, int windows) const
	{
		return clamp_between((h + z.pad) / z.stride, 0, windows - 1);
	}

	/* Adds the gradients of windows first to last of a line. line: offset of its start; k: the pixel's position in
	 * window 0, which decreases by the stride from window to window. */
	template <int W> __device__ void gather(acc_t<T> (&sum)[W], int64_t line, int first, int last, int k) const
	{
		for (int q = first; q <= last; q += ahead) {
			bits<T, W> d[ahead];
			pack<uint8_t, W> won[ahead];

			for (int j = 0; j < ahead; j++) {
				const int64_t at = line + (int64_t)clamp_between(q + j, first, last) * z.c;

				d[j] = fetch<W>(dy + at);
				won[j] = *reinterpret_cast<const pack<uint8_t, W> *>(index + at);
			}
			for (int j = 0; j < ahead; j++) {
				const bool there = inside(q + j <= last);
				acc_t<T> v[W];

				decompress(v, d[j]);
				for (int w = 0; w < W; w++)
					sum[w] += there && won[j].v[w] == k - (q + j) * z.stride ? v[w] : 0;
			}
		}
	}

	template <int W> __device__ void at(int64_t i) const
	{
		const struct place o = find_place(i, z.h, z.w, z.c);
		const int bottom = last_over(o.row, z.p), left = first_over(o.column), right = last_over(o.column, z.q);
		acc_t<T> sum[W] = {};

		for (int p = first_over(o.row); p <= bottom; p++)
			gather(sum, (o.image * z.p + p) * z.q * z.c + o.c, left, right,
			       (o.row + z.pad - p * z.stride) * z.kernel + o.column + z.pad);
		store(dx + i, sum);
	}
};

void run_maxpool_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const struct maxpool_sizes z = read_maxpool_sizes(n, n->out[0]);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, maxpool_forward<T>{ z, cuda_in<T>(a, 0), cuda_out<T>(a, 0), cuda_out<uint8_t>(a, 1) },
			  { cuda_count(n->out[0]), z.c }));
}

void run_maxpool_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);
	const struct maxpool_sizes z = read_maxpool_sizes(n, n->in[0]);

	BY_TYPE(n->in[0]->dtype, T,
		cuda_each(n, a, maxpool_backward<T>{ z, cuda_in<T>(a, 0), cuda_in<uint8_t>(a, 1), cuda_out<T>(a, 0) },
			  { cuda_count(n->out[0]), z.c }));
}

} // namespace maxpool_kernels

CUDA_KERNEL(maxpool, cuda_prepare, run_maxpool_cuda);
CUDA_KERNEL(maxpool_grad, cuda_prepare, run_maxpool_grad_cuda);
