/* SPDX-License-Identifier: Apache-2.0 */
/* ema_cpu.c: one update of an average in f32. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/ema/ema.h"

struct ema_state {
	const struct ema_attr *attr;
	cpu_part_fn *loop;
	int64_t count;
	int parts;
	const float *x;
	float *ema;
	float keep, share;
};

#define CPU_BODY "trainer/ops/ema/ema_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_ema_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const int64_t count = shape_count(&n->in[0]->shape);
	struct ema_state *s;
	int rc = cpu_want(n, n->in[0], DTYPE_F32, err);

	if (!rc)
		rc = cpu_want(n, n->in[1], DTYPE_F32, err);
	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	*s = (struct ema_state){ .attr = n->attr, .loop = CPU_PICK(env, ema_loop), .count = count };
	s->parts = cpu_parts(env, count);
	*ret_state = s;
	return 0;
}

static void run_ema_cpu(void *state, const struct kernel_args *args)
{
	struct ema_state s = *(const struct ema_state *)state;
	double keep = ema_keep(s.attr, args->in[2], args->page->epoch_step);

	if (keep >= 1)
		return;
	s.x = args->in[0];
	s.ema = args->out[0];
	s.keep = (float)keep;
	s.share = (float)(1 - keep);
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel ema_cpu;
const struct kernel ema_cpu = { .prepare = prepare_ema_cpu, .run = run_ema_cpu, .release = cpu_state_release };

#else

static void V(ema_loop)(void *arg, int part, int parts)
{
	const struct ema_state *s = arg;
	struct cpu_range r = cpu_split(s->count, LANES, part, parts);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf x = vload_any(s->x, i, r.end - i, false);

		if (s->keep > 0)
			x = s->keep * vload_any(s->ema, i, r.end - i, false) + s->share * x;
		vstore_any(s->ema, i, x, r.end - i, false);
	}
}

#endif
