/* SPDX-License-Identifier: Apache-2.0 */
/* rope_cpu.c: the rotation of queries and keys, row by row: sines and cosines of a position are computed once, in f64,
 * for all its heads. */
#ifndef CPU_PASS
#include <math.h>

#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/rope/rope.h"

struct rope_state {
	cpu_part_fn *loop;
	const struct rope_attr *a;
	struct rope_copy copy[3];
	int64_t from_step[3], to_step[3]; /* elements per row, of each copy */
	int64_t rows;
	int parts;
	bool bf16, back;
	/* set per run */
	int64_t first;
	void *const *in, *const *out;
};

/* Cosines and sines of a position, times the factor. */
struct rope_turn {
	float c[ROPE_PAIRS_MAX], s[ROPE_PAIRS_MAX];
};

static inline void compute_turn(const struct rope_state *s, int64_t position, struct rope_turn *ret)
{
	for (int64_t i = 0; i < s->a->rotary / 2; i++) {
		double angle = (double)position * s->a->frequency[i];

		ret->c[i] = (float)(cos(angle) * s->a->factor);
		ret->s[i] = (float)((s->back ? -1 : 1) * sin(angle) * s->a->factor);
	}
}

#define CPU_BODY "trainer/ops/rope/rope_cpu.c"
#include "trainer/backends/cpu/each.h"

/* Both directions, which differ in the copies and the sign of the angle. */
static int prepare_rope_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const bool back = n->op->id == OP_rope_grad;
	struct rope_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ back ? 1 : 3, n->n_out }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = CPU_PICK(env, rope_loop);
	s->a = n->attr;
	rope_copies(s->a, back, back ? !n->out[1] : !n->in[1], s->copy);
	for (int i = 0; i < 3; i++) {
		s->from_step[i] = n->in[s->copy[i].source]->shape.dim[1];
		s->to_step[i] = n->out[s->copy[i].target]->shape.dim[1];
	}
	s->rows = n->in[0]->shape.dim[0];
	s->parts = cpu_parts(env, s->rows * s->a->heads * s->a->d * 3);
	s->bf16 = bf16;
	s->back = back;
	*ret_state = s;
	return 0;
}

static void run_rope_cpu(void *state, const struct kernel_args *args)
{
	struct rope_state s = *(const struct rope_state *)state;

	s.in = args->in;
	s.out = args->out;
	s.first = s.back || !s.in[3] ? 0 : *(const int32_t *)s.in[3];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel rope_cpu, rope_grad_cpu;
const struct kernel rope_cpu = { .prepare = prepare_rope_cpu, .run = run_rope_cpu, .release = cpu_state_release };
const struct kernel rope_grad_cpu = { .prepare = prepare_rope_cpu, .run = run_rope_cpu, .release = cpu_state_release };

#else

/* One group of heads: elements of the source and of the target where it begins. */
struct V(rope_heads) {
	const struct rope_copy *copy;
	const struct rope_turn *turn;
	const void *from;
	void *to;
	int64_t from_at, to_at, d;
};

VEC_INLINE vf V(rope_sum)(const struct V(rope_heads) * h, int64_t i, int64_t left, const bool bf)
{
	vf sum = vload_any(h->from, h->from_at + i, left, bf);

	for (int64_t k = 1; k < h->copy->n; k++)
		sum += vload_any(h->from, h->from_at + k * h->d + i, left, bf);
	return sum * (float)h->copy->scale;
}

VEC_INLINE void V(rope_put)(const struct V(rope_heads) * h, int64_t i, vf v, int64_t left, const bool bf)
{
	for (int64_t k = 0; k < h->copy->times; k++)
		vstore_any(h->to, h->to_at + k * h->d + i, v, left, bf);
}

VEC_INLINE void V(rope_group)(const struct V(rope_heads) * h, int64_t half, const bool bf)
{
	for (int64_t i = 0; i < half; i += LANES) {
		int64_t left = half - i;
		vf x = V(rope_sum)(h, i, left, bf), y = V(rope_sum)(h, i + half, left, bf);
		vf c = vload_any(h->turn->c, i, left, false), s = vload_any(h->turn->s, i, left, false);

		V(rope_put)(h, i, x * c - y * s, left, bf);
		V(rope_put)(h, i + half, y * c + x * s, left, bf);
	}
	for (int64_t i = 2 * half; i < h->d; i += LANES)
		V(rope_put)(h, i, V(rope_sum)(h, i, h->d - i, bf), h->d - i, bf);
}

/* All copies of a range of rows. */
static void V(rope_loop)(void *arg, int part, int parts)
{
	const struct rope_state *s = arg;
	struct cpu_range r = cpu_split(s->rows, 1, part, parts);
	struct rope_turn turn;

	for (int64_t row = r.begin; row < r.end; row++) {
		compute_turn(s, s->first + row % s->a->seq, &turn);
		for (int i = 0; i < 3; i++) {
			const struct rope_copy *c = &s->copy[i];
			struct V(rope_heads) h = { c,
						   &turn,
						   s->in[c->source],
						   s->out[c->target],
						   row * s->from_step[i] + c->from,
						   row * s->to_step[i] + c->to,
						   s->a->d };
			int64_t half = c->turns ? s->a->rotary / 2 : 0;

			for (int64_t k = 0; k < c->count; k++) {
				s->bf16 ? V(rope_group)(&h, half, true) : V(rope_group)(&h, half, false);
				h.from_at += c->n * h.d;
				h.to_at += c->times * h.d;
			}
		}
	}
}

#endif
