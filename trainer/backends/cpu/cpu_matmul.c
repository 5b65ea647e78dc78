/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_matmul.c: a module's matrix products, one for all nodes with the same shape. In types that the processor
 * supports, a product is computed by own code or the library (struct cpu_product). On processors without bf16 products,
 * a bf16 product is computed panel by panel in f32. Copies of whole operands (a language model's head has one of the
 * size of the vocabulary) would take more memory than bf16 saves. */
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu_matmul.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/cpu_pick.h"
#include "trainer/backends/cpu/widen.h"

#define SMALL_PRODUCT (INT64_C(1) << 26) /* multiplications */
#define OWN_TILES "own:tiles"

enum product_by { BY_NOBODY, BY_FEW_ROWS, BY_TILES, BY_LIBRARY }; /* BY_NOBODY: a size is 0 */

struct cpu_product {
	struct dnn_matmul_spec spec;
	int threads;
	const struct cpu_module *module;
	enum product_by by;
	struct dnn_matmul *dnn; /* the library's product */
};

static void set_product_threads(int threads)
{
	if (omp_get_max_threads() != threads)
		omp_set_num_threads(threads);
}

/* The library's gemm packs operands in every call; small products do not benefit. */
static bool is_small_product(const struct dnn_matmul_spec *s)
{
	return s->m * s->n * s->k < SMALL_PRODUCT;
}

/* The measured rule: copying into panels pays off for tiles with a plain b, and for long sums of a turned a. */
static void pick_product_by_rule(struct cpu_module *m, const struct dnn_matmul_spec *s, char *name)
{
	name[0] = '\0';
	if (tiles_takes(m, s) && !is_small_product(s)) {
		snprintf(name, PICK_NAME_BYTES, OWN_TILES);
		return;
	}
	for (int i = 0;
	     !s->b_turned && !is_small_product(s) && dnn_matmul_candidate(m->dnn, s, i, name, PICK_NAME_BYTES); i++)
		if (strstr(name, "gemm"))
			return;
	name[0] = '\0';
}

static int64_t count_out_elements(const struct dnn_matmul_spec *s)
{
	return s->m * (s->out_step ? s->out_step : s->n);
}

struct product_trial {
	const struct cpu_module *module;
	const struct dnn_matmul_spec *spec;
	int threads;
	char *memory;
	size_t bytes, a, b, bias, out, workspace;
	struct dnn_matmul *list[PICK_CANDIDATES]; /* NULL: own tiles */
};

static size_t round_operand_bytes(int64_t elements, size_t item)
{
	return round_up_bytes((size_t)elements * item, 4096);
}

static int open_product_trial(struct product_trial *t, size_t workspace)
{
	const struct dnn_matmul_spec *s = t->spec;
	int64_t a_rows = s->a_turned ? s->k : s->m;
	size_t item = s->bf16 ? 2 : 4;

	t->b = round_operand_bytes(s->a_step ? a_rows * s->a_step : s->m * s->k, item);
	t->bias = t->b + round_operand_bytes(s->k * s->n, item);
	t->out = t->bias + round_operand_bytes(s->n, 4);
	t->workspace = t->out + round_operand_bytes(count_out_elements(s), 4);
	t->bytes = t->workspace + workspace + 4096;
	t->memory = cpu_pick_room(t->module->picks, t->bytes);
	if (!t->memory)
		return -1;
	memset(t->memory, PICK_FILL, t->out);
	return 0;
}

static double run_product_once(void *arg, int i)
{
	struct product_trial *t = arg;
	const struct dnn_matmul_args args = { .a = t->memory,
					      .b = t->memory + t->b,
					      .bias = t->spec->bias ? (const float *)(t->memory + t->bias) : NULL,
					      .out = t->memory + t->out,
					      .workspace = t->memory + t->workspace };
	double seconds = -cpu_pick_clock(t->threads);

	if (t->list[i])
		dnn_matmul_run(t->list[i], &args);
	else
		tiles_run(t->module, t->spec, t->threads, &args);
	seconds += cpu_pick_clock(t->threads);
	return dnn_take_failure(t->module->dnn, NULL) ? PICK_FAILED : seconds;
}

/* Lists the names of candidates worth a trial; returns their number. Enlarges the workspace to the largest need. */
static int list_product_candidates(struct product_trial *t, struct dnn *dnn, char names[][PICK_NAME_BYTES],
				   size_t *workspace)
{
	const struct dnn_matmul_spec *s = t->spec;
	int n = 0;

	if (tiles_takes(t->module, s)) {
		*workspace = tiles_workspace_bytes(s, t->threads);
		snprintf(names[n++], PICK_NAME_BYTES, OWN_TILES);
	}
	for (int i = 0; n < PICK_CANDIDATES && dnn_matmul_candidate(dnn, s, i, names[n], PICK_NAME_BYTES); i++) {
		if (!cpu_pick_worth_trying(t->module, names[n]) || (is_small_product(s) && strstr(names[n], "gemm")) ||
		    dnn_matmul_new(&t->list[n], dnn, s, names[n], NULL))
			continue;
		if (dnn_matmul_workspace_bytes(t->list[n]) > *workspace)
			*workspace = dnn_matmul_workspace_bytes(t->list[n]);
		n++;
	}
	return n;
}

