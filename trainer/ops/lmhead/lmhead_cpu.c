/* lmhead_cpu.c: the classifier with its loss, a block of rows at a time: logits, then their gradients in the operands'
 * type, then the two products that use them. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/matmul.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"

#define LOGITS_BYTES ((int64_t)64 << 20) /* of a block, about: dw is read and written once for each */
#define ROWS_MIN 32
#define ROWS_MAX 512
#define FOLD 64 /* vectors that are summed in f32 before they join the row's f64 sum */

/* The products of one block: all blocks but the last have the same number of rows. */
struct lmhead_products {
	struct cpu_matmul *logits, *dx, *dw, *dw_more; /* dw_more adds to what is there */
};

struct lmhead_state {
	cpu_part_fn *loop;
	struct lmhead_products whole, tail;
	int64_t rows, block, c, v;
	int parts;
	bool bf16;
	size_t loss_at, logits_at, grads_at, scratch_at; /* in the workspace; grads_at = logits_at in f32 */
	/* of one run */
	const int32_t *targets;
	float *kept;
	double scale, *loss;
	bool wants_grads;
	int64_t first, n; /* of the block */
	float *logits;	  /* [block][v] */
	void *grads;	  /* [block][v] in the operands' type */
};

#define CPU_BODY "trainer/ops/lmhead/lmhead_cpu.c"
#include "trainer/backends/cpu/each.h"

static void want_scratch(size_t *most, const struct cpu_matmul *m)
{
	if (m && cpu_matmul_workspace_bytes(m) > *most)
		*most = cpu_matmul_workspace_bytes(m);
}

/* The products of a block of n rows that the node's outputs ask for. */
static int products_get(struct lmhead_products *ret, const struct kernel_env *env, const struct node *n, int64_t rows,
			struct err *err)
{
	int64_t c = n->in[0]->shape.dim[1], v = n->in[1]->shape.dim[0];
	bool bf16 = n->in[0]->dtype == DTYPE_BF16;
	struct dnn_matmul_spec logits = { .m = rows, .n = v, .k = c, .bf16 = bf16, .b_turned = true };
	struct dnn_matmul_spec dx = { .m = rows, .n = c, .k = v, .bf16 = bf16, .out_bf16 = bf16 };
	struct dnn_matmul_spec dw = { .m = v, .n = c, .k = rows, .bf16 = bf16, .a_turned = true };
	int rc = cpu_matmul_get(&ret->logits, env, &logits, err);

	if (!rc && n->out[LMHEAD_DX])
		rc = cpu_matmul_get(&ret->dx, env, &dx, err);
	if (!rc && n->out[LMHEAD_DW])
		rc = cpu_matmul_get(&ret->dw, env, &dw, err);
	dw.add = true;
	if (!rc && n->out[LMHEAD_DW])
		rc = cpu_matmul_get(&ret->dw_more, env, &dw, err);
	return rc;
}

static int64_t block_rows(int64_t rows, int64_t v)
{
	int64_t block = LOGITS_BYTES / (v * (int64_t)sizeof(float)) / ROWS_MIN * ROWS_MIN;

	if (block < ROWS_MIN)
		block = ROWS_MIN;
	if (block > ROWS_MAX)
		block = ROWS_MAX;
	return rows < block ? rows : block;
}

static size_t round_up(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static void lay_out(struct lmhead_state *s, struct node *n)
{
	const struct lmhead_products *p[] = { &s->whole, &s->tail };
	size_t cells = (size_t)(s->block * s->v), scratch = 0;

	for (int i = 0; i < 2; i++) {
		want_scratch(&scratch, p[i]->logits);
		want_scratch(&scratch, p[i]->dx);
		want_scratch(&scratch, p[i]->dw);
		want_scratch(&scratch, p[i]->dw_more);
	}
	s->logits_at = round_up((size_t)s->block * sizeof(double));
	s->grads_at = s->logits_at;
	s->scratch_at = s->logits_at + round_up(cells * sizeof(float));
	if (s->bf16 && (n->out[LMHEAD_DX] || n->out[LMHEAD_DW])) {
		s->grads_at = s->scratch_at;
		s->scratch_at += round_up(cells * sizeof(uint16_t));
	}
	n->workspace_bytes = s->scratch_at + scratch;
}

static int lmhead_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct lmhead_state *s;
	void *state;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &bf16, err);

	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->loop = CPU_PICK(env, lmhead_loop);
	s->bf16 = bf16;
	s->rows = n->in[0]->shape.dim[0];
	s->c = n->in[0]->shape.dim[1];
	s->v = n->in[1]->shape.dim[0];
	s->block = block_rows(s->rows, s->v);
	s->parts = cpu_parts(env, s->block * s->v);
	if (s->rows > 0)
		rc = products_get(&s->whole, env, n, s->block, err);
	if (!rc && s->rows > 0 && s->rows % s->block)
		rc = products_get(&s->tail, env, n, s->rows % s->block, err);
	if (rc) {
		cpu_state_release(s);
		return rc;
	}
	lay_out(s, n);
	*ret_state = s;
	return 0;
}

static const char *lmhead_impl(const void *state)
{
	const struct lmhead_state *s = state;

	return s->whole.logits ? cpu_matmul_impl(s->whole.logits) : "none";
}

