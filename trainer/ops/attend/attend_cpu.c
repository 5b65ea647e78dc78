/* attend_cpu.c: attention to what is kept; heads are shared out. One pass over the keys with a running maximum. */
#include <math.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/attend/attend.h"
#include "trainer/ops/cast/float16.h"

typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

#define LANES ((int64_t)(sizeof(lanes) / sizeof(float)))

struct attend_state {
	int64_t rows, c, d, heads;
	int parts;
	bool bf16;
	/* of one run */
	int64_t first;
	const void *qkv;
	float *keys, *values, *scratch; /* of each part: a query and a sum, d each */
	void *y;
};

static int attend_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct attend_state *s;
	void *state;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);

	if (!rc)
		rc = cpu_want(n, n->in[1], DTYPE_F32, err);
	if (!rc)
		rc = cpu_want(n, n->in[2], DTYPE_F32, err);
	if (!rc)
		rc = cpu_state_new(sizeof(*s), &state, err);
	if (rc)
		return rc;
	s = state;
	s->bf16 = bf16;
	s->rows = n->in[0]->shape.dim[0];
	s->c = n->in[1]->shape.dim[1];
	s->heads = ((const struct attend_attr *)n->attr)->heads;
	s->d = s->c / s->heads;
	s->parts = cpu_parts(env, s->rows * s->c * n->in[1]->shape.dim[0] / 4);
	n->workspace_bytes = (size_t)s->parts * 2 * (size_t)s->d * sizeof(float);
	*ret_state = s;
	return 0;
}

static float get(const struct attend_state *s, int64_t i)
{
	return s->bf16 ? bf16_to_float(((const uint16_t *)s->qkv)[i]) : ((const float *)s->qkv)[i];
}

static float dot(const float *a, const float *b, int64_t n)
{
	lanes sum = { 0 };
	float rest = 0;
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		sum += *(const lanes *)(a + i) * *(const lanes *)(b + i);
	for (; i < n; i++)
		rest += a[i] * b[i];
	for (int64_t k = 0; k < LANES; k++)
		rest += sum[k];
	return rest;
}

/* y = y * keep + v * p */
static void mix(float *y, float keep, const float *v, float p, int64_t n)
{
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		*(lanes *)(y + i) = *(lanes *)(y + i) * keep + *(const lanes *)(v + i) * p;
	for (; i < n; i++)
		y[i] = y[i] * keep + v[i] * p;
}

static void answer(const struct attend_state *s, int64_t row, int64_t head, float *scratch)
{
	float *q = scratch, *y = scratch + s->d, scale = 1 / sqrtf((float)s->d), max = -INFINITY, sum = 0;
	int64_t at = head * s->d;

	for (int64_t i = 0; i < s->d; i++) {
		q[i] = get(s, row * 3 * s->c + at + i) * scale;
		y[i] = 0;
	}
	for (int64_t j = 0; j <= s->first + row; j++) {
		float score = dot(q, s->keys + j * s->c + at, s->d), keep = 1, p = 1;

		if (!(score <= max)) {
			keep = expf(max - score);
			max = score;
		} else {
			p = expf(score - max);
		}
		sum = sum * keep + p;
		mix(y, keep, s->values + j * s->c + at, p, s->d);
	}
	for (int64_t i = 0; i < s->d; i++) {
		if (s->bf16)
			((uint16_t *)s->y)[row * s->c + at + i] = bf16_from_float(y[i] / sum);
		else
			((float *)s->y)[row * s->c + at + i] = y[i] / sum;
	}
}

static void attend_part(void *arg, int part, int parts)
{
	const struct attend_state *s = arg;
	struct cpu_range r = cpu_split(s->heads, 1, part, parts);

	for (int64_t head = r.begin; head < r.end; head++)
		for (int64_t row = 0; row < s->rows; row++)
			answer(s, row, head, s->scratch + part * 2 * s->d);
}

static int attend_run(void *state, const struct kernel_args *args, struct err *err)
{
	struct attend_state s = *(const struct attend_state *)state;

	(void)err;
	s.qkv = args->in[0];
	s.first = *(const int32_t *)args->in[3];
	s.y = args->out[0];
	s.keys = args->out[1];
	s.values = args->out[2];
	s.scratch = args->workspace;
	for (int64_t row = 0; row < s.rows; row++)
		for (int64_t i = 0; i < s.c; i++) {
			s.keys[(s.first + row) * s.c + i] = get(&s, row * 3 * s.c + s.c + i);
			s.values[(s.first + row) * s.c + i] = get(&s, row * 3 * s.c + 2 * s.c + i);
		}
	cpu_parallel(s.parts, attend_part, &s);
	return 0;
}

extern const struct kernel attend_cpu;
const struct kernel attend_cpu = { .prepare = attend_prepare, .run = attend_run, .release = cpu_state_release };