/* Returns false if the machine is too busy for a measurement. */
static bool time_product_candidates(struct cpu_module *m, const struct dnn_matmul_spec *s, int threads, char *name)
{
	char names[PICK_CANDIDATES][PICK_NAME_BYTES];
	struct product_trial t = { .module = m, .spec = s, .threads = threads };
	size_t workspace = 0;
	int n = list_product_candidates(&t, m->dnn, names, &workspace), best = 0;
	bool clear = true;

	if (n > 0)
		snprintf(name, PICK_NAME_BYTES, "%s", names[0]);
	if (n > 1 && open_product_trial(&t, workspace) == 0) {
		clear = cpu_pick_fastest(&best, n, threads, run_product_once, &t);
		snprintf(name, PICK_NAME_BYTES, "%s", names[best]);
	}
	for (int i = 0; i < n; i++)
		dnn_matmul_free(t.list[i]);
	return clear;
}

/* Formats the key under which a choice is remembered. */
static void describe_product(const struct cpu_module *m, const struct dnn_matmul_spec *s, char *what, size_t n)
{
	char steps[48] = "";

	if (s->a_step || s->out_step)
		snprintf(steps, sizeof(steps), " step %lld,%lld", (long long)s->a_step, (long long)s->out_step);
	snprintf(what, n, "matmul %s%s %lldx%lldx%lld%s%s%s%s%s", s->bf16 ? "bf16" : m->split ? "f32 split" : "f32",
		 s->out_bf16 ? ">bf16" : ">f32", (long long)s->m, (long long)s->n, (long long)s->k,
		 s->a_turned ? " at" : "", s->b_turned ? " bt" : "", s->bias ? " bias" : "", s->add ? " add" : "",
		 steps);
}

static void pick_product(struct cpu_module *m, const struct dnn_matmul_spec *s, int threads, char *name)
{
	char key[PICK_KEY_BYTES], what[160];
	struct dnn_matmul_spec share = *s;

	if (m->deterministic || !m->picks) {
		pick_product_by_rule(m, s, name);
		return;
	}
	describe_product(m, s, what, sizeof(what));
	cpu_pick_key(key, m, threads, what);
	name[0] = '\0';
	if (cpu_pick_recall(m, key, name))
		return;
	if (!time_product_candidates(m, s, threads, name)) {
		share.m = s->m > threads ? s->m / threads : 1;
		set_product_threads(1);
		time_product_candidates(m, &share, 1, name);
		set_product_threads(threads);
	}
	cpu_pick_keep(m, key, name);
}

/* The installed library may lack a remembered name: then its first choice is used. */
static int make_picked_product(struct cpu_product *c, struct cpu_module *m, struct err *err)
{
	char name[PICK_NAME_BYTES];

	c->by = few_rows_takes(m, &c->spec) ? BY_FEW_ROWS : BY_LIBRARY;
	if (c->by == BY_FEW_ROWS)
		return 0;
	set_product_threads(c->threads);
	pick_product(m, &c->spec, c->threads, name);
	if (strcmp(name, OWN_TILES) == 0 && tiles_takes(m, &c->spec)) {
		c->by = BY_TILES;
		return 0;
	}
	if (name[0] && dnn_matmul_new(&c->dnn, m->dnn, &c->spec, name, NULL) == 0)
		return 0;
	return dnn_matmul_new(&c->dnn, m->dnn, &c->spec, NULL, err);
}

static void cpu_product_free(struct cpu_product *c)
{
	if (c)
		dnn_matmul_free(c->dnn);
	free(c);
}

/* The caller frees it. A spec with a size of 0 is legal: there is nothing to compute, or the result is zeros if k is
 * 0. */
static int cpu_product_new(struct cpu_product **ret, const struct kernel_env *env, const struct dnn_matmul_spec *spec,
			   struct err *err)
{
	struct cpu_product *c = mem_zalloc(sizeof(*c));
	int rc;

	c->spec = *spec;
	c->module = env->module;
	c->threads = env->threads;
	rc = spec->m > 0 && spec->n > 0 && spec->k > 0 ? make_picked_product(c, env->module, err) : 0;
	if (rc)
		cpu_product_free(c);
	else
		*ret = c;
	return rc;
}

