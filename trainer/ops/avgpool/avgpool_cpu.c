/* SPDX-License-Identifier: Apache-2.0 */
/* avgpool_cpu.c: the mean over all pixels of a sample, and its gradient. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"

struct avgpool_state {
	cpu_part_fn *loop;
	int64_t n, pixels, c;
	int parts;
	bool bf16;
	const void *in;
	void *out;
};

#define CPU_BODY "trainer/ops/avgpool/avgpool_cpu.c"
#include "trainer/backends/cpu/each.h"

static int new_avgpool_state(const struct kernel_env *env, struct node *n, cpu_part_fn *loop, void **ret_state,
			     struct err *err)
{
	const struct shape *image = n->in[0]->shape.ndim == 4 ? &n->in[0]->shape : &n->out[0]->shape;
	struct avgpool_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = loop;
	s->n = image->dim[0];
	s->pixels = image->dim[1] * image->dim[2];
	s->c = image->dim[3];
	s->parts = cpu_parts(env, shape_count(image));
	s->bf16 = bf16;
	*ret_state = s;
	return 0;
}

static int prepare_avgpool_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return new_avgpool_state(env, n, CPU_PICK(env, avgpool_loop), ret_state, err);
}

static int prepare_avgpool_grad_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	return new_avgpool_state(env, n, CPU_PICK(env, avgpool_grad_loop), ret_state, err);
}

static void run_avgpool_cpu(void *state, const struct kernel_args *args)
{
	struct avgpool_state s = *(const struct avgpool_state *)state;

	s.in = args->in[0];
	s.out = args->out[0];
	cpu_parallel(s.parts, s.loop, &s);
}

extern const struct kernel avgpool_cpu, avgpool_grad_cpu;
const struct kernel avgpool_cpu = { .prepare = prepare_avgpool_cpu,
				    .run = run_avgpool_cpu,
				    .release = cpu_state_release };
const struct kernel avgpool_grad_cpu = { .prepare = prepare_avgpool_grad_cpu,
					 .run = run_avgpool_cpu,
					 .release = cpu_state_release };

#else

VEC_INLINE void V(avgpool_samples)(const struct avgpool_state *s, struct cpu_range r, const bool bf)
{
	for (int64_t n = r.begin; n < r.end; n++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			vf sum = { 0 };

			for (int64_t i = 0; i < s->pixels; i++)
				sum += vload_any(s->in, (n * s->pixels + i) * s->c + c, s->c - c, bf);
			vstore_any(s->out, n * s->c + c, sum / (float)s->pixels, s->c - c, bf);
		}
}

static void V(avgpool_loop)(void *arg, int part, int parts)
{
	const struct avgpool_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	s->bf16 ? V(avgpool_samples)(s, r, true) : V(avgpool_samples)(s, r, false);
}

VEC_INLINE void V(avgpool_grad_samples)(const struct avgpool_state *s, struct cpu_range r, const bool bf)
{
	for (int64_t n = r.begin; n < r.end; n++)
		for (int64_t c = 0; c < s->c; c += LANES) {
			vf g = vload_any(s->in, n * s->c + c, s->c - c, bf) / (float)s->pixels;

			for (int64_t i = 0; i < s->pixels; i++)
				vstore_any(s->out, (n * s->pixels + i) * s->c + c, g, s->c - c, bf);
		}
}

static void V(avgpool_grad_loop)(void *arg, int part, int parts)
{
	const struct avgpool_state *s = arg;
	struct cpu_range r = cpu_split(s->n, 1, part, parts);

	s->bf16 ? V(avgpool_grad_samples)(s, r, true) : V(avgpool_grad_samples)(s, r, false);
}

#endif