static int run_block(struct lmhead_state *s, const struct kernel_args *args, struct err *err)
{
	const struct lmhead_products *p = s->n == s->block ? &s->whole : &s->tail;
	size_t item = s->bf16 ? sizeof(uint16_t) : sizeof(float), at = (size_t)(s->first * s->c) * item;
	struct dnn_matmul_args m = { .workspace = (char *)args->workspace + s->scratch_at };
	const char *x = (const char *)args->in[0] + at;
	double *result = args->out[LMHEAD_RESULT];
	int rc;

	m.a = x, m.b = args->in[1], m.out = s->logits;
	rc = cpu_matmul_run(p->logits, &m, err);
	if (rc)
		return rc;
	cpu_parallel(s->parts, s->loop, s);
	for (int64_t i = 0; i < s->n; i++) {
		result[XENT_LOSS_SUM] += s->loss[i];
		result[XENT_COUNT] += s->targets[s->first + i] >= 0;
	}
	if (args->out[LMHEAD_DX]) {
		m.a = s->grads, m.b = args->in[1], m.out = (char *)args->out[LMHEAD_DX] + at;
		rc = cpu_matmul_run(p->dx, &m, err);
	}
	if (!rc && args->out[LMHEAD_DW]) {
		m.a = s->grads, m.b = x, m.out = args->out[LMHEAD_DW];
		rc = cpu_matmul_run(s->first ? p->dw_more : p->dw, &m, err);
	}
	return rc;
}

static int lmhead_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct lmhead_state s = *(const struct lmhead_state *)state;
	char *workspace = args->workspace;
	int rc = 0;

	memset(args->out[LMHEAD_RESULT], 0, XENT_RESULTS * sizeof(double));
	if (args->out[LMHEAD_DW] && s.rows == 0)
		memset(args->out[LMHEAD_DW], 0, (size_t)(s.v * s.c) * sizeof(float));
	s.targets = args->in[2];
	s.kept = args->out[LMHEAD_LOGITS];
	s.scale = args->page->inv_count * args->page->loss_scale;
	s.wants_grads = args->out[LMHEAD_DX] || args->out[LMHEAD_DW];
	s.loss = (double *)workspace;
	s.logits = (float *)(workspace + s.logits_at);
	s.grads = workspace + s.grads_at;
	for (s.first = 0; !rc && s.first < s.rows; s.first += s.block) {
		s.n = s.rows - s.first < s.block ? s.rows - s.first : s.block;
		rc = run_block(&s, args, err);
	}
	return rc;
}

extern const struct kernel lmhead_cpu;
const struct kernel lmhead_cpu = {
	.prepare = lmhead_prepare, .run = lmhead_run, .release = cpu_state_release, .impl = lmhead_impl
};

#else

/* A NaN anywhere makes the row's loss NaN: where it is not the maximum it comes out of the exponentials. */
VEC_INLINE float V(lmhead_max)(const struct lmhead_state *s, const float *l)
{
	v16 most = vset(-__builtin_inff());

	for (int64_t j = 0; j + LANES <= s->v; j += LANES)
		most = vmax(vload(l, j, false), most);
	float max = vmax_lane(most);
	for (int64_t j = s->v / LANES * LANES; j < s->v; j++)
		max = l[j] > max ? l[j] : max;
	return max;
}

/* l becomes e^(l - max); returns the sum. */
VEC_INLINE double V(lmhead_exp)(const struct lmhead_state *s, float *l, float max)
{
	double sum = 0;

	for (int64_t j0 = 0; j0 < s->v; j0 += FOLD * LANES) {
		int64_t end = s->v - j0 < FOLD * LANES ? s->v : j0 + FOLD * LANES, j = j0;
		v16 part = { 0 };

		for (; j + LANES <= end; j += LANES) {
			v16 e = vexp(vload(l, j, false) - max);

			vstore(l, j, e, false);
			part += e;
		}
		sum += (double)vsum(part);
		if (j < end) {
			v16 e = vexp(vload_n(l, j, (int)(end - j), false) - max);

			vstore_n(l, j, e, (int)(end - j), false);
			for (; j < end; j++)
				sum += (double)l[j];
		}
	}
	return sum;
}

VEC_INLINE void V(lmhead_scale)(const struct lmhead_state *s, const float *l, int64_t at, float factor, const bool bf)
{
	for (int64_t j = 0; j < s->v; j += LANES)
		vstore_any(s->grads, at + j, vload_any(l, j, s->v - j, false) * factor, s->v - j, bf);
}

static void V(lmhead_grads)(const struct lmhead_state *s, int64_t i, double sum, double own)
{
	float *l = s->logits + i * s->v;
	int64_t at = i * s->v, target = s->targets[s->first + i];
	float factor = target < 0 ? 0 : (float)(s->scale / sum);

	if (target < 0)
		memset((char *)s->grads + (size_t)at * (s->bf16 ? 2 : 4), 0, (size_t)s->v * (s->bf16 ? 2 : 4));
	else if (s->bf16)
		V(lmhead_scale)(s, l, at, factor, true);
	else
		V(lmhead_scale)(s, l, at, factor, false);
	if (target >= 0)
		vstore_n(s->grads, at + target, vset((float)(s->scale * (own / sum - 1))), 1, s->bf16);
}

static void V(lmhead_loop)(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		float *l = s->logits + i * s->v, max = V(lmhead_max)(s, l);
		int32_t target = s->targets[s->first + i];
		double own = target < 0 ? 0 : (double)l[target], sum;

		if (s->kept)
			memcpy(s->kept + (s->first + i) * s->v, l, (size_t)s->v * sizeof(*l));
		sum = V(lmhead_exp)(s, l, max);
		s->loss[i] = target < 0 ? 0 : (double)max + log(sum) - own;
		if (s->wants_grads)
			V(lmhead_grads)(s, i, sum, exp(own - (double)max));
	}
}

#endif
