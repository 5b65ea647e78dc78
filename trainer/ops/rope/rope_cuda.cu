/* SPDX-License-Identifier: Apache-2.0 */
/* rope_cuda.cu: the rotation of queries and keys. A thread computes one channel, or one pair, of every head of a
 * row. */
#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/rope/rope.h"
}

inline namespace rope_kernels
{

template <typename T> struct rope_turns {
	static constexpr int width = 1;
	using A = acc_t<T>;
	struct rope_attr a;
	struct rope_copy copy[3];
	const T *in[3];
	T *out[3];
	const int32_t *first; /* NULL: 0 */
	int64_t from_step[3], to_step[3]; /* of each copy */
	bool back;

	/* Channels i, and i + half if it is in the rotated part, of one group of heads. */
	__device__ void turn(const struct rope_copy &c, const T *from, T *to, const int64_t (&at)[2],
			     const A (&cs)[2]) const
	{
		A v[2] = {};
		const int n = at[1] != at[0] ? 2 : 1;

		for (int k = 0; k < n; k++) {
			for (int64_t h = 0; h < c.n; h++)
				v[k] += (A)widen(from[h * a.d + at[k]]);
			v[k] *= (A)c.scale;
		}
		const A turned[2] = { n == 2 ? v[0] * cs[0] - v[1] * cs[1] : v[0], v[1] * cs[0] + v[0] * cs[1] };

		for (int k = 0; k < n; k++)
			for (int64_t h = 0; h < c.times; h++)
				to[h * a.d + at[k]] = narrow<T>(turned[k]);
	}

	template <int W> __device__ void at(int64_t index) const
	{
		const int64_t half = a.rotary / 2, each = a.d - half, row = index / each, i = index % each;
		const int64_t channels[2] = { i < half ? i : i + half, i + half };
		const int64_t position = row % a.seq + (first ? *first : 0);
		const double angle = i < half ? (double)position * a.frequency[i] : 0;
		const A cs[2] = { (A)(cos(angle) * a.factor), (A)((back ? -1 : 1) * sin(angle) * a.factor) };
		const A none[2] = { 1, 0 };

		for (int k = 0; k < 3; k++) {
			const struct rope_copy &c = copy[k];
			const T *from = in[c.source] + row * from_step[k] + c.from;
			T *to = out[c.target] + row * to_step[k] + c.to;

			for (int64_t h = 0; h < c.count; h++)
				turn(c, from + h * c.n * a.d, to + h * c.times * a.d, channels, c.turns ? cs : none);
		}
	}
};

template <typename T> void launch_rope(const struct node *n, const struct kernel_args *a, bool back)
{
	rope_turns<T> f = { *static_cast<const struct rope_attr *>(n->attr), {}, {}, {}, {}, {}, {}, back };
	const int64_t rows = n->in[0]->shape.dim[0];

	rope_copies(&f.a, back, back ? !n->out[1] : !n->in[1], f.copy);
	for (int i = 0; i < 3; i++) {
		f.from_step[i] = n->in[f.copy[i].source]->shape.dim[1];
		f.to_step[i] = n->out[f.copy[i].target]->shape.dim[1];
		f.in[i] = i < n->n_in ? cuda_in<T>(a, i) : nullptr;
		f.out[i] = i < n->n_out ? cuda_out<T>(a, i) : nullptr;
	}
	f.first = !back && n->in[3] ? cuda_in<int32_t>(a, 3) : nullptr;
	cuda_each(n, a, f, { rows * (f.a.d - f.a.rotary / 2), 0 });
}

void run_rope_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_rope<T>(n, a, false));
}

void run_rope_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct node *n = cuda_node(state);

	BY_TYPE(n->in[0]->dtype, T, launch_rope<T>(n, a, true));
}

} // namespace rope_kernels

CUDA_KERNEL(rope, cuda_prepare, run_rope_cuda);
CUDA_KERNEL(rope_grad, cuda_prepare, run_rope_grad_cuda);
