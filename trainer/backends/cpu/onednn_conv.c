/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_conv.c: oneDNN's convolutions. The caller provides scratchpads, so nothing large is allocated while
 * running. */
#include <stdlib.h>

#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/onednn_lib.h"
#include "trainer/graph/plan.h"

/* The description of a convolution in the library's terms; freed as a whole. */
struct conv_descs {
	desc_own src, weights, dst;
	dnnl_dims_t strides, pad_low, pad_high;
};

#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t create_forward_pd(struct dnn *d, const struct conv_descs *s, dnnl_prop_kind_t kind,
				       dnnl_primitive_desc_t *ret)
{
	return dnnl_convolution_forward_primitive_desc_create(ret, d->engine, kind, dnnl_convolution_direct, s->src,
							      s->weights, NULL, s->dst, s->strides, NULL, s->pad_low,
							      s->pad_high, d->attr);
}

static dnnl_status_t open_conv_walk(struct pd_walk *w, struct dnn *d, enum dnn_pass pass, const struct conv_descs *s)
{
	dnnl_status_t st = dnnl_success;

	w->first = true;
	if (pass == DNN_FORWARD)
		return create_forward_pd(d, s, dnnl_forward_training, &w->pd);
	if (pass == DNN_DGRAD)
		return dnnl_convolution_backward_data_primitive_desc_create(
			&w->pd, d->engine, dnnl_convolution_direct, s->src, s->weights, s->dst, s->strides, NULL,
			s->pad_low, s->pad_high, w->hint, d->attr);
	st = dnnl_convolution_backward_weights_primitive_desc_create(&w->pd, d->engine, dnnl_convolution_direct, s->src,
								     s->weights, NULL, s->dst, s->strides, NULL,
								     s->pad_low, s->pad_high, w->hint, d->attr);
	return st;
}
#else
static dnnl_status_t create_forward_pd(struct dnn *d, const struct conv_descs *s, dnnl_prop_kind_t kind,
				       dnnl_primitive_desc_t *ret)
{
	dnnl_convolution_desc_t op;
	dnnl_status_t st = dnnl_convolution_forward_desc_init(&op, kind, dnnl_convolution_direct, &s->src, &s->weights,
							      NULL, &s->dst, s->strides, s->pad_low, s->pad_high);

	return st == dnnl_success ? dnnl_primitive_desc_create(ret, &op, d->attr, d->engine, NULL) : st;
}

static dnnl_status_t open_conv_walk(struct pd_walk *w, struct dnn *d, enum dnn_pass pass, const struct conv_descs *s)
{
	dnnl_status_t st;

	w->first = true;
	if (pass == DNN_FORWARD)
		st = dnnl_convolution_forward_desc_init(&w->op.conv, dnnl_forward_training, dnnl_convolution_direct,
							&s->src, &s->weights, NULL, &s->dst, s->strides, s->pad_low,
							s->pad_high);
	else if (pass == DNN_DGRAD)
		st = dnnl_convolution_backward_data_desc_init(&w->op.conv, dnnl_convolution_direct, &s->src,
							      &s->weights, &s->dst, s->strides, s->pad_low,
							      s->pad_high);
	else
		st = dnnl_convolution_backward_weights_desc_init(&w->op.conv, dnnl_convolution_direct, &s->src,
								 &s->weights, NULL, &s->dst, s->strides, s->pad_low,
								 s->pad_high);
	return st == dnnl_success
		       ? dnnl_primitive_desc_iterator_create(&w->it, &w->op.conv, d->attr, d->engine, w->hint)
		       : st;
}
#endif

static void drop_conv_descs(struct conv_descs *s)
{
	desc_drop(&s->src);
	desc_drop(&s->weights);
	desc_drop(&s->dst);
}

static int64_t find_high_padding(int64_t in, int64_t out, const struct dnn_conv_spec *spec)
{
	return (out - 1) * spec->stride + spec->kernel - spec->pad - in;
}

