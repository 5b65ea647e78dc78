/* SPDX-License-Identifier: Apache-2.0 */
/* team.c: the thread team (OpenMP, the pool that oneDNN uses too), instruction sets, and small checks shared by all
 * kernels of the cpu module. */
#include "trainer/backends/cpu/cpu.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "tracker/mem/mem.h"
#include "trainer/graph/op.h"

/* A denormal number costs a hundred times as much as a normal one and carries no signal here. The mode is kept per
 * thread, and threads may start and end, so every region sets it (a few cycles). */
static void flush_denormals(void)
{
#if defined(__x86_64__)
	_mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

void cpu_parallel(int parts, cpu_part_fn *fn, void *arg)
{
	if (parts <= 1) {
		flush_denormals();
		fn(arg, 0, 1);
		return;
	}
#pragma omp parallel num_threads(parts)
	{
		flush_denormals();
		for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads())
			fn(arg, part, parts);
	}
}

#define PART_ELEMENTS 8192

int cpu_parts(const struct kernel_env *env, int64_t elements)
{
	int64_t most = elements / PART_ELEMENTS;

	if (most < 1)
		most = 1;
	return most < env->threads ? (int)most : env->threads > 0 ? env->threads : 1;
}

static const char *const isa_names[CPU_ISA_COUNT] = { "base", "avx2", "avx512", "avx512_bf16" };

const char *cpu_isa_name(enum cpu_isa isa)
{
	return isa_names[isa];
}

#if defined(__x86_64__)
/* Older compilers have no name for this feature in __builtin_cpu_supports. */
static bool detect_f16c(void)
{
	unsigned r[4];

	return __get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) && r[2] & bit_F16C;
}
#endif

enum cpu_isa cpu_isa_detect(void)
{
	enum cpu_isa isa = CPU_BASE;

#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
	    detect_f16c())
		isa = CPU_AVX2;
	if (isa == CPU_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		isa = CPU_AVX512;
	if (isa == CPU_AVX512 && __builtin_cpu_supports("avx512bf16"))
		isa = CPU_AVX512_BF16;
#endif
	const char *limit = getenv("DPTRAIN_CPU_ISA");

	for (int i = 0; limit && i < (int)isa; i++)
		if (strcmp(limit, isa_names[i]) == 0)
			return (enum cpu_isa)i;
	return isa;
}

static int refuse_operand(const struct node *n, const struct tensor *t, struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED,
		       "backend cpu: %s (%s) has an operand %s of type %s, which it cannot compute", n->name,
		       n->op->name, t ? t->name : "(absent)", t ? dtype_name(t->dtype) : "none");
}

int cpu_one_type(const struct node *n, struct cpu_operands o, bool *ret_bf16, struct err *err)
{
	const struct tensor *first = NULL;

	for (int i = 0; i < o.n_in + o.n_out; i++) {
		const struct tensor *t = i < o.n_in ? n->in[i] : n->out[i - o.n_in];

		if (!t)
			continue;
		first = first ? first : t;
		if ((t->dtype != DTYPE_F32 && t->dtype != DTYPE_BF16) || t->dtype != first->dtype)
			return refuse_operand(n, t, err);
	}
	if (!first)
		return refuse_operand(n, NULL, err);
	*ret_bf16 = first->dtype == DTYPE_BF16;
	return 0;
}

int cpu_want(const struct node *n, const struct tensor *t, enum dtype type, struct err *err)
{
	return t && t->dtype == type ? 0 : refuse_operand(n, t, err);
}

void cpu_state_release(void *state)
{
	free(state);
}

int cpu_elems_new(const struct kernel_env *env, const struct node *n, cpu_part_fn *loop, void **ret_state,
		  struct err *err)
{
	struct cpu_elems *e;
	bool bf16;
	int rc = cpu_one_type(n, (struct cpu_operands){ n->n_in, n->n_out }, &bf16, err);

	if (rc)
		return rc;
	e = mem_alloc(sizeof(*e));
	*e = (struct cpu_elems){
		.loop = loop,
		.count = shape_count(&n->out[0]->shape),
		.parts = cpu_parts(env, shape_count(&n->out[0]->shape)),
		.bf16 = bf16,
		.b = n->n_in > 1 ? "" : NULL,
	};
	*ret_state = e;
	return 0;
}

void cpu_elems_run(void *state, const struct kernel_args *args)
{
	struct cpu_elems e = *(const struct cpu_elems *)state;

	e.a = args->in[0];
	e.b = e.b ? args->in[1] : NULL;
	e.y = args->out[0];
	cpu_parallel(e.parts, e.loop, &e);
}
