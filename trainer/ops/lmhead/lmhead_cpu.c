/* lmhead_cpu.c: the classifier with its loss, a block of rows at a time: logits, then their gradients in the operands'
 * type. The two products that use the gradients take a group of blocks at once where the gradients have a place of
 * their own (bf16): each group reads w, and reads and writes dw, once. */
#ifndef CPU_PASS
#include <math.h>

#include "trainer/backends/cpu/matmul.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"

#define LOGITS_BYTES ((int64_t)66 << 20) /* of a block, about, where a group is a block: f32 */
#define LOGITS_BYTES_BF16 ((int64_t)52 << 20)
#define GRADS_BYTES ((int64_t)104 << 20) /* of a group, about, in bf16 */
#define ROWS_MIN 32
#define ROWS_MAX 512
#define ROWS_STEP 16
#define GROUP_MAX 1024 /* rows */
#define LINE 32 /* rows of logits and gradients begin with a line of memory */
#define FOLD 64 /* vectors that are summed in f32 before they join the row's f64 sum */

/* Products of a block and of a group, by their rows: only the last ones have fewer than the others. */
struct lmhead_products {
	struct cpu_matmul *logits, *dx, *dw, *dw_more; /* dw_more adds to what is there */
};

struct lmhead_state {
	cpu_part_fn *loop;
	struct lmhead_products whole, tail;
	int64_t rows, block, group, c, v, step; /* step: from one row of logits, or gradients, to the next */
	int parts;
	bool bf16;
	size_t logits_at, exp_at, grads_at, scratch_at; /* in the workspace; grads_at = logits_at in f32 */
	/* of one run */
	const int32_t *targets;
	float *kept;
	double scale, *loss;
	bool wants_grads;
	int64_t first, n; /* of the block */
	float *logits;	  /* [block][step] */
	float *exp;	  /* [parts][step]; NULL: the logits' place */
	void *grads;	  /* of the block, in the operands' type: [block][step] */
};

#define CPU_BODY "trainer/ops/lmhead/lmhead_cpu.c"
#include "trainer/backends/cpu/each.h"

static void want_scratch(size_t *most, const struct cpu_matmul *m)
{
	if (m && cpu_matmul_workspace_bytes(m) > *most)
		*most = cpu_matmul_workspace_bytes(m);
}

/* The products of a block, or of a group, of so many rows; none without rows. */
static int logits_get(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s,
		      int64_t rows, struct err *err)
{
	const struct dnn_matmul_spec spec = {
		.m = rows, .n = s->v, .k = s->c, .bf16 = s->bf16, .b_turned = true, .out_step = s->step
	};

	return rows > 0 ? cpu_matmul_get(&ret->logits, env, &spec, err) : 0;
}

static int dx_get(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s, int64_t rows,
		  struct err *err)
{
	const struct dnn_matmul_spec spec = {
		.m = rows, .n = s->c, .k = s->v, .bf16 = s->bf16, .out_bf16 = s->bf16, .a_step = s->step
	};

	return rows > 0 ? cpu_matmul_get(&ret->dx, env, &spec, err) : 0;
}

static int dw_get(struct lmhead_products *ret, const struct kernel_env *env, const struct lmhead_state *s, int64_t rows,
		  struct err *err)
{
	struct dnn_matmul_spec spec = {
		.m = s->v, .n = s->c, .k = rows, .bf16 = s->bf16, .a_turned = true, .a_step = s->step
	};
	int rc = rows > 0 ? cpu_matmul_get(&ret->dw, env, &spec, err) : 0;

	spec.add = true;
	return !rc && rows > 0 ? cpu_matmul_get(&ret->dw_more, env, &spec, err) : rc;
}

static int products_get(struct lmhead_state *s, const struct kernel_env *env, const struct node *n, struct err *err)
{
	int rc = logits_get(&s->whole, env, s, s->block, err);

	if (!rc)
		rc = logits_get(&s->tail, env, s, s->rows % s->block, err);
	if (!rc && n->out[LMHEAD_DX])
		rc = dx_get(&s->whole, env, s, s->group, err);
	if (!rc && n->out[LMHEAD_DX])
		rc = dx_get(&s->tail, env, s, s->rows % s->group, err);
	if (!rc && n->out[LMHEAD_DW])
		rc = dw_get(&s->whole, env, s, s->group, err);
	if (!rc && n->out[LMHEAD_DW])
		rc = dw_get(&s->tail, env, s, s->rows % s->group, err);
	return rc;
}