static dnnl_status_t make_conv_descs(struct conv_descs *s, const struct dnn_conv_spec *spec)
{
	const dnnl_dims_t src = { spec->n, spec->c, spec->h, spec->w }, dst = { spec->n, spec->k, spec->p, spec->q };
	const dnnl_dims_t weights = { spec->k, spec->c, spec->kernel, spec->kernel };
	dnnl_data_type_t type = spec->bf16 ? dnnl_bf16 : dnnl_f32;
	dnnl_status_t st;

	memset(s, 0, sizeof(*s));
	s->strides[0] = s->strides[1] = spec->stride;
	s->pad_low[0] = s->pad_low[1] = spec->pad;
	s->pad_high[0] = find_high_padding(spec->h, spec->p, spec);
	s->pad_high[1] = find_high_padding(spec->w, spec->q, spec);
	st = desc_make(&s->src, 4, src, type, dnnl_nhwc);
	if (st == dnnl_success)
		st = desc_make(&s->dst, 4, dst, type, dnnl_nhwc);
	if (st == dnnl_success)
		st = desc_make(&s->weights, 4, weights, spec->pass == DNN_WGRAD ? dnnl_f32 : type, dnnl_format_tag_any);
	if (st != dnnl_success)
		drop_conv_descs(s);
	return st;
}

/* The gradients' hint is a forward convolution of the same types, in which weights have the type of the activations. */
static dnnl_status_t make_conv_hint(struct pd_walk *w, struct dnn *d, const struct dnn_conv_spec *spec)
{
	struct dnn_conv_spec forward = *spec;
	struct conv_descs s;
	dnnl_status_t st;

	if (spec->pass == DNN_FORWARD)
		return dnnl_success;
	forward.pass = DNN_FORWARD;
	st = make_conv_descs(&s, &forward);
	if (st != dnnl_success)
		return st;
	st = create_forward_pd(d, &s, dnnl_forward_training, &w->hint);
	drop_conv_descs(&s);
	return st;
}

static dnnl_status_t start_conv_walk(struct pd_walk *w, struct dnn *d, const struct dnn_conv_spec *spec)
{
	struct conv_descs s;
	dnnl_status_t st;

	memset(w, 0, sizeof(*w));
	st = make_conv_descs(&s, spec);
	if (st != dnnl_success)
		return st;
	st = make_conv_hint(w, d, spec);
	if (st == dnnl_success)
		st = open_conv_walk(w, d, spec->pass, &s);
	drop_conv_descs(&s);
	if (st != dnnl_success)
		walk_close(w);
	return st;
}

bool dnn_conv_candidate(struct dnn *d, const struct dnn_conv_spec *spec, int i, char *name, size_t n)
{
	struct pd_walk w;
	bool found;

	if (start_conv_walk(&w, d, spec) != dnnl_success)
		return false;
	found = walk_name(&w, i, name, n);
	walk_close(&w);
	return found;
}

bool dnn_takes_bf16(struct dnn *d)
{
	struct dnn_conv_spec spec = { .bf16 = true,
				      .n = 1,
				      .h = 8,
				      .w = 8,
				      .c = 64,
				      .k = 64,
				      .p = 8,
				      .q = 8,
				      .kernel = 3,
				      .stride = 1,
				      .pad = 1 };
	char name[64];
	bool all = true;

	for (int pass = DNN_FORWARD; pass <= DNN_WGRAD; pass++) {
		spec.pass = (enum dnn_pass)pass;
		all = all && dnn_conv_candidate(d, &spec, 0, name, sizeof(name));
	}
	return all;
}

/* Operands of dnn_conv_args in the library's numbering. */
struct dnn_conv {
	struct dnn *dnn;
	dnnl_primitive_desc_t pd;
	dnnl_primitive_t prim, reorder;
	dnnl_memory_t a, b, out, scratch; /* arguments of prim */
	dnnl_memory_t plain, packed;	  /* arguments of reorder: f32 KRSC, and the implementation's layout */
	desc_own plain_desc;
	enum dnn_pass pass;
	size_t packed_bytes, scratch_bytes;
	char impl[64];
};

