/* attention_cuda.cu: causal attention for every type, head size and dropout: a warp a query forward and for dq, a warp
 * a key for dk and dv. No seq x seq matrix lies in memory. */
#include "trainer/backends/cuda/attend.h"

extern "C" {
#include "trainer/ops/attention/attention.h"
}

namespace {

struct sizes {
	int64_t rows; /* heads of all positions */
	int c, d, seq, heads;
	bool drops;
	struct dropout_attr dropout;
};

struct sizes sizes_of(const struct node *n, const struct tensor *qkv)
{
	const struct attention_attr *a = static_cast<const struct attention_attr *>(n->attr);
	const int c = (int)qkv->shape.dim[1] / 3;

	return { qkv->shape.dim[0] * a->heads, c, c / (int)a->heads, (int)a->seq, (int)a->heads, a->dropout.p > 0,
		 a->dropout };
}

/* One head at one position, the work of a warp: `at` of the i-th position of its sequence. */
struct spot {
	int64_t sequence, head; /* numbers of the sequence, and of the head within it */
	int i;
};

__device__ struct spot spot_of(const struct sizes &z, int64_t number)
{
	const int64_t position = number / z.heads;

	return { position / z.seq, number % z.heads, (int)(position % z.seq) };
}

__device__ int64_t qkv_at(const struct sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * 3 * z.c + s.head * z.d;
}

__device__ int64_t y_at(const struct sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * z.c + s.head * z.d;
}

__device__ int64_t lse_at(const struct sizes &z, const struct spot &s, int i)
{
	return (s.sequence * z.seq + i) * z.heads + s.head;
}

/* What dropout does to the probability of key j for query i. */
struct mask {
	struct dropout_draw draw;
	uint64_t first;
	int seq;
	bool drops;

