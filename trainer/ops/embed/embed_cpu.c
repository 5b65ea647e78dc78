/* SPDX-License-Identifier: Apache-2.0 */
/* embed_cpu.c: the embedding. Threads split its gradient by columns, so that every sum runs in batch order for any
 * number of threads. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/embed/embed.h"

#define GRAIN 16 /* columns */

struct embed_state {
	int64_t rows, c, t, vocab, positions;
	float scale;
	int parts;
	bool bf16, low_table;
	/* set per run */
	const int32_t *tokens;
	const void *wte; /* forward: f32, or bf16 (low_table) */
	const float *wpe, *more;
	const void *dx;
	void *x;
	float *dwte, *dwpe;
};

/* The state of both ops; low: the operand whose type may be bf16. */
static int new_embed_state(const struct kernel_env *env, struct tensor *low, struct node *n, void **ret_state,
			   struct err *err)
{
	const struct embed_attr *a = n->attr;
	struct embed_state *s;
	int rc = low->dtype == DTYPE_BF16 ? 0 : cpu_want(n, low, DTYPE_F32, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->bf16 = low->dtype == DTYPE_BF16;
	s->rows = low->shape.dim[0];
	s->c = low->shape.dim[1];
	s->vocab = a->vocab;
	s->positions = a->positions;
	s->scale = (float)a->scale;
	s->parts = cpu_parts(env, s->rows * s->c);
	*ret_state = s;
	return 0;
}

static int prepare_embed_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	bool low_table = n->in[1]->dtype == DTYPE_BF16;
	int rc = low_table ? 0 : cpu_want(n, n->in[1], DTYPE_F32, err);
	struct embed_state *s;

	if (!rc && n->in[2])
		rc = cpu_want(n, n->in[2], DTYPE_F32, err);
	if (!rc)
		rc = new_embed_state(env, n->out[0], n, ret_state, err);
	if (rc)
		return rc;
	s = *ret_state;
	s->t = n->in[0]->shape.dim[1];
	s->low_table = low_table;
	return 0;
}

static void add_embed_rows(void *arg, int part, int parts)
{
	const struct embed_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);

	for (int64_t row = r.begin; row < r.end; row++) {
		const float *b = s->wpe ? s->wpe + row % s->t * s->c : NULL;

		for (int64_t i = 0; i < s->c; i++) {
			int64_t at = s->tokens[row] * s->c + i;
			float a = s->low_table ? bf16_to_float(((const uint16_t *)s->wte)[at])
					       : ((const float *)s->wte)[at];

			a = a * s->scale + (b ? b[i] : 0);
			if (s->bf16)
				((uint16_t *)s->x)[row * s->c + i] = bf16_from_float(a);
			else
				((float *)s->x)[row * s->c + i] = a;
		}
	}
}

static void run_embed_cpu(void *state, const struct kernel_args *args)
{
	struct embed_state s = *(const struct embed_state *)state;

	s.tokens = args->in[0];
	s.wte = args->in[1];
	s.wpe = args->in[2];
	s.x = args->out[0];
	cpu_parallel(s.parts, add_embed_rows, &s);
}

static int prepare_embed_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct embed_state *s;
	int rc = cpu_want(n, n->out[0], DTYPE_F32, err);

	if (!rc && n->out[1])
		rc = cpu_want(n, n->out[1], DTYPE_F32, err);
	if (!rc)
		rc = new_embed_state(env, n->in[0], n, ret_state, err);
	if (rc)
		return rc;
	s = *ret_state;
	s->t = n->in[1]->shape.dim[1];
	return 0;
}

static void init_embed_grad_row(const struct embed_state *s, int64_t row, struct cpu_range c)
{
	size_t bytes = (size_t)(c.end - c.begin) * sizeof(float);
	float *to = s->dwte + row * s->c + c.begin;

	if (!s->more)
		memset(to, 0, bytes);
	else if (s->more != s->dwte)
		memcpy(to, s->more + row * s->c + c.begin, bytes);
}

static void add_embed_grad_columns(void *arg, int part, int parts)
{
	const struct embed_state *s = arg;
	struct cpu_range c = cpu_split(s->c, GRAIN, part, parts);

	for (int64_t row = 0; row < s->vocab && c.begin < c.end; row++)
		init_embed_grad_row(s, row, c);
	for (int64_t row = 0; row < s->positions && c.begin < c.end; row++)
		memset(s->dwpe + row * s->c + c.begin, 0, (size_t)(c.end - c.begin) * sizeof(float));
	for (int64_t row = 0; row < s->rows; row++) {
		float *wte = s->dwte + s->tokens[row] * s->c, *wpe = s->dwpe ? s->dwpe + row % s->t * s->c : NULL;

		for (int64_t i = c.begin; i < c.end; i++) {
			float d = s->bf16 ? bf16_to_float(((const uint16_t *)s->dx)[row * s->c + i])
					  : ((const float *)s->dx)[row * s->c + i];

			wte[i] += d * s->scale;
			if (wpe)
				wpe[i] += d;
		}
	}
}

static void run_embed_grad_cpu(void *state, const struct kernel_args *args)
{
	struct embed_state s = *(const struct embed_state *)state;

	s.dx = args->in[0];
	s.tokens = args->in[1];
	s.more = args->in[2];
	s.dwte = args->out[0];
	s.dwpe = args->out[1];
	cpu_parallel(s.parts, add_embed_grad_columns, &s);
}

extern const struct kernel embed_cpu, embed_grad_cpu;
const struct kernel embed_cpu = { .prepare = prepare_embed_cpu, .run = run_embed_cpu, .release = cpu_state_release };
const struct kernel embed_grad_cpu = { .prepare = prepare_embed_grad_cpu,
				       .run = run_embed_grad_cpu,
				       .release = cpu_state_release };
