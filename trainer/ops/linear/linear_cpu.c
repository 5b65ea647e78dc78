/* SPDX-License-Identifier: Apache-2.0 */
/* linear_cpu.c: y = x w^T + b and its gradients as products of plain matrices; packing the weights would cost more than
 * it saves. The gradient of the bias is a separate pass over dy, in partial sums of at most ROWS rows. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu_matmul.h"
#include "trainer/backends/cpu/vec.h"

#define ROWS 64
#define COLUMNS (8 * LANES)

struct linear_state {
	struct cpu_matmul *product;
	/* for the bias gradient */
	cpu_part_fn *loop;
	int64_t n, k;
	int parts;
	bool bf16;
	const void *dy;
	float *db;
};

#define CPU_BODY "trainer/ops/linear/linear_cpu.c"
#include "trainer/backends/cpu/each.h"

static int new_linear_state(const struct kernel_env *env, struct node *n, const struct dnn_matmul_spec *spec,
			    struct linear_state **ret, struct err *err)
{
	struct linear_state *s = mem_zalloc(sizeof(*s));
	int rc = cpu_matmul_get(&s->product, env, spec, err);

	if (rc) {
		free(s);
		return rc;
	}
	n->workspace_bytes = cpu_matmul_workspace_bytes(s->product);
	*ret = s;
	return 0;
}

static int prepare_linear_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct dnn_matmul_spec spec = { .m = n->in[0]->shape.dim[0],
					.n = n->out[0]->shape.dim[1],
					.k = n->in[0]->shape.dim[1],
					.b_turned = true,
					.bias = n->in[2] != NULL,
					.out_bf16 = n->out[0]->dtype == DTYPE_BF16 };
	struct linear_state *s;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &spec.bf16, err);

	if (!rc && n->in[2])
		rc = cpu_want(n, n->in[2], DTYPE_F32, err);
	if (!rc && !spec.out_bf16)
		rc = cpu_want(n, n->out[0], DTYPE_F32, err);
	if (!rc)
		rc = new_linear_state(env, n, &spec, &s, err);
	if (!rc)
		*ret_state = s;
	return rc;
}

static void run_linear_cpu(void *state, const struct kernel_args *args)
{
	struct linear_state *s = state;

	cpu_matmul_run(s->product,
		       &(struct dnn_matmul_args){ .a = args->in[0],
						  .b = args->in[1],
						  .bias = args->in[2],
						  .out = args->out[0],
						  .workspace = args->workspace });
}

static int prepare_linear_dgrad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct dnn_matmul_spec spec = { .m = n->in[0]->shape.dim[0],
					.n = n->out[0]->shape.dim[1],
					.k = n->in[0]->shape.dim[1] };
	struct linear_state *s;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 1 }, &spec.bf16, err);

	spec.out_bf16 = spec.bf16;
	if (!rc)
		rc = new_linear_state(env, n, &spec, &s, err);
	if (!rc)
		*ret_state = s;
	return rc;
}

static void run_linear_dgrad_cpu(void *state, const struct kernel_args *args)
{
	struct linear_state *s = state;

	cpu_matmul_run(s->product,
		       &(struct dnn_matmul_args){ .a = args->in[0],
						  .b = args->in[1],
						  .out = args->out[0],
						  .workspace = args->workspace });
}

/* Plans the product dy^T x, and the loop for db. */
static int prepare_linear_wgrad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct dnn_matmul_spec spec = { .m = n->out[0]->shape.dim[0],
					.n = n->out[0]->shape.dim[1],
					.k = n->in[0]->shape.dim[0],
					.a_turned = true };
	struct linear_state *s;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &spec.bf16, err);

	for (int i = 0; !rc && i < n->n_out; i++)
		if (n->out[i])
			rc = cpu_want(n, n->out[i], DTYPE_F32, err);
	if (!rc)
		rc = new_linear_state(env, n, &spec, &s, err);
	if (rc)
		return rc;
	s->loop = CPU_PICK(env, bias_loop);
	s->n = spec.k;
	s->k = spec.m;
	s->bf16 = spec.bf16;
	s->parts = cpu_parts(env, s->n * s->k);
	*ret_state = s;
	return 0;
}

static void run_linear_wgrad_cpu(void *state, const struct kernel_args *args)
{
	struct linear_state s = *(const struct linear_state *)state;

	s.dy = args->in[1];
	s.db = args->out[1];
	if (s.db)
		cpu_parallel(s.parts, s.loop, &s);
	cpu_matmul_run(s.product,
		       &(struct dnn_matmul_args){ .a = args->in[1],
						  .b = args->in[0],
						  .out = args->out[0],
						  .workspace = args->workspace });
}

static const char *name_linear_impl(const void *state)
{
	return cpu_matmul_impl(((const struct linear_state *)state)->product);
}

extern const struct kernel linear_cpu, linear_dgrad_cpu, linear_wgrad_cpu;
const struct kernel linear_cpu = {
	.prepare = prepare_linear_cpu, .run = run_linear_cpu, .release = cpu_state_release, .impl = name_linear_impl
};
const struct kernel linear_dgrad_cpu = { .prepare = prepare_linear_dgrad_cpu,
					 .run = run_linear_dgrad_cpu,
					 .release = cpu_state_release,
					 .impl = name_linear_impl };
const struct kernel linear_wgrad_cpu = { .prepare = prepare_linear_wgrad_cpu,
					 .run = run_linear_wgrad_cpu,
					 .release = cpu_state_release,
					 .impl = name_linear_impl };

#else

/* db[k..] += the sums of `rows` rows from row n on, over at most COLUMNS columns. */
VEC_INLINE void V(add_bias_block)(const struct linear_state *s, int64_t n, int64_t rows, struct cpu_range k,
				  const bool bf)
{
	vf acc[COLUMNS / LANES] = { 0 };
	int64_t whole = (k.end - k.begin) / LANES;

	for (int64_t i = n; i < n + rows; i++) {
		if (whole == COLUMNS / LANES) {
#pragma GCC unroll 8
			for (int j = 0; j < COLUMNS / LANES; j++)
				acc[j] += vload(s->dy, i * s->k + k.begin + j * LANES, bf);
			continue;
		}
		for (int64_t j = 0; j * LANES < k.end - k.begin; j++)
			acc[j] += vload_any(s->dy, i * s->k + k.begin + j * LANES, k.end - k.begin - j * LANES, bf);
	}
	for (int64_t j = 0; j * LANES < k.end - k.begin; j++) {
		int64_t at = k.begin + j * LANES, left = k.end - at;

		vstore_any(s->db, at, acc[j] + (n ? vload_any(s->db, at, left, false) : vset(0)), left, false);
	}
}

static void V(bias_loop)(void *arg, int part, int parts)
{
	const struct linear_state *s = arg;
	struct cpu_range r = cpu_split(s->k, COLUMNS, part, parts);

	if (s->n == 0)
		memset(s->db + r.begin, 0, (size_t)(r.end - r.begin) * sizeof(float));
	for (int64_t n = 0; n < s->n; n += ROWS)
		for (int64_t k = r.begin; k < r.end; k += COLUMNS) {
			struct cpu_range c = { k, r.end - k < COLUMNS ? r.end : k + COLUMNS };
			int64_t rows = s->n - n < ROWS ? s->n - n : ROWS;

			s->bf16 ? V(add_bias_block)(s, n, rows, c, true) : V(add_bias_block)(s, n, rows, c, false);
		}
}

#endif
