/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_cpu.c: dropout with counter-based draws. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/ops/dropout/dropout.h"

struct dropout_state {
	const struct dropout_attr *attr;
	int64_t count;
	int parts;
	bool bf16;
	/* set per run */
	struct dropout_draw draw;
	const void *x;
	void *y;
};

static int prepare_dropout_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct dropout_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->attr = n->attr;
	s->bf16 = bf16;
	s->count = shape_count(&n->out[0]->shape);
	s->parts = cpu_parts(env, s->count * 4);
	*ret_state = s;
	return 0;
}

static void apply_dropout_part(void *arg, int part, int parts)
{
	const struct dropout_state *s = arg;
	struct cpu_range r = cpu_split(s->count, 64, part, parts);

	for (int64_t i = r.begin; i < r.end; i++) {
		bool keeps = dropout_keeps(&s->draw, (uint64_t)i);

		if (s->bf16) {
			float v = keeps ? bf16_to_float(((const uint16_t *)s->x)[i]) * (float)s->draw.scale : 0;

			((uint16_t *)s->y)[i] = bf16_from_float(v);
		} else {
			((float *)s->y)[i] = keeps ? ((const float *)s->x)[i] * (float)s->draw.scale : 0;
		}
	}
}

static void run_dropout_cpu(void *state, const struct kernel_args *args)
{
	struct dropout_state s = *(const struct dropout_state *)state;

	s.draw = dropout_draw(s.attr, args->page);
	s.x = args->in[0];
	s.y = args->out[0];
	cpu_parallel(s.parts, apply_dropout_part, &s);
}

extern const struct kernel dropout_cpu;
const struct kernel dropout_cpu = { .prepare = prepare_dropout_cpu,
				    .run = run_dropout_cpu,
				    .release = cpu_state_release };
