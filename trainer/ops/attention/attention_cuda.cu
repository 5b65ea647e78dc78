/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cuda.cu: causal attention. In 16 bits cuDNN computes it where possible, else tiles on tensor cores
 * (flash_cuda.cu); in f32 tiles (tiled_cuda.cu). In f64, and for other head sizes, a warp computes one query (forward
 * and dq) or one key (dk and dv). No seq x seq matrix is stored. */
#include "trainer/ops/attention/attention_cuda.h"

#include <stdlib.h>

#include "trainer/backends/cuda/attend.h"

extern "C" {
#include "trainer/backends/cuda/attention_plan.h"
}

inline namespace attention_kernels {

using sizes = struct attention_sizes;

/* The head and position of a warp. */
__device__ struct spot find_warp_spot(const sizes &z, int64_t number)
{
	const int64_t position = number / z.heads;

	return { position / z.seq, number % z.heads, (int)(position % z.seq) };
}

/* Copies a head, times factor, to this warp's part of shared memory. */
template <typename A, typename T> __device__ void stage_head(A *to, const T *from, A factor, int d)
{
	for (int i = (int)threadIdx.x % WARP; i < d; i += WARP)
		to[i] = (A)widen(from[i]) * factor;
}

/* The score of two staged heads. */
template <typename A, typename T> __device__ A compute_score(const sizes &z, const A *head, const T *row)
{
	return soft_cap(head_dot(head, row, z.d), (A)z.cap);
}

/* The slope of a capped score. */
template <typename A> __device__ A score_slope(const sizes &z, A score)
{
	const A bent = z.cap > 0 ? score / (A)z.cap : A(0);

	return 1 - bent * bent;
}

template <typename A> __device__ A compute_scale(const sizes &z)
{
	return (A)(1 / sqrt((double)z.d));
}

template <typename T>
__global__ void attention_forward_kernel(sizes z, const step_page *page, const T *qkv, T *y, acc_t<T> *lse)
{
	using A = acc_t<T>;
	SHARED(A, queries, QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp;
	const struct spot s = find_warp_spot(z, number < z.rows ? number : 0);
	const struct mask m = make_attention_mask(z, s, page);
	const int begin = begin_at(z, s, s.i);
	const T *keys = qkv + qkv_at(z, s, begin) + z.c;
	A *q = queries + warp * HEAD_MAX, out[HEAD_EACH] = {}, of_row;

	stage_head(q, qkv + qkv_at(z, s, s.i), compute_scale<A>(z), z.d);
	__syncthreads();
	if (number >= z.rows)
		return;
	of_row = warp_answer(q,
			     head_rows<T>{ keys, keys + z.c, 3 * z.c, s.i + 1 - begin, z.d, z.cap },
			     [&](int j) { return (A)m(s.i, begin + j); }, out);
	head_put(y + y_at(z, s, s.i), out, A(1), z.d);
	if (threadIdx.x % WARP == 0)
		lse[lse_at(z, s, s.i)] = of_row;
}

/* dq of one query per warp: ds = p (mask dp - dy . y) / sqrt(d), with dp = dy . v. */
template <typename T> __global__ void attention_query_kernel(sizes z, const step_page *page, gradient<T> b)
{
	using A = acc_t<T>;
	SHARED(A, shared, 2 * QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp;
	const struct spot s = find_warp_spot(z, number < z.rows ? number : 0);
	const struct mask m = make_attention_mask(z, s, page);
	const T *keys = b.qkv + qkv_at(z, s, 0) + z.c, *values = keys + z.c;
	A *q = shared + 2 * warp * HEAD_MAX, *dy = q + HEAD_MAX, dq[HEAD_EACH] = {}, inner = 0;
	const A lse = b.lse[lse_at(z, s, s.i)];

	stage_head(q, b.qkv + qkv_at(z, s, s.i), compute_scale<A>(z), z.d);
	stage_head(dy, b.dy + y_at(z, s, s.i), A(1), z.d);
	__syncthreads();
	if (number >= z.rows)
		return;
	for (int i = lane; i < z.d; i += WARP)
		inner += dy[i] * (A)widen(b.y[y_at(z, s, s.i) + i]);
	inner = warp_sum(inner);
	for (int from = begin_at(z, s, s.i); from <= s.i; from += WARP) {
		const int j = from + lane, here = s.i + 1 - from < WARP ? s.i + 1 - from : WARP;
		A ds = 0;

		if (j <= s.i) {
			const A score = compute_score(z, q, keys + (int64_t)j * 3 * z.c);

			ds = exp(score - lse) * score_slope(z, score) *
			     ((A)m(s.i, j) * head_dot(dy, values + (int64_t)j * 3 * z.c, z.d) - inner);
		}
		for (int k = 0; k < here; k++)
			head_add(dq, __shfl_sync(WHOLE_WARP, ds, k), keys + (int64_t)(from + k) * 3 * z.c, z.d);
	}
	head_put(b.dqkv + qkv_at(z, s, s.i), dq, compute_scale<A>(z), z.d);
	if (lane == 0)
		b.inner[lse_at(z, s, s.i)] = inner;
}

/* dk and dv of one key per warp, over the queries that see key s.i: query s.i and all later ones. */
template <typename T> __global__ void attention_key_kernel(sizes z, const step_page *page, gradient<T> b)
{
	using A = acc_t<T>;
	SHARED(A, shared, 2 * QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp;
	const struct spot s = find_warp_spot(z, number < z.rows ? number : 0);
	const struct mask m = make_attention_mask(z, s, page);
	const T *queries = b.qkv + qkv_at(z, s, 0), *dy = b.dy + y_at(z, s, 0);
	A *key = shared + 2 * warp * HEAD_MAX, *value = key + HEAD_MAX, dk[HEAD_EACH] = {}, dv[HEAD_EACH] = {};

	stage_head(key, b.qkv + qkv_at(z, s, s.i) + z.c, compute_scale<A>(z), z.d);
	stage_head(value, b.qkv + qkv_at(z, s, s.i) + 2 * z.c, A(1), z.d);
	__syncthreads();
	if (number >= z.rows)
		return;
	for (int from = s.i; from < z.seq; from += WARP) {
		const int i = from + lane, here = z.seq - from < WARP ? z.seq - from : WARP;
		A p = 0, ds = 0;

		if (inside(i < z.seq) && begin_at(z, s, i) <= s.i) {
			const A dropped = (A)m(i, s.i), dp = head_dot(value, dy + (int64_t)i * z.c, z.d);

			const A score = compute_score(z, key, queries + (int64_t)i * 3 * z.c);

			p = exp(score - b.lse[lse_at(z, s, i)]);
			ds = p * score_slope(z, score) * (dropped * dp - b.inner[lse_at(z, s, i)]);
			p *= dropped;
		}
		for (int k = 0; k < here; k++) {
			head_add(dv, __shfl_sync(WHOLE_WARP, p, k), dy + (int64_t)(from + k) * z.c, z.d);
			head_add(dk, __shfl_sync(WHOLE_WARP, ds, k), queries + (int64_t)(from + k) * 3 * z.c, z.d);
		}
	}
	head_put(b.dqkv + qkv_at(z, s, s.i) + z.c, dk, compute_scale<A>(z), z.d);
	head_put(b.dqkv + qkv_at(z, s, s.i) + 2 * z.c, dv, A(1), z.d);
}

/* ---- choice of the implementation ---- */

struct attention_layer {
	const struct node *n;
	sizes z;
	enum dtype type;
	struct attention_plan *plan; /* NULL: own kernels */
};

constexpr size_t room_align = 256;

void *find_library_workspace(const struct kernel_args *a)
{
	const uintptr_t at = reinterpret_cast<uintptr_t>(a->workspace);

	return reinterpret_cast<void *>((at + room_align - 1) / room_align * room_align);
}

/* Plans cuDNN's implementation where it can be used: it sees all before a position, its dropout masks differ from ours,
 * and its backward pass adds in no fixed order. */
int plan_cudnn_attention(struct attention_layer *l, const struct kernel_env *env, bool backward, struct err *err)
{
	const sizes &z = l->z;
	const struct attention_spec s = { backward, l->type, z.rows / z.heads / z.seq, z.heads, z.seq, z.d };
	int rc;

	if (!flash_takes(z, l->type) || z.drops || z.spans || z.cap > 0 || env->deterministic || !z.rows)
		return 0;
	rc = attention_plan_new(&l->plan, env, &s, err);
	return rc == ERR_UNSUPPORTED ? 0 : rc;
}

void release_attention_cuda(void *state)
{
	struct attention_layer *l = static_cast<struct attention_layer *>(state);

	if (l)
		attention_plan_free(l->plan);
	free(l);
}

const char *name_attention_impl(const void *state)
{
	const struct attention_layer *l = static_cast<const struct attention_layer *>(state);

	if (l->plan)
		return "cuDNN on tensor cores";
	if (flash_takes(l->z, l->type))
		return "tiles on tensor cores";
	return tiled_takes(l->z, l->type) ? "tiles" : "a warp a row";
}

int prepare_attention_layer(const struct kernel_env *env, struct node *n, bool backward, void **ret_state,
			    struct err *err)
{
	struct attention_layer *l = static_cast<struct attention_layer *>(mem_zalloc(sizeof(*l)));
	int rc;

	l->n = n;
	l->z = read_attention_sizes(n, backward);
	l->type = n->in[0]->dtype;
	rc = l->z.d <= HEAD_MAX ? plan_cudnn_attention(l, env, backward, err)
				: err_set(err, ERR_UNSUPPORTED, "cuda: %s: head size %d: must be at most %d", n->name,
					  l->z.d, HEAD_MAX);
	if (rc) {
		release_attention_cuda(l);
		return rc;
	}
	n->workspace_bytes = backward ? (size_t)l->z.rows * (l->type == DTYPE_F64 ? sizeof(double) : sizeof(float)) : 0;
	if (l->plan && n->workspace_bytes < attention_plan_workspace(l->plan) + room_align)
		n->workspace_bytes = attention_plan_workspace(l->plan) + room_align;
	*ret_state = l;
	return 0;
}

int prepare_attention_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_attention_layer(env, n, false, ret_state, err);
}

int prepare_attention_grad_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return prepare_attention_layer(env, n, true, ret_state, err);
}

void run_attention_cuda(void *state, const struct kernel_args *a)
{
	const struct attention_layer *l = static_cast<const struct attention_layer *>(state);
	const bool aligned = cuda_aligned(l->n, a);
	sizes z = l->z;

	if (!z.rows)
		return;
	z.places = l->n->in[1] ? cuda_in<int32_t>(a, 1) : nullptr;
	if (l->plan && aligned) {
		const struct attention_operands o = { a->in[0], a->out[0],  a->out[1], nullptr,
						      nullptr,	find_library_workspace(a), a->stream };

		attention_plan_run(l->plan, l->n, &o);
		return;
	}
	if (flash_takes(z, l->type) && aligned)
		flash_forward(z, l->type, a);
	else if (tiled_takes(z, l->type) && aligned)
		tiled_forward(z, a);
	else
		BY_TYPE(l->type, T,
			launch(a, dim3(cuda_blocks(z.rows, QUERIES_EACH)), QUERIES_EACH * WARP,
			       attention_forward_kernel<T>, z, a->page, cuda_in<T>(a, 0), cuda_out<T>(a, 0),
			       cuda_out<acc_t<T>>(a, 1)));
}

template <typename T> void launch_attention_backward(const sizes &z, const struct kernel_args *a)
{
	const dim3 grid(cuda_blocks(z.rows, QUERIES_EACH));
	const gradient<T> b = make_attention_gradient<T>(a);

	launch(a, grid, QUERIES_EACH * WARP, attention_query_kernel<T>, z, a->page, b);
	launch(a, grid, QUERIES_EACH * WARP, attention_key_kernel<T>, z, a->page, b);
}

void run_attention_grad_cuda(void *state, const struct kernel_args *a)
{
	const struct attention_layer *l = static_cast<const struct attention_layer *>(state);
	const bool aligned = cuda_aligned(l->n, a);
	sizes z = l->z;

	if (!z.rows)
		return;
	z.places = l->n->in[4] ? cuda_in<int32_t>(a, 4) : nullptr;
	if (l->plan && aligned) {
		const struct attention_operands o = { a->in[1],	 a->in[2],   a->in[3], a->in[0],
						      a->out[0], find_library_workspace(a), a->stream };

		attention_plan_run(l->plan, l->n, &o);
		return;
	}
	if (flash_takes(z, l->type) && aligned)
		flash_backward(z, l->type, a);
	else if (tiled_takes(z, l->type) && aligned)
		tiled_backward(z, a);
	else
		BY_TYPE(l->type, T, launch_attention_backward<T>(z, a));
}

} // namespace attention_kernels

CUDA_KERNEL_OF(attention, prepare_attention_cuda, run_attention_cuda, release_attention_cuda, name_attention_impl);
CUDA_KERNEL_OF(attention_grad, prepare_attention_grad_cuda, run_attention_grad_cuda, release_attention_cuda,
	       name_attention_impl);
