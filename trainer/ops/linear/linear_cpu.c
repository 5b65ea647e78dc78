/* linear_cpu.c: y = x w^T + b and its gradients, without packing: a classifier's matrices are small beside the
 * convolutions before it. Operands may be f32 or bf16 each; sums are f32. Tiles of 4 x 4 results stay in registers. */
#ifndef CPU_PASS
#include "trainer/backends/cpu/cpu.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/linear/linear.h"

#define TILE 4

struct linear_state {
	cpu_part_fn *loop;
	int64_t n, c, k;
	int parts;
	bool a_bf, b_bf, out_bf;
	const void *a, *b; /* forward x, w; dgrad dy, w; wgrad x, dy */
	const float *bias;
	void *out;
	float *dbias;
};

#define CPU_BODY "trainer/ops/linear/linear_cpu.c"
#include "trainer/backends/cpu/each.h"

static int linear_new(const struct kernel_env *env, const struct node *n, cpu_part_fn *loop, struct linear_state **ret,
		      struct err *err)
{
	struct linear_state *s;
	void *state;
	bool bf[3];
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 0 }, &bf[0], err);

	if (!rc && n->in[1]->dtype != DTYPE_BF16)
		rc = cpu_want(n, n->in[1], DTYPE_F32, err);
	if (!rc && n->out[0]->dtype != DTYPE_BF16)
		rc = cpu_want(n, n->out[0], DTYPE_F32, err);
	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->loop = loop;
	s->a_bf = bf[0];
	s->b_bf = n->in[1]->dtype == DTYPE_BF16;
	s->out_bf = n->out[0]->dtype == DTYPE_BF16;
	*ret = s;
	(void)env;
	return 0;
}

static void linear_sizes(struct linear_state *s, const struct kernel_env *env, int64_t n, int64_t c, int64_t k)
{
	s->n = n;
	s->c = c;
	s->k = k;
	s->parts = cpu_parts(env, n * c * k / 16);
}

static int linear_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct linear_state *s;
	int rc = n->in[2] ? cpu_want(n, n->in[2], DTYPE_F32, err) : 0;

	if (!rc)
		rc = linear_new(env, n, CPU_PICK(env, linear_loop), &s, err);
	if (rc)
		return rc;
	linear_sizes(s, env, n->in[0]->shape.dim[0], n->in[0]->shape.dim[1], n->out[0]->shape.dim[1]);
	*ret_state = s;
	return 0;
}

static int linear_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct linear_state s = *(const struct linear_state *)state;

	(void)err;
	s.a = args->in[0];
	s.b = args->in[1];
	s.bias = args->in[2];
	s.out = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

static int linear_dgrad_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct linear_state *s;
	int rc = linear_new(env, n, CPU_PICK(env, linear_dgrad_loop), &s, err);

	if (rc)
		return rc;
	linear_sizes(s, env, n->out[0]->shape.dim[0], n->out[0]->shape.dim[1], n->in[0]->shape.dim[1]);
	*ret_state = s;
	return 0;
}

static int linear_dgrad_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct linear_state s = *(const struct linear_state *)state;

	(void)err;
	s.a = args->in[0];
	s.b = args->in[1];
	s.out = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

static int linear_wgrad_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct linear_state *s;
	int rc = cpu_want(n, n->out[0], DTYPE_F32, err);

	if (!rc && n->out[1])
		rc = cpu_want(n, n->out[1], DTYPE_F32, err);
	if (!rc)
		rc = linear_new(env, n, CPU_PICK(env, linear_wgrad_loop), &s, err);
	if (rc)
		return rc;
	linear_sizes(s, env, n->in[0]->shape.dim[0], n->in[0]->shape.dim[1], n->in[1]->shape.dim[1]);
	*ret_state = s;
	return 0;
}

static int linear_wgrad_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct linear_state s = *(const struct linear_state *)state;

	(void)err;
	s.a = args->in[0];
	s.b = args->in[1];
	s.out = args->out[0];
	s.dbias = args->out[1];
	cpu_parallel(s.parts, s.loop, &s);
	return 0;
}

extern const struct kernel linear_cpu, linear_dgrad_cpu, linear_wgrad_cpu;
const struct kernel linear_cpu = { .prepare = linear_prepare, .run = linear_run, .release = cpu_state_release };
const struct kernel linear_dgrad_cpu = { .prepare = linear_dgrad_prepare,
					 .run = linear_dgrad_run,
					 .release = cpu_state_release };
const struct kernel linear_wgrad_cpu = { .prepare = linear_wgrad_prepare,
					 .run = linear_wgrad_run,
					 .release = cpu_state_release };

#else

VEC_INLINE float V(one)(const void *p, int64_t i, const bool bf)
{
	uint32_t u;
	float f;

	if (!bf)
		return ((const float *)p)[i];
	u = (uint32_t)((const uint16_t *)p)[i] << 16;
	memcpy(&f, &u, sizeof(f));
	return f;
}

