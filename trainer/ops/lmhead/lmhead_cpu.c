/* lmhead_cpu.c: the classifier with its loss, a block of rows at a time. Products are dealt out so that every sum has
 * one thread and one order. */
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/lmhead/lmhead.h"
#include "trainer/ops/xent/xent.h"

#define BLOCK 32 /* rows */

struct lmhead_state {
	int64_t rows, c, v;
	int parts;
	bool bf16;
	/* of one run */
	const void *x, *w;
	const int32_t *targets;
	void *dx;
	float *dw, *kept;
	double scale;
	int64_t first, n; /* of the block */
	float *logits;	  /* [BLOCK][v] */
	float *xs;	  /* [BLOCK][c] */
	double *loss;	  /* [BLOCK] */
};

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
	s->bf16 = bf16;
	s->rows = n->in[0]->shape.dim[0];
	s->c = n->in[0]->shape.dim[1];
	s->v = n->in[1]->shape.dim[0];
	s->parts = cpu_parts(env, BLOCK * s->v * s->c / 8);
	n->workspace_bytes = BLOCK * ((size_t)(s->v + s->c) * sizeof(float) + sizeof(double));
	*ret_state = s;
	return 0;
}

static float low(const struct lmhead_state *s, const void *p, int64_t i)
{
	return s->bf16 ? bf16_to_float(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static void logits_part(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->v, 1, part, parts);

	for (int64_t j = r.begin; j < r.end; j++)
		for (int64_t i = 0; i < s->n; i++) {
			float sum = 0;

			for (int64_t e = 0; e < s->c; e++)
				sum += s->xs[i * s->c + e] * low(s, s->w, j * s->c + e);
			s->logits[i * s->v + j] = sum;
		}
}

/* Loss of each row; its logits become their gradients. */
static void rows_part(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		float *l = s->logits + i * s->v, max = l[0];
		int32_t target = s->targets[s->first + i];
		double sum = 0, lse, own = target < 0 ? 0 : (double)l[target];

		if (s->kept)
			memcpy(s->kept + (s->first + i) * s->v, l, (size_t)s->v * sizeof(*l));
		for (int64_t j = 1; j < s->v; j++)
			max = !(l[j] <= max) ? l[j] : max;
		for (int64_t j = 0; j < s->v; j++)
			sum += (double)expf(l[j] - max);
		lse = (double)max + log(sum);
		s->loss[i] = target < 0 ? 0 : lse - own;
		for (int64_t j = 0; j < s->v; j++)
			l[j] = target < 0 ? 0 : (float)(s->scale * (double)expf(l[j] - (float)lse));
		if (target >= 0)
			l[target] = (float)(s->scale * (exp(own - lse) - 1));
	}
}

static void dx_part(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	for (int64_t i = r.begin; i < r.end; i++)
		for (int64_t e = 0; e < s->c; e++) {
			int64_t at = (s->first + i) * s->c + e;
			float sum = 0;

			for (int64_t j = 0; j < s->v; j++)
				sum += s->logits[i * s->v + j] * low(s, s->w, j * s->c + e);
			if (s->bf16)
				((uint16_t *)s->dx)[at] = bf16_from_float(sum);
			else
				((float *)s->dx)[at] = sum;
		}
}

static void dw_part(void *arg, int part, int parts)
{
	const struct lmhead_state *s = arg;
	struct cpu_range r = cpu_split(s->v, 1, part, parts);

	for (int64_t j = r.begin; j < r.end; j++)
		for (int64_t i = 0; i < s->n; i++)
			for (int64_t e = 0; e < s->c; e++)
				s->dw[j * s->c + e] += s->logits[i * s->v + j] * s->xs[i * s->c + e];
}

static void run_block(struct lmhead_state *s, double *result)
{
	for (int64_t i = 0; i < s->n * s->c; i++)
		s->xs[i] = low(s, s->x, s->first * s->c + i);
	cpu_parallel(s->parts, logits_part, s);
	cpu_parallel(s->parts, rows_part, s);
	if (s->dx)
		cpu_parallel(s->parts, dx_part, s);
	if (s->dw)
		cpu_parallel(s->parts, dw_part, s);
	for (int64_t i = 0; i < s->n; i++) {
		result[XENT_LOSS_SUM] += s->loss[i];
		result[XENT_COUNT] += s->targets[s->first + i] >= 0;
	}
}

static int lmhead_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct lmhead_state s = *(const struct lmhead_state *)state;

	(void)err;
	s.x = args->in[0];
	s.w = args->in[1];
	s.targets = args->in[2];
	s.dx = args->out[LMHEAD_DX];
	s.dw = args->out[LMHEAD_DW];
	s.kept = args->out[LMHEAD_LOGITS];
	s.scale = args->page->inv_count * args->page->loss_scale;
	s.loss = args->workspace;
	s.logits = (float *)(s.loss + BLOCK);
	s.xs = s.logits + BLOCK * s.v;
	memset(args->out[LMHEAD_RESULT], 0, XENT_RESULTS * sizeof(double));
	if (s.dw)
		memset(s.dw, 0, (size_t)(s.v * s.c) * sizeof(float));
	for (s.first = 0; s.first < s.rows; s.first += BLOCK) {
		s.n = s.rows - s.first < BLOCK ? s.rows - s.first : BLOCK;
		run_block(&s, args->out[LMHEAD_RESULT]);
	}
	return 0;
}

extern const struct kernel lmhead_cpu;
const struct kernel lmhead_cpu = { .prepare = lmhead_prepare, .run = lmhead_run, .release = cpu_state_release };
