/* cpu_matmul.c: a product is one of product.h's, or, in bf16 where the processor has none, f32 ones of its panels:
 * copies of large operands (a language model's head has one of the vocabulary) would take more memory than bf16 saves.
 */
#include "trainer/backends/cpu/cpu_matmul.h"

#include <stdio.h>
#include <stdlib.h>

#include "trainer/backends/cpu/few_rows.h"
#include "trainer/backends/cpu/product.h"
#include "trainer/backends/cpu/widen.h"

#define PANEL_ELEMENTS (INT64_C(4) << 20) /* of its largest operand */
#define PANEL_GRAIN 64			  /* rows or columns: sizes of panels are its multiples */

enum cut { CUT_M, CUT_N, CUT_K };
enum place { FIRST, BETWEEN, LAST, PLACES }; /* of a panel; a lone one is the first */

struct cpu_matmul {
	struct cpu_matmul *next;
	struct dnn_matmul_spec spec;
	int threads;
	const struct cpu_module *module;
	bool widened;
	enum cut cut;
	int64_t length, size;		    /* of the dimension that is cut, of a panel */
	struct cpu_product *product[PLACES]; /* the first alone where it is not widened */
	size_t product_bytes, copies_bytes; /* of the workspace, in this order */
	char impl[80];
};

struct panel {
	struct dnn_matmul_spec spec; /* f32 */
	struct widen_copies copies;
	int64_t a, b, bias, out; /* elements in front of the panel's */
};

static bool takes_panels(const struct cpu_module *m, const struct dnn_matmul_spec *s)
{
	return s->bf16 && m->widens && s->m > 0 && s->n > 0 && s->k > 0 && !few_rows_takes(m, s);
}

static int64_t max_int64(int64_t x, int64_t y)
{
	return x > y ? x : y;
}

/* Along the longest dimension, so that the largest operands become small. */
static void cut_matmul_panels(struct cpu_matmul *c)
{
	const struct dnn_matmul_spec *s = &c->spec;
	int64_t largest = max_int64(max_int64(s->m * s->k, s->k * s->n), s->out_bf16 ? s->m * s->n : 0);
	int64_t panels = (largest + PANEL_ELEMENTS - 1) / PANEL_ELEMENTS;

	c->length = max_int64(max_int64(s->m, s->n), s->k);
	c->cut = c->length == s->m ? CUT_M : c->length == s->n ? CUT_N : CUT_K;
	c->size = ((c->length + panels - 1) / panels + PANEL_GRAIN - 1) / PANEL_GRAIN * PANEL_GRAIN;
}

static enum place find_panel_place(const struct cpu_matmul *c, int64_t at)
{
	return at == 0 ? FIRST : at + c->size >= c->length ? LAST : BETWEEN;
}

/* The sizes of the panel that begins there; sums along k continue from the panels before. */
static struct dnn_matmul_spec panel_spec(const struct cpu_matmul *c, int64_t at)
{
	struct dnn_matmul_spec s = c->spec;
	int64_t size = c->size < c->length - at ? c->size : c->length - at;

	*(c->cut == CUT_M ? &s.m : c->cut == CUT_N ? &s.n : &s.k) = size;
	s.bf16 = s.out_bf16 = false;
	s.a_step = 0;
	s.out_step = c->spec.out_bf16 ? 0 : c->spec.out_step ? c->spec.out_step : c->spec.n;
	if (c->cut == CUT_K && at > 0) {
		s.add = true;
		s.bias = false;
	}
	return s;
}

static struct panel panel_of(const struct cpu_matmul *c, int64_t at)
{
	const struct dnn_matmul_spec *s = &c->spec;
	const int64_t m = c->cut == CUT_M ? at : 0, n = c->cut == CUT_N ? at : 0, k = c->cut == CUT_K ? at : 0;
	const int64_t a_step = s->a_step ? s->a_step : s->a_turned ? s->m : s->k, b_step = s->b_turned ? s->k : s->n;
	const int64_t out_step = s->out_step ? s->out_step : s->n;
	struct panel p = { .spec = panel_spec(c, at), .bias = n, .out = m * out_step + n };
	const struct dnn_matmul_spec *q = &p.spec;