/* y[n0.., k0..], rows by cols results: dot products along c. */
VEC_INLINE void V(dot_tile)(const struct linear_state *s, int64_t n0, int64_t k0, const bool a_bf, const bool b_bf)
{
	int rows = s->n - n0 < TILE ? (int)(s->n - n0) : TILE, cols = s->k - k0 < TILE ? (int)(s->k - k0) : TILE;
	v16 acc[TILE][TILE] = { 0 };

	for (int64_t c = 0; c < s->c; c += LANES) {
		v16 w[TILE];

#pragma GCC unroll 4
		for (int j = 0; j < TILE; j++)
			w[j] = vload_any(s->b, (k0 + (j < cols ? j : 0)) * s->c + c, s->c - c, b_bf);
#pragma GCC unroll 4
		for (int i = 0; i < TILE; i++) {
			v16 x = vload_any(s->a, (n0 + (i < rows ? i : 0)) * s->c + c, s->c - c, a_bf);

#pragma GCC unroll 4
			for (int j = 0; j < TILE; j++)
				acc[i][j] += x * w[j];
		}
	}
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < cols; j++) {
			v16 y = { vsum(acc[i][j]) + (s->bias ? s->bias[k0 + j] : 0) };

			vstore_n(s->out, (n0 + i) * s->k + k0 + j, y, 1, s->out_bf);
		}
}

static void V(linear_loop)(void *arg, int part, int parts)
{
	const struct linear_state *s = arg;
	struct cpu_range r = cpu_split(s->k, TILE, part, parts);

	for (int64_t k = r.begin; k < r.end; k += TILE)
		for (int64_t n = 0; n < s->n; n += TILE) {
			if (s->a_bf)
				s->b_bf ? V(dot_tile)(s, n, k, true, true) : V(dot_tile)(s, n, k, true, false);
			else
				s->b_bf ? V(dot_tile)(s, n, k, false, true) : V(dot_tile)(s, n, k, false, false);
		}
}

/* out[i][c..] = sum over j of left(i, j) * right[j][c..] for `rows` values of i, where left is a[i][j] (dgrad) or
 * b[j][i] (wgrad). */
struct V(outer) {
	const void *left, *right;
	int64_t i0, rows, inner, left_i, left_j; /* strides of left */
};

VEC_INLINE void V(outer_tile)(const struct linear_state *s, const struct V(outer) * o, int64_t c, const bool l_bf,
			      const bool r_bf)
{
	v16 acc[TILE] = { 0 };

	for (int64_t j = 0; j < o->inner; j++) {
		v16 right = vload_any(o->right, j * s->c + c, s->c - c, r_bf);

#pragma GCC unroll 4
		for (int i = 0; i < TILE; i++)
			acc[i] += right *
				  V(one)(o->left, (o->i0 + (i < o->rows ? i : 0)) * o->left_i + j * o->left_j, l_bf);
	}
	for (int i = 0; i < o->rows; i++)
		vstore_any(s->out, (o->i0 + i) * s->c + c, acc[i], s->c - c, s->out_bf);
}

static inline __attribute__((unused)) void V(outer_row)(const struct linear_state *s, const struct V(outer) * o,
							bool l_bf, bool r_bf)
{
	for (int64_t c = 0; c < s->c; c += LANES) {
		if (l_bf)
			r_bf ? V(outer_tile)(s, o, c, true, true) : V(outer_tile)(s, o, c, true, false);
		else
			r_bf ? V(outer_tile)(s, o, c, false, true) : V(outer_tile)(s, o, c, false, false);
	}
}

static void V(linear_dgrad_loop)(void *arg, int part, int parts)
{
	const struct linear_state *s = arg;
	struct cpu_range r = cpu_split(s->n, TILE, part, parts);

	for (int64_t n = r.begin; n < r.end; n += TILE) {
		const struct V(outer) o = { s->a, s->b, n, r.end - n < TILE ? r.end - n : TILE, s->k, s->k, 1 };

		V(outer_row)(s, &o, s->a_bf, s->b_bf);
	}
}

static void V(linear_wgrad_loop)(void *arg, int part, int parts)
{
	const struct linear_state *s = arg;
	struct cpu_range r = cpu_split(s->k, TILE, part, parts);

	for (int64_t k = r.begin; k < r.end; k += TILE) {
		const struct V(outer) o = { s->b, s->a, k, r.end - k < TILE ? r.end - k : TILE, s->n, 1, s->k };

		V(outer_row)(s, &o, s->b_bf, s->a_bf);
	}
	for (int64_t k = r.begin; s->dbias && k < r.end; k++) {
		double sum = 0;

		for (int64_t n = 0; n < s->n; n++)
			sum += (double)V(one)(s->b, n * s->k + k, s->b_bf);
		s->dbias[k] = (float)sum;
	}
}

#endif