	__device__ double operator()(int i, int j) const
	{
		const uint64_t element = first + (uint64_t)i * (uint64_t)seq + (uint64_t)j;

		return !drops ? 1 : dropout_keeps(&draw, element) ? draw.scale : 0;
	}
};

__device__ struct mask mask_of(const struct sizes &z, const struct spot &s, const step_page *page)
{
	struct mask m = { {}, 0, z.seq, z.drops };

	if (z.drops)
		m.draw = dropout_draw(&z.dropout, page);
	m.first = (uint64_t)(s.sequence * z.heads + s.head) * (uint64_t)z.seq * (uint64_t)z.seq;
	return m;
}

/* A head in this warp's part of shared memory, times factor. */
template <typename A, typename T> __device__ void share_head(A *to, const T *from, A factor, int d)
{
	for (int i = (int)threadIdx.x % WARP; i < d; i += WARP)
		to[i] = (A)widen(from[i]) * factor;
}

template <typename A> __device__ A scale_of(const struct sizes &z)
{
	return (A)(1 / sqrt((double)z.d));
}

template <typename T>
__global__ void forward(struct sizes z, const step_page *page, const T *qkv, T *y, acc_t<T> *lse)
{
	using A = acc_t<T>;
	SHARED(A, queries, QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp;
	const struct spot s = spot_of(z, number < z.rows ? number : 0);
	const struct mask m = mask_of(z, s, page);
	A *q = queries + warp * HEAD_MAX, out[HEAD_EACH] = {}, of_row;

	share_head(q, qkv + qkv_at(z, s, s.i), scale_of<A>(z), z.d);
	__syncthreads();
	if (number >= z.rows)
		return;
	of_row = warp_answer(q, qkv + qkv_at(z, s, 0) + z.c, qkv + qkv_at(z, s, 0) + 2 * z.c, 3 * z.c, s.i + 1, z.d,
			     [&](int j) { return (A)m(s.i, j); }, out);
	head_put(y + y_at(z, s, s.i), out, A(1), z.d);
	if (threadIdx.x % WARP == 0)
		lse[lse_at(z, s, s.i)] = of_row;
}

template <typename T> struct backward {
	using A = acc_t<T>;
	const T *dy, *qkv, *y;
	const A *lse;
	A *inner; /* dy . y of each row */
	T *dqkv;
};

/* ds = p (mask dp - dy . y) / sqrt(d), with dp = dy . v. */
template <typename T> __global__ void by_query(struct sizes z, const step_page *page, backward<T> b)
{
	using A = acc_t<T>;
	SHARED(A, shared, 2 * QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp;
	const struct spot s = spot_of(z, number < z.rows ? number : 0);
	const struct mask m = mask_of(z, s, page);
	const T *keys = b.qkv + qkv_at(z, s, 0) + z.c, *values = keys + z.c;
	A *q = shared + 2 * warp * HEAD_MAX, *dy = q + HEAD_MAX, dq[HEAD_EACH] = {}, inner = 0;
	const A lse = b.lse[lse_at(z, s, s.i)];

	share_head(q, b.qkv + qkv_at(z, s, s.i), scale_of<A>(z), z.d);
	share_head(dy, b.dy + y_at(z, s, s.i), A(1), z.d);
	__syncthreads();
	if (number >= z.rows)
		return;
	for (int i = lane; i < z.d; i += WARP)
		inner += dy[i] * (A)widen(b.y[y_at(z, s, s.i) + i]);
	inner = warp_sum(inner);
	for (int from = 0; from <= s.i; from += WARP) {
		const int j = from + lane, here = s.i + 1 - from < WARP ? s.i + 1 - from : WARP;
		A ds = 0;

		if (j <= s.i)
			ds = exp(head_dot(q, keys + (int64_t)j * 3 * z.c, z.d) - lse) *
			     ((A)m(s.i, j) * head_dot(dy, values + (int64_t)j * 3 * z.c, z.d) - inner);
		for (int k = 0; k < here; k++)
			head_add(dq, __shfl_sync(WHOLE_WARP, ds, k), keys + (int64_t)(from + k) * 3 * z.c, z.d);
	}
	head_put(b.dqkv + qkv_at(z, s, s.i), dq, scale_of<A>(z), z.d);
	if (lane == 0)
		b.inner[lse_at(z, s, s.i)] = inner;
}

/* The queries that see key s.i: it and all behind it. */
template <typename T> __global__ void by_key(struct sizes z, const step_page *page, backward<T> b)
{
	using A = acc_t<T>;
	SHARED(A, shared, 2 * QUERIES_EACH * HEAD_MAX);
	const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
	const int64_t number = (int64_t)blockIdx.x * QUERIES_EACH + warp;
	const struct spot s = spot_of(z, number < z.rows ? number : 0);
	const struct mask m = mask_of(z, s, page);
	const T *queries = b.qkv + qkv_at(z, s, 0), *dy = b.dy + y_at(z, s, 0);
	A *key = shared + 2 * warp * HEAD_MAX, *value = key + HEAD_MAX, dk[HEAD_EACH] = {}, dv[HEAD_EACH] = {};

	share_head(key, b.qkv + qkv_at(z, s, s.i) + z.c, scale_of<A>(z), z.d);
	share_head(value, b.qkv + qkv_at(z, s, s.i) + 2 * z.c, A(1), z.d);
	__syncthreads();
	if (number >= z.rows)
		return;
	for (int from = s.i; from < z.seq; from += WARP) {
		const int i = from + lane, here = z.seq - from < WARP ? z.seq - from : WARP;
		A p = 0, ds = 0;

		if (i < z.seq) {
			const A dropped = (A)m(i, s.i), dp = head_dot(value, dy + (int64_t)i * z.c, z.d);

			p = exp(head_dot(key, queries + (int64_t)i * 3 * z.c, z.d) - b.lse[lse_at(z, s, i)]);
			ds = p * (dropped * dp - b.inner[lse_at(z, s, i)]);
			p *= dropped;
		}
		for (int k = 0; k < here; k++) {
			head_add(dv, __shfl_sync(WHOLE_WARP, p, k), dy + (int64_t)(from + k) * z.c, z.d);
			head_add(dk, __shfl_sync(WHOLE_WARP, ds, k), queries + (int64_t)(from + k) * 3 * z.c, z.d);
		}
	}
	head_put(b.dqkv + qkv_at(z, s, s.i) + z.c, dk, scale_of<A>(z), z.d);
	head_put(b.dqkv + qkv_at(z, s, s.i) + 2 * z.c, dv, A(1), z.d);
}

int check(const struct node *n, const struct sizes &z, struct err *err)
{
	if (z.d <= HEAD_MAX)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "cuda: %s: heads of %d numbers; at most %d", n->name, z.d, HEAD_MAX);
}

int attention_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	*ret_state = n;
	return check(n, sizes_of(n, n->in[0]), err);
}

int attention_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->in[0]);

	if (!z.rows)
		return 0;
	BY_TYPE(n->in[0]->dtype, T,
		launch(a, dim3(cuda_blocks(z.rows, QUERIES_EACH)), QUERIES_EACH * WARP, forward<T>, z, a->page,
		       cuda_in<T>(a, 0), cuda_out<T>(a, 0), cuda_out<acc_t<T>>(a, 1)));
	return cuda_launched(n, err);
}

int attention_grad_prepare(const struct kernel_env *, struct node *n, void **ret_state, struct err *err)
{
	const struct sizes z = sizes_of(n, n->in[1]);

	n->workspace_bytes = (size_t)z.rows * sizeof(double);
	*ret_state = n;
	return check(n, z, err);
}

int attention_grad_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct node *n = cuda_node(state);
	const struct sizes z = sizes_of(n, n->in[1]);
	const dim3 grid(cuda_blocks(z.rows, QUERIES_EACH));

	if (!z.rows)
		return 0;
	BY_TYPE(n->in[1]->dtype, T,
		const backward<T> b = { cuda_in<T>(a, 0), cuda_in<T>(a, 1), cuda_in<T>(a, 2), cuda_in<acc_t<T>>(a, 3),
					static_cast<acc_t<T> *>(a->workspace), cuda_out<T>(a, 0) };

		launch(a, grid, QUERIES_EACH * WARP, by_query<T>, z, a->page, b);
		launch(a, grid, QUERIES_EACH * WARP, by_key<T>, z, a->page, b));
	return cuda_launched(n, err);
}

} // namespace

CUDA_KERNEL(attention, attention_prepare, attention_run);
CUDA_KERNEL(attention_grad, attention_grad_prepare, attention_grad_run);