static size_t cpu_product_workspace_bytes(const struct cpu_product *c)
{
	if (c->by == BY_TILES)
		return tiles_workspace_bytes(&c->spec, c->threads);
	return c->dnn ? dnn_matmul_workspace_bytes(c->dnn) : 0;
}

static const char *cpu_product_impl(const struct cpu_product *c)
{
	static const char *const own[] = { "none", "own:few_rows", OWN_TILES };

	return c->by == BY_LIBRARY ? dnn_matmul_impl(c->dnn) : own[c->by];
}

static void cpu_product_run(const struct cpu_product *c, const struct dnn_matmul_args *args)
{
	switch (c->by) {
	case BY_FEW_ROWS:
		few_rows_run(c->module, &c->spec, c->threads, args);
		return;
	case BY_TILES:
		tiles_run(c->module, &c->spec, c->threads, args);
		return;
	case BY_NOBODY:
		if (!c->spec.add)
			memset(args->out, 0, (size_t)count_out_elements(&c->spec) * (c->spec.out_bf16 ? 2 : 4));
		return;
	default:
		set_product_threads(c->threads);
		dnn_matmul_run(c->dnn, args);
	}
}

#define PANEL_ELEMENTS (INT64_C(4) << 20) /* elements of a panel's largest operand */
#define PANEL_GRAIN 64			  /* sizes of panels are multiples of this, in rows or columns */

enum cut { CUT_M, CUT_N, CUT_K };
enum place { FIRST, BETWEEN, LAST, PLACES }; /* position of a panel; a single one is FIRST */

struct cpu_matmul {
	struct cpu_matmul *next;
	struct dnn_matmul_spec spec;
	int threads;
	const struct cpu_module *module;
	bool widened;
	enum cut cut;
	int64_t length, size;		     /* length of the divided dimension, and of a panel */
	struct cpu_product *product[PLACES]; /* only the first one if the product is not widened */
	size_t product_bytes, copies_bytes;  /* bytes of the workspace, in this order */
	char impl[80];
};

struct panel {
	struct dnn_matmul_spec spec; /* f32 */
	struct widen_copies copies;
	int64_t a, b, bias, out; /* elements before the panel's */
};

static bool takes_panels(const struct cpu_module *m, const struct dnn_matmul_spec *s)
{
	return s->bf16 && m->widens && s->m > 0 && s->n > 0 && s->k > 0 && !few_rows_takes(m, s);
}

static int64_t max_int64(int64_t x, int64_t y)
{
	return x > y ? x : y;
}

/* Divides the longest dimension, so that the largest operands become small. */
static void cut_matmul_panels(struct cpu_matmul *c)
{
	const struct dnn_matmul_spec *s = &c->spec;
	int64_t largest = max_int64(max_int64(s->m * s->k, s->k * s->n), s->out_bf16 ? s->m * s->n : 0);
	int64_t panels = (largest + PANEL_ELEMENTS - 1) / PANEL_ELEMENTS;

	c->length = max_int64(max_int64(s->m, s->n), s->k);
	c->cut = c->length == s->m ? CUT_M : c->length == s->n ? CUT_N : CUT_K;
	c->size = round_up((c->length + panels - 1) / panels, PANEL_GRAIN);
}

static enum place find_panel_place(const struct cpu_matmul *c, int64_t at)
{
	return at == 0 ? FIRST : at + c->size >= c->length ? LAST : BETWEEN;
}

/* Sets the sizes of the panel; sums along k continue those of the previous panels. */
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

/* Panels in the same position are equal. */
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
	c = mem_zalloc(sizeof(*c));
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
static void run_panel(struct cpu_matmul *c, int64_t at, const struct dnn_matmul_args *args)
{
	const struct panel p = panel_of(c, at);
	void *out = (char *)args->out + p.out * (c->spec.out_bf16 ? 2 : 4);
	struct widen_operands o = { (const uint16_t *)args->a + p.a, (const uint16_t *)args->b + p.b, out };
	struct dnn_matmul_args in_f32 = { .bias = p.spec.bias ? args->bias + p.bias : NULL,
					  .workspace = args->workspace };

	widen_in(&p.copies, (char *)args->workspace + c->product_bytes, &o);
	in_f32.a = o.a;
	in_f32.b = o.b;
	in_f32.out = o.out;
	cpu_product_run(c->product[find_panel_place(c, at)], &in_f32);
	if (c->cut != CUT_K || at + c->size >= c->length)
		widen_out(&p.copies, &o, out);
}

void cpu_matmul_run(struct cpu_matmul *c, const struct dnn_matmul_args *args)
{
	if (!c->widened)
		cpu_product_run(c->product[FIRST], args);
	for (int64_t at = 0; c->widened && at < c->length; at += c->size)
		run_panel(c, at, args);
}
