/* SPDX-License-Identifier: Apache-2.0 */
/* watch_cpu.c: each thread counts its part by the eight exponent bits of a value; the parts are added in order. */
#ifndef CPU_PASS
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/vec.h"
#include "trainer/ops/watch/watch.h"

#define EXPONENTS 256
#define EXPONENT_BIAS 127
#define TABLES 4 /* neighbouring lanes use separate tables, so that equal exponents do not wait for each other */

struct watch_state {
	cpu_part_fn *loop;
	int64_t count;
	int parts;
	bool bf16;
	const void *x, *before; /* before: may be NULL */
	double *values;		/* WATCH_VALUES per part, in the workspace */
};

struct watch_tally {
	int64_t by_exponent[TABLES][EXPONENTS];
	double sumsq, largest;
	int64_t zeros;
};

/* Converts a tally to values. Zeros have exponent 0 too, including `padding` lanes after the end, which do not
 * count. */
static void convert_tally(const struct watch_tally *t, int64_t padding, double *values)
{
	memset(values, 0, WATCH_VALUES * sizeof(*values));
	values[WATCH_SUMSQ] = t->sumsq;
	values[WATCH_LARGEST] = t->largest;
	values[WATCH_ZEROS] = (double)(t->zeros - padding);
	for (int e = 0; e < EXPONENTS; e++) {
		int64_t n = e ? 0 : -t->zeros;

		for (int k = 0; k < TABLES; k++)
			n += t->by_exponent[k][e];
		values[e == EXPONENTS - 1 ? WATCH_NONFINITE : WATCH_BUCKET + watch_bucket(e - EXPONENT_BIAS)] +=
			(double)n;
	}
}

#define CPU_BODY "trainer/ops/watch/watch_cpu.c"
#include "trainer/backends/cpu/each.h"

static int prepare_watch_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct watch_state *s;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &bf16, err);

	if (rc)
		return rc;
	s = mem_zalloc(sizeof(*s));
	s->loop = CPU_PICK(env, watch_loop);
	s->count = shape_count(&n->in[0]->shape);
	s->parts = cpu_parts(env, s->count);
	s->bf16 = bf16;
	n->workspace_bytes = (size_t)s->parts * WATCH_VALUES * sizeof(double);
	*ret_state = s;
	return 0;
}

static void add_watch_part(double *sum, const double *part)
{
	const double largest = sum[WATCH_LARGEST] > part[WATCH_LARGEST] ? sum[WATCH_LARGEST] : part[WATCH_LARGEST];

	for (int k = 0; k < WATCH_VALUES; k++)
		sum[k] += part[k];
	sum[WATCH_LARGEST] = largest;
}

static void run_watch_cpu(void *state, const struct kernel_args *args)
{
	struct watch_state s = *(const struct watch_state *)state;
	double *out = args->out[0];

	if (!args->page->watch)
		return;
	s.x = args->in[0];
	s.before = args->in[1];
	s.values = args->workspace;
	cpu_parallel(s.parts, s.loop, &s);
	memcpy(out, s.values, WATCH_VALUES * sizeof(*out));
	for (int i = 1; i < s.parts; i++)
		add_watch_part(out, s.values + (int64_t)i * WATCH_VALUES);
}

struct watch_hold_state {
	int64_t bytes;
	int parts;
	const char *from;
	char *to;
};

static void copy_held_part(void *arg, int part, int parts)
{
	const struct watch_hold_state *s = arg;
	const struct cpu_range r = cpu_split(s->bytes, 64, part, parts);

	memcpy(s->to + r.begin, s->from + r.begin, (size_t)(r.end - r.begin));
}

static int prepare_watch_hold_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct watch_hold_state *s = mem_zalloc(sizeof(*s));

	(void)err;
	s->bytes = (int64_t)tensor_bytes(n->in[0]);
	s->parts = cpu_parts(env, shape_count(&n->in[0]->shape));
	*ret_state = s;
	return 0;
}

static void run_watch_hold_cpu(void *state, const struct kernel_args *args)
{
	struct watch_hold_state s = *(const struct watch_hold_state *)state;

	s.from = args->in[0];
	s.to = args->out[0];
	if (args->page->watch)
		cpu_parallel(s.parts, copy_held_part, &s);
}

extern const struct kernel watch_cpu, watch_hold_cpu;
const struct kernel watch_cpu = { .prepare = prepare_watch_cpu, .run = run_watch_cpu, .release = cpu_state_release };
const struct kernel watch_hold_cpu = { .prepare = prepare_watch_hold_cpu,
				       .run = run_watch_hold_cpu,
				       .release = cpu_state_release };

#else

/* Squares in f64 are exact and cannot overflow. */
VEC_INLINE vd V(square_half)(vhalf half)
{
	const vd x = __builtin_convertvector(half, vd);

	return x * x;
}

VEC_INLINE void V(watch_range)(const struct watch_state *s, struct cpu_range r, const bool bf, struct watch_tally *t)
{
	const vu magnitude = (vu){ 0 } + 0x7fffffff, all = (vu){ 0 } + (EXPONENTS - 1);
	vf largest = { 0 };
	vi zeros = { 0 };
	vd low = { 0 }, high = { 0 };

	for (int64_t i = r.begin; i < r.end; i += LANES) {
		vf x = vload_any(s->x, i, r.end - i, bf);
		vu bits, exponent;
		vhalf half[2];

		if (s->before)
			x -= vload_any(s->before, i, r.end - i, bf);
		bits = (vu)x & magnitude;
		exponent = bits >> 23;
		for (int k = 0; k < LANES; k++)
			t->by_exponent[k % TABLES][exponent[k]]++;
		zeros -= (vi)(bits == 0);
		x = (vf)(bits & (vu)(exponent != all));
		largest = vmax(largest, x);
		memcpy(half, &x, sizeof(half));
		low += V(square_half)(half[0]);
		high += V(square_half)(half[1]);
	}
	low += high;
	for (int k = 0; k < LANES; k++) {
		t->largest = (double)largest[k] > t->largest ? (double)largest[k] : t->largest;
		t->zeros += zeros[k];
		t->sumsq += k < LANES / 2 ? low[k] : 0;
	}
}

static void V(watch_loop)(void *arg, int part, int parts)
{
	const struct watch_state *s = arg;
	const struct cpu_range r = cpu_split(s->count, LANES, part, parts);
	const int64_t padding = (LANES - (r.end - r.begin) % LANES) % LANES;
	struct watch_tally t = { .sumsq = 0 };

	if (s->bf16)
		V(watch_range)(s, r, true, &t);
	else
		V(watch_range)(s, r, false, &t);
	convert_tally(&t, padding, s->values + (int64_t)part * WATCH_VALUES);
}

#endif
