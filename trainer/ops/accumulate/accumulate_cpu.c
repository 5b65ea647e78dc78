/* SPDX-License-Identifier: Apache-2.0 */
/* accumulate_cpu.c: sums over micro-batches. The first one is copied. Results (f64) are few, so a plain loop adds
 * them. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"

struct accumulate_state {
	cpu_part_fn *loop; /* NULL: f64 */
	int64_t count;
	int parts;
	const float *x;
	float *s;
	bool first;
};

#define CPU_BODY "trainer/ops/accumulate/accumulate_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_accumulate_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct accumulate_state *s;
	bool f64 = n->in[0]->dtype == DTYPE_F64;
	int rc = f64 ? 0 : cpu_want(n, n->in[0], DTYPE_F32, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = f64 ? NULL : CPU_PICK(env, accumulate_loop);
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	*ret_state = s;
	return 0;
}

static void add_doubles(double *s, const double *x, int64_t count, bool first)
{
	for (int64_t i = 0; i < count; i++)
		s[i] = first ? x[i] : s[i] + x[i];
}

static void run_accumulate_cpu(void *state, const struct kernel_args *args)
{
	struct accumulate_state s = *(const struct accumulate_state *)state;

	s.first = args->page->micro == 0;
	if (!s.loop) {
		add_doubles(args->out[0], args->in[1], s.count, s.first);
		return;
	}
	s.s = args->out[0];
	s.x = args->in[1];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel accumulate_cpu;
const struct kernel accumulate_cpu = { .prepare = prepare_accumulate_cpu,
				       .run = run_accumulate_cpu,
				       .release = cpu_state_release };

#else

static void V(accumulate_loop)(void *arg, int part, int parts)
{
	const struct accumulate_state *s = arg;
	struct cpu_range r = cpu_split(s->count, LANES, part, parts);

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf x = vload_any(s->x, i, r.end - i, false);

		if (!s->first)
			x += vload_any(s->s, i, r.end - i, false);
		vstore_any(s->s, i, x, r.end - i, false);
	}
}

#endif