static void free_conv_handles(struct dnn_conv *c)
{
	dnnl_memory_t *const memories[] = { &c->a, &c->b, &c->out, &c->scratch, &c->plain, &c->packed };

	for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
		if (*memories[i])
			dnnl_memory_destroy(*memories[i]);
	if (c->reorder)
		dnnl_primitive_destroy(c->reorder);
	if (c->prim)
		dnnl_primitive_destroy(c->prim);
	if (c->pd)
		dnnl_primitive_desc_destroy(c->pd);
	desc_drop(&c->plain_desc);
	free(c);
}

void dnn_conv_free(struct dnn_conv *c)
{
	if (c)
		free_conv_handles(c);
}

static desc_ref query_conv_desc(const struct dnn_conv *c, dnnl_query_t what)
{
	return dnnl_primitive_desc_query_md(c->pd, what, 0);
}

static desc_ref weights_desc(const struct dnn_conv *c)
{
	return query_conv_desc(c, c->pass == DNN_WGRAD ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
}

static dnnl_status_t make_conv_memories(struct dnn_conv *c)
{
	static const dnnl_query_t queries[][3] = {
		[DNN_FORWARD] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
		[DNN_DGRAD] = { dnnl_query_diff_dst_md, dnnl_query_weights_md, dnnl_query_diff_src_md },
		[DNN_WGRAD] = { dnnl_query_src_md, dnnl_query_diff_dst_md, dnnl_query_diff_weights_md },
	};
	const dnnl_query_t *q = queries[c->pass];
	dnnl_status_t st = memory_make(&c->a, query_conv_desc(c, q[0]), c->dnn);

	if (st == dnnl_success)
		st = memory_make(&c->b, query_conv_desc(c, q[1]), c->dnn);
	if (st == dnnl_success)
		st = memory_make(&c->out, query_conv_desc(c, q[2]), c->dnn);
	if (st == dnnl_success)
		st = memory_make(&c->scratch, query_conv_desc(c, dnnl_query_scratchpad_md), c->dnn);
	return st;
}

static dnnl_status_t make_weight_reorder(struct dnn_conv *c, const struct dnn_conv_spec *spec)
{
	const dnnl_dims_t dims = { spec->k, spec->c, spec->kernel, spec->kernel };
	dnnl_status_t st = desc_make(&c->plain_desc, 4, dims, dnnl_f32, dnnl_ohwi);
	desc_ref plain = desc_borrow(&c->plain_desc), packed = weights_desc(c);
	bool decompress = c->pass == DNN_WGRAD;
	dnnl_primitive_desc_t pd = NULL;

	if (st == dnnl_success)
		st = memory_make(&c->plain, plain, c->dnn);
	if (st == dnnl_success)
		st = memory_make(&c->packed, packed, c->dnn);
	if (st == dnnl_success)
		st = dnnl_reorder_primitive_desc_create(&pd, decompress ? packed : plain, c->dnn->engine,
							decompress ? plain : packed, c->dnn->engine, NULL);
	if (st == dnnl_success)
		st = dnnl_primitive_create(&c->reorder, pd);
	if (pd)
		dnnl_primitive_desc_destroy(pd);
	return st;
}

/* The description of the implementation called impl (NULL: the first that is usable). */
static dnnl_primitive_desc_t find_conv_pd(struct dnn *d, const struct dnn_conv_spec *spec, const char *impl)
{
	dnnl_primitive_desc_t pd;
	struct pd_walk w;

	if (start_conv_walk(&w, d, spec) != dnnl_success)
		return NULL;
	pd = walk_find(&w, impl);
	walk_close(&w);
	return pd;
}

/* Generates code for the convolution and for the layout of its weights. */
static dnnl_status_t make_conv_primitives(struct dnn_conv *c, const struct dnn_conv_spec *spec)
{
	dnnl_status_t st = dnnl_primitive_create(&c->prim, c->pd);

	if (st == dnnl_success)
		st = make_conv_memories(c);
	if (st == dnnl_success)
		st = make_weight_reorder(c, spec);
	return st;
}

int dnn_conv_new(struct dnn_conv **ret, struct dnn *d, const struct dnn_conv_spec *spec, const char *impl,
		 struct err *err)
{
	struct dnn_conv *c = mem_zalloc(sizeof(*c));
	dnnl_status_t st = dnnl_success;

	c->dnn = d;
	c->pass = spec->pass;
	c->pd = find_conv_pd(d, spec, impl);
	if (!c->pd) {
		dnn_conv_free(c);
		return err_set(err, ERR_UNSUPPORTED,
			       "oneDNN has no fast %s convolution (%s%s) for %lldx%lldx%lldx%lld, %lld filters of "
			       "%lldx%lld, stride %lld on this processor",
			       spec->bf16 ? "bf16" : "f32", impl ? "named " : "of any name", impl ? impl : "",
			       (long long)spec->n, (long long)spec->h, (long long)spec->w, (long long)spec->c,
			       (long long)spec->k, (long long)spec->kernel, (long long)spec->kernel,
			       (long long)spec->stride);
	}
	snprintf(c->impl, sizeof(c->impl), "%s", pd_impl(c->pd));
	c->packed_bytes = dnnl_memory_desc_get_size(weights_desc(c));
	c->scratch_bytes = dnnl_memory_desc_get_size(query_conv_desc(c, dnnl_query_scratchpad_md));
	if (!d->plans)
		st = make_conv_primitives(c, spec);
	if (st == dnnl_success) {
		*ret = c;
		return 0;
	}
	dnn_conv_free(c);
	return dnn_fail(err, "making a convolution", st);
}

const char *dnn_conv_impl(const struct dnn_conv *c)
{
	return c->impl;
}

size_t dnn_conv_packed_bytes(const struct dnn_conv *c)
{
	return c->packed_bytes;
}

size_t dnn_conv_workspace_bytes(const struct dnn_conv *c)
{
	return round_up_bytes(c->scratch_bytes, PLAN_ALIGN_BYTES) +
	       (c->pass == DNN_WGRAD ? round_up_bytes(c->packed_bytes, PLAN_ALIGN_BYTES) : 0);
}

static void run_weight_reorder(struct dnn_conv *c, void *from, void *to)
{
	bool decompress = c->pass == DNN_WGRAD;
	dnnl_memory_t src = decompress ? c->packed : c->plain, dst = decompress ? c->plain : c->packed;
	const dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, src }, { DNNL_ARG_TO, dst } };

	dnnl_memory_set_data_handle(src, from);
	dnnl_memory_set_data_handle(dst, to);
	dnn_execute(c->dnn, c->reorder, 2, args);
}