/* So many of `n` to a piece that the pieces, as few as `most` allows, are of one size. */
static int64_t even_share(int64_t n, int64_t most)
{
	int64_t pieces = (n + most - 1) / most;

	return (n + pieces - 1) / pieces;
}

static int64_t rows_within(int64_t bytes, int64_t row_bytes, int64_t most)
{
	int64_t rows = bytes / row_bytes;

	return rows < ROWS_MIN ? ROWS_MIN : rows > most ? most : rows;
}

/* Blocks and groups of one size, as few as the bytes allow: a small last one would cost a pass over w, or over w and
 * dw, for little work. A group is whole blocks. */
static void share_out(struct lmhead_state *s, bool grads)
{
	int64_t logits = s->bf16 && grads ? LOGITS_BYTES_BF16 : LOGITS_BYTES;
	int64_t most = rows_within(logits, s->step * (int64_t)sizeof(float), ROWS_MAX), blocks;

	s->block = s->rows;
	if (s->rows > most)
		s->block = (even_share(s->rows, most) + ROWS_STEP - 1) / ROWS_STEP * ROWS_STEP;
	s->group = s->block;
	if (s->bf16 && grads && s->rows > s->block) {
		blocks = rows_within(GRADS_BYTES, s->step * (int64_t)sizeof(uint16_t), GROUP_MAX) / s->block;
		s->group = s->block * even_share((s->rows + s->block - 1) / s->block, blocks > 1 ? blocks : 1);
		s->group = s->group < s->rows ? s->group : s->rows;
	}
}

static size_t round_up(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static size_t most_scratch(const struct lmhead_state *s)
{
	const struct lmhead_products *p[] = { &s->whole, &s->tail };
	size_t most = 0;

	for (int i = 0; i < 2; i++) {
		want_scratch(&most, p[i]->logits);
		want_scratch(&most, p[i]->dx);
		want_scratch(&most, p[i]->dw);
		want_scratch(&most, p[i]->dw_more);
	}
	return most;
}

static void lay_out(struct lmhead_state *s, struct node *n, bool grads)
{
	s->logits_at = round_up((size_t)s->block * sizeof(double));
	s->exp_at = s->grads_at = s->logits_at;
	s->scratch_at = s->logits_at + (size_t)(s->block * s->step) * sizeof(float);
	if (s->bf16 && grads) {
		s->exp_at = s->scratch_at;
		s->grads_at = s->exp_at + (size_t)(s->parts * s->step) * sizeof(float);
		s->scratch_at = s->grads_at + (size_t)(s->group * s->step) * sizeof(uint16_t);
	}
	n->workspace_bytes = s->scratch_at + most_scratch(s);
}

static int lmhead_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	bool bf16, grads = n->out[LMHEAD_DX] || n->out[LMHEAD_DW];
	struct lmhead_state *s;
	void *state;
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
	s->step = (s->v + LINE - 1) / LINE * LINE;
	share_out(s, grads);
	s->parts = cpu_parts(env, s->block * s->v);
	if (s->rows > 0)
		rc = products_get(s, env, n, err);
	if (rc) {
		cpu_state_release(s);
		return rc;
	}
	lay_out(s, n, grads);
	*ret_state = s;
	return 0;
}

static const char *lmhead_impl(const void *state)
{
	const struct lmhead_state *s = state;

	return s->whole.logits ? cpu_matmul_impl(s->whole.logits) : "none";
}

static size_t item_bytes(const struct lmhead_state *s)
{
	return s->bf16 ? sizeof(uint16_t) : sizeof(float);
}

static const char *row_of_x(const struct lmhead_state *s, const struct kernel_args *args, int64_t row)
{
	return (const char *)args->in[0] + (size_t)(row * s->c) * item_bytes(s);
}

/* Losses of a block, and its gradients, with respect to its logits. */
static int run_block(struct lmhead_state *s, const struct kernel_args *args, struct err *err)
{
	struct dnn_matmul_args m = { .workspace = (char *)args->workspace + s->scratch_at };
	double *result = args->out[LMHEAD_RESULT], *losses = args->out[LMHEAD_LOSSES];
	int rc;

	m.a = row_of_x(s, args, s->first), m.b = args->in[1], m.out = s->logits;
	rc = cpu_matmul_run(s->n == s->block ? s->whole.logits : s->tail.logits, &m, err);
	if (rc)
		return rc;
	cpu_parallel(s->parts, s->loop, s);
	for (int64_t i = 0; i < s->n; i++) {
		if (losses)
			losses[s->first + i] = s->loss[i];
		result[XENT_LOSS_SUM] += s->loss[i];
		result[XENT_COUNT] += s->targets[s->first + i] >= 0;
	}
	return 0;
}

