/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_matmul.c: dispatches a matrix product to cuBLASLt or to the tiled kernels. */
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cuda/cuda_matmul.h"

#include <stdlib.h>

#include "trainer/backends/cuda/blas.h"

struct matmul {
	const struct node *node;
	struct matmul_spec spec;
	struct blas_plan *plan; /* NULL: tiled kernels */
	struct blas_offer offer;
};

/* Checks the limits of the tiled kernels. */
static int check_matmul_sizes(const struct node *n, const struct matmul_spec *s, struct err *err)
{
	const int64_t rows_max = 64 * (int64_t)65535;

	if (s->m <= rows_max && s->n <= INT32_MAX && s->k <= INT32_MAX)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "cuda: %s: matrix product of %lld x %lld x %lld is too large", n->name,
		       (long long)s->m, (long long)s->n, (long long)s->k);
}

int matmul_new(struct matmul **ret, const struct kernel_env *env, const struct node *n, const struct matmul_spec *spec,
	       struct err *err)
{
	int rc = check_matmul_sizes(n, spec, err);
	struct matmul *m;

	if (rc)
		return rc;
	m = mem_zalloc(sizeof(*m));
	m->node = n;
	m->spec = *spec;
	if (spec->m && spec->n && spec->k)
		rc = blas_plan_new(&m->plan, &m->offer, env, spec, err);
	if (rc && rc != ERR_UNSUPPORTED) {
		free(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void matmul_free(void *matmul)
{
	struct matmul *m = matmul;

	if (m)
		blas_plan_free(m->plan);
	free(m);
}

/* Bytes at the start of the workspace for the bias in D's type, if that differs from its own. */
static size_t count_bias_bytes(const struct matmul *m)
{
	const bool other = m->spec.out == DTYPE_BF16 || m->spec.out == DTYPE_F16;
	const size_t bytes = (size_t)m->spec.n * dtype_bytes(m->spec.out);

	return m->spec.bias && m->offer.adds_bias && other ? round_up_bytes(bytes, BLAS_ALIGN) : 0;
}

size_t matmul_workspace(const struct matmul *m)
{
	const size_t own = m->offer.any ? 0 : matmul_own_workspace(&m->spec);
	const size_t library = count_bias_bytes(m) + m->offer.workspace;

	return own > library ? own : library;
}

const struct node *matmul_node(const void *m)
{
	return ((const struct matmul *)m)->node;
}

const char *matmul_impl(const void *m)
{
	return ((const struct matmul *)m)->plan ? "cuBLASLt" : "tiles";
}

static void run_library_plan(const struct matmul *m, const struct matmul_operands *o, bool wide)
{
	const size_t room = count_bias_bytes(m);
	struct matmul_operands in = *o;

	if (room) {
		matmul_own_round(&m->spec, o, o->workspace);
		in.bias = o->workspace;
		in.workspace = (char *)o->workspace + room;
	}
	blas_plan_run(m->plan, m->node, &in, wide);
	if (m->spec.bias && !m->offer.adds_bias)
		matmul_own_bias(&m->spec, o);
}

void matmul_run(const struct matmul *m, const struct matmul_operands *o)
{
	const uintptr_t all = (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->d | (uintptr_t)o->bias;
	const bool wide = all % BLAS_ALIGN == 0;

	if (!m->spec.m || !m->spec.n)
		return;
	if (wide ? m->offer.wide : m->offer.any)
		run_library_plan(m, o, wide);
	else
		matmul_own_run(&m->spec, o);
}