	p.a = s->a_turned ? k * a_step + m : m * a_step + k;
	p.b = s->b_turned ? n * b_step + k : k * b_step + n;
	p.copies = (struct widen_copies){ .module = c->module, .threads = c->threads, .add = s->add && k == 0 };
	p.copies.a = (struct widen_rows){ q->a_turned ? q->k : q->m, q->a_turned ? q->m : q->k, a_step };
	p.copies.b = (struct widen_rows){ q->b_turned ? q->n : q->k, q->b_turned ? q->k : q->n, b_step };
	if (s->out_bf16)
		p.copies.out = (struct widen_rows){ q->m, q->n, out_step };
	return p;
}

/* Panels of one place are alike. */
static int make_product(struct cpu_matmul *c, const struct kernel_env *env, enum place place,
			const struct dnn_matmul_spec *spec, struct err *err)
{
	int rc = c->product[place] ? 0 : cpu_product_new(&c->product[place], env, spec, err);
	size_t bytes = rc ? 0 : cpu_product_workspace_bytes(c->product[place]);

	c->product_bytes = bytes > c->product_bytes ? bytes : c->product_bytes;
	return rc;
}

static int make_products(struct cpu_matmul *c, const struct kernel_env *env, struct err *err)
{
	int rc = 0;

	c->widened = takes_panels(c->module, &c->spec);
	if (!c->widened)
		return make_product(c, env, FIRST, &c->spec, err);
	cut_matmul_panels(c);
	for (int64_t at = 0; !rc && at < c->length; at += c->size) {
		const struct panel p = panel_of(c, at);
		size_t bytes = widen_bytes(&p.copies);

		rc = make_product(c, env, find_panel_place(c, at), &p.spec, err);
		c->copies_bytes = bytes > c->copies_bytes ? bytes : c->copies_bytes;
	}
	return rc;
}

static void free_matmul_products(struct cpu_matmul *c)
{
	for (int i = 0; i < PLACES; i++)
		cpu_product_free(c->product[i]);
	free(c);
}

int cpu_matmul_get(struct cpu_matmul **ret, const struct kernel_env *env, const struct dnn_matmul_spec *spec,
		   struct err *err)
{
	struct cpu_module *m = env->module;
	struct cpu_matmul *c;
	int rc;

	for (c = m->matmuls; c; c = c->next)
		if (c->threads == env->threads && dnn_matmul_alike(&c->spec, spec)) {
			*ret = c;
			return 0;
		}
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ERR_NOMEM, "backend cpu: out of memory while preparing a matrix product");
	c->spec = *spec;
	c->module = m;
	c->threads = env->threads;
	rc = make_products(c, env, err);
	if (rc) {
		free_matmul_products(c);
		return rc;
	}
	snprintf(c->impl, sizeof(c->impl), "%s%s", cpu_product_impl(c->product[FIRST]), c->widened ? " in f32" : "");
	c->next = m->matmuls;
	m->matmuls = c;
	*ret = c;
	return 0;
}

void cpu_matmul_free_all(struct cpu_module *m)
{
	while (m->matmuls) {
		struct cpu_matmul *c = m->matmuls;

		m->matmuls = c->next;
		free_matmul_products(c);
	}
}

size_t cpu_matmul_workspace_bytes(const struct cpu_matmul *c)
{
	return c->product_bytes + c->copies_bytes;
}

const char *cpu_matmul_impl(const struct cpu_matmul *c)
{
	return c->impl;
}

/* Sums along k stay in the copy until the last panel. */
static int run_panel(struct cpu_matmul *c, int64_t at, const struct dnn_matmul_args *args, struct err *err)
{
	const struct panel p = panel_of(c, at);
	void *out = (char *)args->out + p.out * (c->spec.out_bf16 ? 2 : 4);
	struct widen_operands o = { (const uint16_t *)args->a + p.a, (const uint16_t *)args->b + p.b, out };
	struct dnn_matmul_args in_f32 = { .bias = p.spec.bias ? args->bias + p.bias : NULL,
					  .workspace = args->workspace };
	int rc;

	widen_in(&p.copies, (char *)args->workspace + c->product_bytes, &o);
	in_f32.a = o.a;
	in_f32.b = o.b;
	in_f32.out = o.out;
	rc = cpu_product_run(c->product[find_panel_place(c, at)], &in_f32, err);
	if (!rc && (c->cut != CUT_K || at + c->size >= c->length))
		widen_out(&p.copies, &o, out);
	return rc;
}

int cpu_matmul_run(struct cpu_matmul *c, const struct dnn_matmul_args *args, struct err *err)
{
	int rc = 0;

	if (!c->widened)
		return cpu_product_run(c->product[FIRST], args, err);
	for (int64_t at = 0; !rc && at < c->length; at += c->size)
		rc = run_panel(c, at, args, err);
	return rc;
}