void dnn_conv_pack(struct dnn_conv *c, const void *krsc_f32, void *packed)
{
	run_weight_reorder(c, (void *)(uintptr_t)krsc_f32, packed);
}

void dnn_conv_run(struct dnn_conv *c, const struct dnn_conv_args *args)
{
	static const int names[][3] = {
		[DNN_FORWARD] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
		[DNN_DGRAD] = { DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC },
		[DNN_WGRAD] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS },
	};
	const int *name = names[c->pass];
	const dnnl_exec_arg_t list[] = {
		{ name[0], c->a }, { name[1], c->b }, { name[2], c->out }, { DNNL_ARG_SCRATCHPAD, c->scratch }
	};
	char *packed = (char *)args->workspace + round_up_bytes(c->scratch_bytes, PLAN_ALIGN_BYTES);
	bool wgrad = c->pass == DNN_WGRAD;

	dnnl_memory_set_data_handle(c->a, (void *)(uintptr_t)args->a);
	dnnl_memory_set_data_handle(c->b, (void *)(uintptr_t)args->b);
	dnnl_memory_set_data_handle(c->out, wgrad ? packed : args->out);
	dnnl_memory_set_data_handle(c->scratch, args->workspace);
	dnn_execute(c->dnn, c->prim, 4, list);
	if (wgrad)
		run_weight_reorder(c, packed, args->out);
}
