/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_matmul.c: oneDNN's products of plain matrices. The caller provides scratchpads. */
#include <stdlib.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/onednn_lib.h"
#include "trainer/graph/plan.h"

struct dnn_matmul {
	struct dnn *dnn;
	dnnl_primitive_desc_t pd;
	dnnl_primitive_t prim;
	dnnl_memory_t a, b, bias, out, scratch;
	size_t scratch_bytes;
	char impl[64];
};

struct matmul_descs {
	desc_own a, b, bias, out;
};

static void drop_matmul_descs(struct matmul_descs *s)
{
	desc_drop(&s->a);
	desc_drop(&s->b);
	desc_drop(&s->bias);
	desc_drop(&s->out);
}

/* Describes rows x columns, stored row by row with `step` elements between rows (0: no gaps), or column by column if
 * turned. */
static dnnl_status_t plain_make(desc_own *d, dnnl_data_type_t type, const dnnl_dims_t dims, bool turned, int64_t step)
{
	const dnnl_dims_t by_rows = { step ? step : dims[1], 1 }, by_columns = { 1, step ? step : dims[0] };

	return desc_strided(d, dims, turned ? by_columns : by_rows, type);
}

static dnnl_status_t make_matmul_descs(struct matmul_descs *s, const struct dnn_matmul_spec *spec)
{
	const dnnl_dims_t a = { spec->m, spec->k }, b = { spec->k, spec->n }, bias = { 1, spec->n };
	const dnnl_dims_t out = { spec->m, spec->n };
	dnnl_data_type_t type = spec->bf16 ? dnnl_bf16 : dnnl_f32;
	dnnl_status_t st;

	memset(s, 0, sizeof(*s));
	st = plain_make(&s->a, type, a, spec->a_turned, spec->a_step);
	if (st == dnnl_success)
		st = plain_make(&s->b, type, b, spec->b_turned, 0);
	if (st == dnnl_success && spec->bias)
		st = plain_make(&s->bias, dnnl_f32, bias, false, 0);
	if (st == dnnl_success)
		st = plain_make(&s->out, spec->out_bf16 ? dnnl_bf16 : dnnl_f32, out, false, spec->out_step);
	if (st != dnnl_success)
		drop_matmul_descs(s);
	return st;
}

/* The library copies attributes into the objects that are made with them. */
static dnnl_status_t attr_make(dnnl_primitive_attr_t *ret, const struct dnn_matmul_spec *spec)
{
	dnnl_post_ops_t ops = NULL;
	dnnl_status_t st = dnnl_primitive_attr_create(ret);

	if (st == dnnl_success)
		st = dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user);
	if (st != dnnl_success || !spec->add)
		return st;
	st = dnnl_post_ops_create(&ops);
#if DNNL_VERSION_MAJOR >= 3
	if (st == dnnl_success)
		st = dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
#else
	if (st == dnnl_success)
		st = dnnl_post_ops_append_sum(ops, 1);
#endif
	if (st == dnnl_success)
		st = dnnl_primitive_attr_set_post_ops(*ret, ops);
	if (ops)
		dnnl_post_ops_destroy(ops);
	return st;
}

static dnnl_status_t open_matmul_walk(struct pd_walk *w, struct dnn *d, const struct matmul_descs *s,
				      dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
	return dnnl_matmul_primitive_desc_create(&w->pd, d->engine, s->a, s->b, s->bias, s->out, attr);
#else
	bool bias = dnnl_memory_desc_get_size(&s->bias) > 0;
	dnnl_status_t st = dnnl_matmul_desc_init(&w->op.matmul, &s->a, &s->b, bias ? &s->bias : NULL, &s->out);

	return st == dnnl_success ? dnnl_primitive_desc_iterator_create(&w->it, &w->op.matmul, attr, d->engine, NULL)
				  : st;
#endif
}

static dnnl_status_t start_matmul_walk(struct pd_walk *w, struct dnn *d, const struct dnn_matmul_spec *spec)
{
	dnnl_primitive_attr_t attr = NULL;
	struct matmul_descs s;
	dnnl_status_t st;

	memset(w, 0, sizeof(*w));
	w->first = true;
	st = make_matmul_descs(&s, spec);
	if (st != dnnl_success)
		return st;
	st = attr_make(&attr, spec);
	if (st == dnnl_success)
		st = open_matmul_walk(w, d, &s, attr);
	if (attr)
		dnnl_primitive_attr_destroy(attr);
	drop_matmul_descs(&s);
	if (st != dnnl_success)
		walk_close(w);
	return st;
}

bool dnn_matmul_alike(const struct dnn_matmul_spec *a, const struct dnn_matmul_spec *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k && a->bf16 == b->bf16 && a->out_bf16 == b->out_bf16 &&
	       a->a_turned == b->a_turned && a->b_turned == b->b_turned && a->bias == b->bias && a->add == b->add &&
	       a->a_step == b->a_step && a->out_step == b->out_step;
}