/* What n rows from `first` on give to dx and dw. */
static int use_grads(const struct lmhead_state *s, const struct kernel_args *args, int64_t first, int64_t n,
		     struct err *err)
{
	const struct lmhead_products *p = n == s->group ? &s->whole : &s->tail;
	struct dnn_matmul_args m = { .a = (char *)args->workspace + s->grads_at,
				     .workspace = (char *)args->workspace + s->scratch_at };
	int rc = 0;

	if (args->out[LMHEAD_DX]) {
		m.b = args->in[1], m.out = (char *)args->out[LMHEAD_DX] + (size_t)(first * s->c) * item_bytes(s);
		rc = cpu_matmul_run(p->dx, &m, err);
	}
	if (!rc && args->out[LMHEAD_DW]) {
		m.b = row_of_x(s, args, first), m.out = args->out[LMHEAD_DW];
		rc = cpu_matmul_run(first ? p->dw_more : p->dw, &m, err);
	}
	return rc;
}

static int run_group(struct lmhead_state *s, const struct kernel_args *args, int64_t first, struct err *err)
{
	int64_t end = first + s->group < s->rows ? first + s->group : s->rows;
	char *grads = (char *)args->workspace + s->grads_at;
	int rc = 0;

	for (s->first = first; !rc && s->first < end; s->first += s->block) {
		s->n = end - s->first < s->block ? end - s->first : s->block;
		s->grads = grads + (size_t)((s->first - first) * s->step) * item_bytes(s);
		rc = run_block(s, args, err);
	}
	return !rc && s->wants_grads ? use_grads(s, args, first, end - first, err) : rc;
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
	s.exp = s.exp_at == s.logits_at ? NULL : (float *)(workspace + s.exp_at);
	for (int64_t first = 0; !rc && first < s.rows; first += s.group)
		rc = run_group(&s, args, first, err);
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
	vf most = vset(-__builtin_inff());

	for (int64_t j = 0; j + LANES <= s->v; j += LANES)
		most = vmax(vload(l, j, false), most);
	float max = vmax_lane(most);
	for (int64_t j = s->v / LANES * LANES; j < s->v; j++)
		max = l[j] > max ? l[j] : max;
	return max;
}

/* to = e^(l - max), which may be l; returns the sum. */
VEC_INLINE double V(lmhead_exp)(const struct lmhead_state *s, const float *l, float *to, float max)
{
	double sum = 0;

	for (int64_t j0 = 0; j0 < s->v; j0 += FOLD * LANES) {
		int64_t end = s->v - j0 < FOLD * LANES ? s->v : j0 + FOLD * LANES, j = j0;
		vf part = { 0 };

		for (; j + LANES <= end; j += LANES) {
			vf e = vexp(vload(l, j, false) - max);

			vstore(to, j, e, false);
			part += e;
		}
		sum += (double)vsum(part);
		if (j < end) {
			vf e = vexp(vload_n(l, j, (int)(end - j), false) - max);

			vstore_n(to, j, e, (int)(end - j), false);
			for (; j < end; j++)
				sum += (double)to[j];
		}
	}
	return sum;
}

VEC_INLINE void V(lmhead_scale)(const struct lmhead_state *s, const float *l, int64_t at, float factor, const bool bf)
{
	for (int64_t j = 0; j < s->v; j += LANES)
		vstore_any(s->grads, at + j, vload_any(l, j, s->v - j, false) * factor, s->v - j, bf);
}

static void V(lmhead_grads)(const struct lmhead_state *s, int64_t i, const float *l, double sum, double own)
{
	int64_t at = i * s->step, target = s->targets[s->first + i];
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

/* Row i of a block. */
static void V(lmhead_row)(const struct lmhead_state *s, int64_t i, int part)
{
	float *l = s->logits + i * s->step, *to = s->exp ? s->exp + part * s->step : l, max = V(lmhead_max)(s, l);
	int32_t target = s->targets[s->first + i];
	double own = target < 0 ? 0 : (double)l[target], sum;

	if (s->kept)
		memcpy(s->kept + (s->first + i) * s->v, l, (size_t)s->v * sizeof(*l));
	sum = V(lmhead_exp)(s, l, to, max);
	s->loss[i] = target < 0 ? 0 : (double)max + log(sum) - own;
	if (s->wants_grads)
		V(lmhead_grads)(s, i, to, sum, exp(own - (double)max));
}

static void V(lmhead_loop)(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		V(lmhead_row)(s, i, part);
}

#endif
