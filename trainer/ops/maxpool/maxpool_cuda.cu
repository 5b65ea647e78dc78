/* maxpool_cuda.cu: the windowed maximum; its gradient is gathered by each input pixel from the windows over it, in
 * their order. A thread an element; neighbours in memory are neighbours in the block. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/maxpool/maxpool.h"
}

namespace {

struct sizes {
	int kernel, stride, pad;
	int h, w, c; /* x */
	int p, q;    /* y */
};

struct sizes sizes_of(const struct node *n, const struct tensor *y)
{
	const struct maxpool_attr *a = static_cast<const struct maxpool_attr *>(n->attr);
	const int64_t *in = a->in_shape.dim, *out = y->shape.dim;

	return { a->kernel, a->stride, a->pad, (int)in[1], (int)in[2], (int)in[3], (int)out[1], (int)out[2] };
}

/* Element of a [N,rows,columns,C] array. */
struct place {
	int64_t image;
	int row, column, c;
};

__device__ struct place place_of(int64_t i, int rows, int columns, int channels)
{
	const int64_t pixel = i / channels;

	return { pixel / columns / rows, (int)(pixel / columns % rows), (int)(pixel % columns), (int)(i % channels) };
}

template <typename T> struct forward {
	static constexpr int width = 1;
	struct sizes z;
	const T *x;
	T *y;
	uint8_t *index;

	template <int W> __device__ void at(int64_t i) const
	{
		const struct place o = place_of(i, z.p, z.q, z.c);
		acc_t<T> best = 0;
		int found = -1;

		for (int k = 0; k < z.kernel * z.kernel; k++) {
			const int h = o.row * z.stride - z.pad + k / z.kernel;
			const int w = o.column * z.stride - z.pad + k % z.kernel;
			acc_t<T> v;

			if (!inside(h >= 0 && h < z.h && w >= 0 && w < z.w))
				continue;
			v = widen(x[((o.image * z.h + h) * z.w + w) * z.c + o.c]);
			if (found < 0 || v > best || (v != v && best == best)) {
				found = k;
				best = v;
			}
		}
		y[i] = narrow<T>(best);
		index[i] = (uint8_t)found;
	}
};

template <typename T> struct backward {
	static constexpr int width = 1;
	struct sizes z;
	const T *dy;
	const uint8_t *index;
	T *dx;

	template <int W> __device__ void at(int64_t i) const
	{
		const struct place o = place_of(i, z.h, z.w, z.c);
		acc_t<T> sum = 0;

		for (int k = z.kernel * z.kernel - 1; k >= 0; k--) { /* windows in their order */
			const int h = o.row + z.pad - k / z.kernel, w = o.column + z.pad - k % z.kernel;
			const int p = h / z.stride, q = w / z.stride;
			int64_t at;

			if (h % z.stride || w % z.stride || !inside(h >= 0 && w >= 0 && p < z.p && q < z.q))
				continue;
			at = ((o.image * z.p + p) * z.q + q) * z.c + o.c;
			if (index[at] == k)
				sum += widen(dy[at]);
		}
		dx[i] = narrow<T>(sum);
	}
};

int maxpool_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->out[0]);

	BY_TYPE(n->in[0]->dtype, T,
		return cuda_each(n, a, forward<T>{ z, cuda_in<T>(a, 0), cuda_out<T>(a, 0), cuda_out<uint8_t>(a, 1) },
				 cuda_count(n->out[0]), 0, err));
}

int maxpool_grad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->in[0]);

	BY_TYPE(n->in[0]->dtype, T,
		return cuda_each(n, a, backward<T>{ z, cuda_in<T>(a, 0), cuda_in<uint8_t>(a, 1), cuda_out<T>(a, 0) },
				 cuda_count(n->out[0]), 0, err));
}

} // namespace

CUDA_KERNEL(maxpool, cuda_prepare, maxpool_run);
CUDA_KERNEL(maxpool_grad, cuda_prepare, maxpool_grad_run);
