/* SPDX-License-Identifier: Apache-2.0 */
/* attention_decode_cpu.c: attention with a KV cache; threads split the heads. One pass over the keys with a running
 * maximum processes all heads of a part at each position, so the cache is read in storage order at memory bandwidth. */
#ifndef CPU_PASS
#include <math.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/attention_decode/attention_decode.h"
#include "trainer/ops/cast/float16.h"

struct attend_state {
	struct attention_decode_sizes z;
	const struct attention_decode_attr *a;
	cpu_part_fn *loop;
	int parts;
	bool bf16;
	/* set per run */
	int64_t first;
	const void *qkv;
	float *keys, *values;
	float *query, *mixed; /* C each: scaled query; weighted sum of values so far */
	float *max, *sum;     /* per head: largest score, sum of weights so far */
	void *y;
};

static float read_qkv(const struct attend_state *s, int64_t i)
{
	return s->bf16 ? bf16_to_float(((const uint16_t *)s->qkv)[i]) : ((const float *)s->qkv)[i];
}

static void begin_attend_head(const struct attend_state *s, int64_t row, int64_t head)
{
	float scale = 1 / sqrtf((float)s->z.d);

	s->max[head] = -INFINITY;
	s->sum[head] = 0;
	for (int64_t i = head * s->z.d; i < (head + 1) * s->z.d; i++) {
		s->query[i] = read_qkv(s, row * 3 * s->z.c + i) * scale;
		s->mixed[i] = 0;
	}
}

static void end_attend_head(const struct attend_state *s, int64_t row, int64_t head)
{
	for (int64_t i = head * s->z.d; i < (head + 1) * s->z.d; i++) {
		if (s->bf16)
			((uint16_t *)s->y)[row * s->z.c + i] = bf16_from_float(s->mixed[i] / s->sum[head]);
		else
			((float *)s->y)[row * s->z.c + i] = s->mixed[i] / s->sum[head];
	}
}

#define CPU_BODY "trainer/ops/attention_decode/attention_decode_cpu.c"
#include "trainer/backends/cpu/each.h"

/* Workspace: query, weighted sum, maximum and sum of weights. */
static int prepare_attend_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct attend_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);

	if (!rc)
		rc = cpu_want(n, n->in[1], DTYPE_F32, err);
	if (!rc)
		rc = cpu_want(n, n->in[2], DTYPE_F32, err);
	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->bf16 = bf16;
	s->a = n->attr;
	s->z = attention_decode_sizes(n);
	s->loop = CPU_PICK(env, attend_loop);
	s->parts = cpu_parts(env, s->z.rows * s->z.c * n->in[1]->shape.dim[0] / 4);
	n->workspace_bytes = 2 * (size_t)(s->z.c + s->z.heads) * sizeof(float);
	*ret_state = s;
	return 0;
}

static void run_attend_cpu(void *state, const struct kernel_args *args)
{
	struct attend_state s = *(const struct attend_state *)state;

	s.qkv = args->in[0];
	s.first = *(const int32_t *)args->in[3];
	s.y = args->out[0];
	s.keys = args->out[1];
	s.values = args->out[2];
	s.query = args->workspace;
	s.mixed = s.query + s.z.c;
	s.max = s.mixed + s.z.c;
	s.sum = s.max + s.z.heads;
	for (int64_t row = 0; row < s.z.rows; row++)
		for (int64_t i = 0; i < s.z.kept; i++) {
			int64_t from = row * 3 * s.z.c + i / s.z.d * s.z.group * s.z.d + i % s.z.d;

			s.keys[(s.first + row) * s.z.kept + i] = read_qkv(&s, from + s.z.c);
			s.values[(s.first + row) * s.z.kept + i] = read_qkv(&s, from + 2 * s.z.c);
		}
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel attention_decode_cpu;
const struct kernel attention_decode_cpu = { .prepare = prepare_attend_cpu,
					     .run = run_attend_cpu,
					     .release = cpu_state_release };

#else

VEC_INLINE float V(dot_rows)(const float *a, const float *b, int64_t n)
{
	vf sum = { 0 };
	float rest = 0;
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		sum += vload(a, i, false) * vload(b, i, false);
	for (; i < n; i++)
		rest += a[i] * b[i];
	return rest + vsum(sum);
}

/* y = y * keep + v * p */
VEC_INLINE void V(scale_and_add)(float *y, float keep, const float *v, float p, int64_t n)
{
	int64_t i = 0;

	for (; i + LANES <= n; i += LANES)
		vstore(y, i, vload(y, i, false) * keep + vload(v, i, false) * p, false);
	for (; i < n; i++)
		y[i] = y[i] * keep + v[i] * p;
}

/* Adds one position to a head's running softmax. */
VEC_INLINE void V(add_position)(const struct attend_state *s, int64_t position, int64_t head)
{
	int64_t at = head * s->z.d, from = position * s->z.kept + head / s->z.group * s->z.d;
	float score = V(dot_rows)(s->query + at, s->keys + from, s->z.d), keep = 1, p = 1;

	if (s->a->cap > 0)
		score = (float)s->a->cap * tanhf(score / (float)s->a->cap);
	if (!(score <= s->max[head])) {
		keep = expf(s->max[head] - score);
		s->max[head] = score;
	} else {
		p = expf(score - s->max[head]);
	}
	s->sum[head] = s->sum[head] * keep + p;
	V(scale_and_add)(s->mixed + at, keep, s->values + from, p, s->z.d);
}

static void V(attend_row)(const struct attend_state *s, int64_t row, struct cpu_range heads)
{
	for (int64_t head = heads.begin; head < heads.end; head++)
		begin_attend_head(s, row, head);
	for (int64_t position = attention_decode_begin(s->a, s->first + row); position <= s->first + row; position++)
		for (int64_t head = heads.begin; head < heads.end; head++)
			V(add_position)(s, position, head);
	for (int64_t head = heads.begin; head < heads.end; head++)
		end_attend_head(s, row, head);
}

static void V(attend_loop)(void *arg, int part, int parts)
{
	const struct attend_state *s = arg;
	struct cpu_range heads = cpu_split(s->z.heads, 1, part, parts);

	for (int64_t row = 0; row < s->z.rows; row++)
		V(attend_row)(s, row, heads);
}

#endif