bool dnn_matmul_candidate(struct dnn *d, const struct dnn_matmul_spec *spec, int i, char *name, size_t n)
{
	struct pd_walk w;
	bool found;

	if (start_matmul_walk(&w, d, spec) != dnnl_success)
		return false;
	found = walk_name(&w, i, name, n);
	walk_close(&w);
	return found;
}

void dnn_matmul_free(struct dnn_matmul *m)
{
	if (!m)
		return;
	dnnl_memory_t memories[] = { m->a, m->b, m->bias, m->out, m->scratch };

	for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
		if (memories[i])
			dnnl_memory_destroy(memories[i]);
	if (m->prim)
		dnnl_primitive_destroy(m->prim);
	if (m->pd)
		dnnl_primitive_desc_destroy(m->pd);
	free(m);
}

static desc_ref query_matmul_desc(const struct dnn_matmul *m, dnnl_query_t what)
{
	return dnnl_primitive_desc_query_md(m->pd, what, 0);
}

static dnnl_status_t make_matmul_memories(struct dnn_matmul *m, bool bias)
{
	dnnl_status_t st = memory_make(&m->a, query_matmul_desc(m, dnnl_query_src_md), m->dnn);

	if (st == dnnl_success)
		st = memory_make(&m->b, query_matmul_desc(m, dnnl_query_weights_md), m->dnn);
	if (st == dnnl_success && bias)
		st = memory_make(&m->bias, dnnl_primitive_desc_query_md(m->pd, dnnl_query_weights_md, 1), m->dnn);
	if (st == dnnl_success)
		st = memory_make(&m->out, query_matmul_desc(m, dnnl_query_dst_md), m->dnn);
	if (st == dnnl_success)
		st = memory_make(&m->scratch, query_matmul_desc(m, dnnl_query_scratchpad_md), m->dnn);
	return st;
}

/* Finds the implementation and generates its code. */
static int make_matmul_primitive(struct dnn_matmul *m, const struct dnn_matmul_spec *spec, const char *impl,
				 struct err *err)
{
	struct pd_walk w;
	dnnl_status_t st;

	if (start_matmul_walk(&w, m->dnn, spec) == dnnl_success) {
		m->pd = walk_find(&w, impl);
		walk_close(&w);
	}
	if (!m->pd)
		return err_set(err, ERR_UNSUPPORTED,
			       "oneDNN has no fast %s matrix product (%s%s) of %lldx%lldx%lld on this processor",
			       spec->bf16 ? "bf16" : "f32", impl ? "named " : "of any name", impl ? impl : "",
			       (long long)spec->m, (long long)spec->n, (long long)spec->k);
	snprintf(m->impl, sizeof(m->impl), "%s", pd_impl(m->pd));
	m->scratch_bytes = dnnl_memory_desc_get_size(query_matmul_desc(m, dnnl_query_scratchpad_md));
	if (m->dnn->plans)
		return 0;
	st = dnnl_primitive_create(&m->prim, m->pd);
	if (st == dnnl_success)
		st = make_matmul_memories(m, spec->bias);
	return st == dnnl_success ? 0 : dnn_fail(err, "making a matrix product", st);
}

int dnn_matmul_new(struct dnn_matmul **ret, struct dnn *d, const struct dnn_matmul_spec *spec, const char *impl,
		   struct err *err)
{
	struct dnn_matmul *m = mem_zalloc(sizeof(*m));
	int rc;

	m->dnn = d;
	rc = make_matmul_primitive(m, spec, impl, err);
	if (rc)
		dnn_matmul_free(m);
	else
		*ret = m;
	return rc;
}

const char *dnn_matmul_impl(const struct dnn_matmul *m)
{
	return m->impl;
}

size_t dnn_matmul_workspace_bytes(const struct dnn_matmul *m)
{
	return round_up_bytes(m->scratch_bytes, PLAN_ALIGN_BYTES);
}

void dnn_matmul_run(struct dnn_matmul *m, const struct dnn_matmul_args *args)
{
	const dnnl_exec_arg_t list[] = { { DNNL_ARG_SRC, m->a },
					 { DNNL_ARG_WEIGHTS, m->b },
					 { DNNL_ARG_DST, m->out },
					 { DNNL_ARG_SCRATCHPAD, m->scratch },
					 { DNNL_ARG_BIAS, m->bias } };

	dnnl_memory_set_data_handle(m->a, (void *)(uintptr_t)args->a);
	dnnl_memory_set_data_handle(m->b, (void *)(uintptr_t)args->b);
	dnnl_memory_set_data_handle(m->out, args->out);
	dnnl_memory_set_data_handle(m->scratch, args->workspace);
	if (m->bias)
		dnnl_memory_set_data_handle(m->bias, (void *)(uintptr_t)args->bias);
	dnn_execute(m->dnn, m->prim, m->bias ? 5 : 4, list);
}
