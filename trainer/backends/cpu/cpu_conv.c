/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_conv.c: one convolution in one implementation, independent of how implementations are chosen. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/own_convs.h"
#include "tracker/mem/mem.h"
#include "trainer/backends/cpu/cpu_conv.h"
#include "trainer/backends/cpu/widen.h"
#include "trainer/graph/plan.h"

/* An implementation in this module. Those without `pack` read plain weights. */
struct own {
	const char *name, *impl;
	bool timed_only; /* without timing it is preferred only if its instructions are emulated */
	bool in_f32;	 /* also with bf16 activations */
	bool (*takes)(const struct cpu_module *m, const struct dnn_conv_spec *s);
	size_t (*workspace_bytes)(const struct cpu_conv *c);
	size_t (*packed_bytes)(const struct cpu_conv *c);
	void (*pack)(const struct cpu_conv *c, const float *krsc, void *packed);
	void (*run)(const struct cpu_conv *c, const struct dnn_conv_args *args);
};

struct cpu_conv {
	const struct cpu_module *module;
	struct dnn_conv_spec asked; /* as the node describes it */
	struct dnn_conv_spec spec;  /* as it is computed; n at least 1 */
	float *taps;		    /* asked for with more taps: the computed weights, before they are packed */
	bool empty;		    /* the batch holds no sample */
	int threads;
	const struct own *own; /* NULL: the library's */
	struct dnn_conv *dnn;
	struct widen_copies copies; /* copies for the library's computation */
	char impl[80];
};

/* ---- convolutions to a single pixel ---- */

/* If an image has one output pixel, the result is a product of the image, as one row of numbers, and the weights of the
 * taps that meet it; those that meet only padding are left out. Small images reach this in the last layers of a
 * network: of 3x3 taps on one pixel, one is left. */
struct dnn_conv_spec cpu_conv_reduced(const struct dnn_conv_spec *s)
{
	struct dnn_conv_spec r = *s;

	if (s->p != 1 || s->q != 1 || s->h + s->pad > s->kernel || s->w + s->pad > s->kernel)
		return r;
	r.c = s->h * s->w * s->c;
	r.h = r.w = r.kernel = r.stride = 1;
	r.pad = 0;
	return r;
}

static bool is_reduced(const struct cpu_conv *c)
{
	return c->asked.kernel != c->spec.kernel;
}

/* Its result has fewer taps than asked for: they are scattered from the workspace. */
static bool is_reduced_wgrad(const struct cpu_conv *c)
{
	return c->spec.pass == DNN_WGRAD && is_reduced(c);
}

/* Of the weights of a reduced convolution. */
static size_t taps_bytes(const struct cpu_conv *c)
{
	return (size_t)(c->spec.k * c->spec.c) * sizeof(float);
}

/* Weights with all taps [k][kernel][kernel][c], and with those that meet the image [k][h][w][c]. */
struct tap_copy {
	const struct dnn_conv_spec *asked;
	float *all, *met;
	bool gather; /* else scatter, and zeros to the other taps */
};

static void copy_taps_of_filters(void *arg, int part, int parts)
{
	const struct tap_copy *t = arg;
	const struct dnn_conv_spec *s = t->asked;
	const struct cpu_range r = cpu_split(s->k, 1, part, parts);
	const int64_t row = s->w * s->c, filter = s->kernel * s->kernel * s->c;

	if (!t->gather)
		memset(t->all + r.begin * filter, 0, (size_t)((r.end - r.begin) * filter) * sizeof(float));
	for (int64_t k = r.begin; k < r.end; k++)
		for (int64_t i = 0; i < s->h; i++) {
			float *all = t->all + k * filter + ((s->pad + i) * s->kernel + s->pad) * s->c;
			float *met = t->met + (k * s->h + i) * row;

			memcpy(t->gather ? met : all, t->gather ? all : met, (size_t)row * sizeof(float));
		}
}

static void copy_taps(const struct cpu_conv *c, struct tap_copy t)
{
	t.asked = &c->asked;
	cpu_parallel((int)(c->threads < c->asked.k ? c->threads : c->asked.k), copy_taps_of_filters, &t);
}

/* ---- own implementations ---- */

static bool tiles_take_conv(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	return bf16_conv_takes(m, BF16_TILES, s);
}

static bool dots_take_conv(const struct cpu_module *m, const struct dnn_conv_spec *s)
{
	return bf16_conv_takes(m, BF16_DOTS, s);
}

static struct bf16_conv describe_bf16_conv(const struct cpu_conv *c)
{
	return (struct bf16_conv){ .module = c->module,
				   .engine = c->own->takes == tiles_take_conv ? BF16_TILES : BF16_DOTS,
				   .spec = c->spec,
				   .threads = c->threads };
}

static size_t bf16_conv_workspace(const struct cpu_conv *c)
{
	const struct bf16_conv b = describe_bf16_conv(c);

	return bf16_conv_workspace_bytes(&b);
}

static size_t bf16_conv_packed(const struct cpu_conv *c)
{
	const struct bf16_conv b = describe_bf16_conv(c);

	return bf16_conv_packed_bytes(&b);
}

static void pack_bf16_conv(const struct cpu_conv *c, const float *krsc, void *packed)
{
	const struct bf16_conv b = describe_bf16_conv(c);

	bf16_conv_pack(&b, krsc, packed);
}

static void run_bf16_conv(const struct cpu_conv *c, const struct dnn_conv_args *args)
{
	const struct bf16_conv b = describe_bf16_conv(c);

	bf16_conv_run(&b, args);
}

static size_t wgrad_bf16_workspace(const struct cpu_conv *c)
{
	return wgrad_bf16_workspace_bytes(&c->spec, c->threads);
}

static void run_wgrad_bf16(const struct cpu_conv *c, const struct dnn_conv_args *args)
{
	wgrad_bf16_run(&c->spec, c->threads, args);
}

static size_t winograd_workspace(const struct cpu_conv *c)
{
	return winograd_workspace_bytes(&c->spec, c->threads);
}

static size_t winograd_packed(const struct cpu_conv *c)
{
	return winograd_packed_bytes(&c->spec);
}

static void pack_winograd(const struct cpu_conv *c, const float *krsc, void *packed)
{
	winograd_pack(&c->spec, c->threads, krsc, packed);
}

static void run_winograd(const struct cpu_conv *c, const struct dnn_conv_args *args)
{
	winograd_run(&c->spec, c->threads, args);
}

/* In order of preference when nothing is timed. */
static const struct own owns[] = {
	{ .name = "tiles",
	  .impl = "own:amx_bf16",
	  .takes = tiles_take_conv,
	  .workspace_bytes = bf16_conv_workspace,
	  .packed_bytes = bf16_conv_packed,
	  .pack = pack_bf16_conv,
	  .run = run_bf16_conv },
	{ .name = "own",
	  .impl = "own:avx512_bf16",
	  .takes = wgrad_bf16_takes,
	  .workspace_bytes = wgrad_bf16_workspace,
	  .run = run_wgrad_bf16 },
	{ .name = "winograd",
	  .impl = "winograd_4x3:avx512",
	  .in_f32 = true,
	  .takes = winograd_takes,
	  .workspace_bytes = winograd_workspace,
	  .packed_bytes = winograd_packed,
	  .pack = pack_winograd,
	  .run = run_winograd },
	{ .name = "dots",
	  .impl = "own:dots:avx512_bf16",
	  .timed_only = true,
	  .takes = dots_take_conv,
	  .workspace_bytes = bf16_conv_workspace,
	  .packed_bytes = bf16_conv_packed,
	  .pack = pack_bf16_conv,
	  .run = run_bf16_conv },
};

#define OWNS (sizeof(owns) / sizeof(owns[0]))

/* ---- the library's ---- */

/* The library reads its number of threads from OpenMP, which keeps that number per calling thread. */
static void set_conv_threads(const struct cpu_conv *c)
{
	if (omp_get_max_threads() != c->threads)
		omp_set_num_threads(c->threads);
}

const char *cpu_conv_own(const struct cpu_module *m, const struct dnn_conv_spec *spec, int i)
{
	for (size_t k = 0; k < OWNS; k++)
		if (owns[k].takes(m, spec) && i-- == 0)
			return owns[k].name;
	return NULL;
}

const char *cpu_conv_preferred(const struct cpu_module *m, const struct dnn_conv_spec *spec)
{
	for (size_t k = 0; k < OWNS; k++)
		if ((!owns[k].timed_only || m->plain_dots) && owns[k].takes(m, spec))
			return owns[k].name;
	return NULL;
}

static const struct own *find_own_conv(const struct cpu_module *m, const struct dnn_conv_spec *spec, const char *name)
{
	for (size_t k = 0; k < OWNS; k++)
		if (strcmp(owns[k].name, name) == 0 && owns[k].takes(m, spec))
			return &owns[k];
	return NULL;
}

struct dnn_conv_spec cpu_conv_computed(const struct cpu_module *m, const struct dnn_conv_spec *spec)
{
	struct dnn_conv_spec computed = *spec;

	computed.bf16 = spec->bf16 && !m->widens;
	return computed;
}

static struct widen_copies plan_conv_copies(const struct cpu_module *m, const struct dnn_conv_spec *s, int threads)
{
	const struct widen_rows x = { s->n * s->h * s->w, s->c, 0 }, y = { s->n * s->p * s->q, s->k, 0 };
	struct widen_copies c = { .module = m, .threads = threads, .a = s->pass == DNN_DGRAD ? y : x };

	if (s->pass == DNN_WGRAD)
		c.b = y;
	else
		c.out = s->pass == DNN_DGRAD ? x : y;
	return c;
}

static int make_dnn_conv(struct cpu_conv *c, const struct cpu_module *m, const char *name, struct err *err)
{
	const struct dnn_conv_spec computed = cpu_conv_computed(m, &c->spec);
	const bool widened = computed.bf16 != c->spec.bf16;
	int rc;

	if (widened)
		c->copies = plan_conv_copies(m, &c->spec, c->threads);
	set_conv_threads(c);
	rc = dnn_conv_new(&c->dnn, m->dnn, &computed, name[0] ? name : NULL, err);
	if (!rc)
		snprintf(c->impl, sizeof(c->impl), "%s%s", dnn_conv_impl(c->dnn), widened ? " in f32" : "");
	return rc;
}

int cpu_conv_make(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec,
		  struct cpu_conv_choice choice, struct err *err)
{
	struct cpu_conv *c = mem_zalloc(sizeof(*c));
	int rc;

	c->module = m;
	c->asked = *spec;
	c->spec = cpu_conv_reduced(spec);
	c->empty = spec->n == 0;
	c->spec.n = c->empty ? 1 : spec->n;
	c->threads = choice.threads;
	c->own = find_own_conv(m, &c->spec, choice.name);
	if (c->own)
		snprintf(c->impl, sizeof(c->impl), "%s%s", c->own->impl, spec->bf16 && c->own->in_f32 ? " in f32" : "");
	rc = c->own ? 0 : make_dnn_conv(c, m, choice.name, err);
	if (!rc && spec->pass != DNN_WGRAD && is_reduced(c))
		c->taps = mem_alloc(taps_bytes(c));
	if (rc)
		cpu_conv_free(c);
	else
		*ret = c;
	return rc;
}

void cpu_conv_free(struct cpu_conv *c)
{
	if (!c)
		return;
	dnn_conv_free(c->dnn);
	free(c->taps);
	free(c);
}

size_t cpu_conv_packed_bytes(const struct cpu_conv *c)
{
	if (c->own)
		return c->own->packed_bytes ? c->own->packed_bytes(c) : 0;
	return dnn_conv_packed_bytes(c->dnn);
}

/* Of the computation, without the taps of a reduced gradient of weights, which follow. */
static size_t inner_workspace_bytes(const struct cpu_conv *c)
{
	if (c->own)
		return c->own->workspace_bytes(c);
	return dnn_conv_workspace_bytes(c->dnn) + widen_bytes(&c->copies);
}

size_t cpu_conv_workspace_bytes(const struct cpu_conv *c)
{
	if (c->empty)
		return 0;
	if (!is_reduced_wgrad(c))
		return inner_workspace_bytes(c);
	return round_up_bytes(inner_workspace_bytes(c), PLAN_ALIGN_BYTES) + taps_bytes(c);
}

const char *cpu_conv_impl(const struct cpu_conv *c)
{
	return c->impl;
}

static void run_dnn_conv(struct cpu_conv *c, const struct dnn_conv_args *args)
{
	struct widen_operands o = { args->a, args->b, args->out };

	widen_in(&c->copies, (char *)args->workspace + dnn_conv_workspace_bytes(c->dnn), &o);
	set_conv_threads(c);
	dnn_conv_run(c->dnn, &(struct dnn_conv_args){ o.a, o.b, o.out, args->workspace });
	widen_out(&c->copies, &o, args->out);
}

static void run_computed_conv(struct cpu_conv *c, const struct dnn_conv_args *args)
{
	if (c->own)
		c->own->run(c, args);
	else
		run_dnn_conv(c, args);
}

void cpu_conv_run(struct cpu_conv *c, const struct dnn_conv_args *args)
{
	const struct dnn_conv_spec *s = &c->asked;
	struct dnn_conv_args computed = *args;

	if (c->empty) {
		if (s->pass == DNN_WGRAD)
			memset(args->out, 0, (size_t)(s->k * s->kernel * s->kernel * s->c) * sizeof(float));
		return;
	}
	if (!is_reduced_wgrad(c)) {
		run_computed_conv(c, args);
		return;
	}
	computed.out = (char *)args->workspace + round_up_bytes(inner_workspace_bytes(c), PLAN_ALIGN_BYTES);
	run_computed_conv(c, &computed);
	copy_taps(c, (struct tap_copy){ .all = args->out, .met = computed.out });
}

void cpu_conv_pack(struct cpu_conv *c, const void *krsc_f32, void *packed)
{
	if (c->taps) {
		copy_taps(c, (struct tap_copy){ .all = (float *)krsc_f32, .met = c->taps, .gather = true });
		krsc_f32 = c->taps;
	}
	if (c->own) {
		c->own->pack(c, krsc_f32, packed);
		return;
	}
	set_conv_threads(c);
	dnn_conv_pack(c->dnn, krsc_f32, packed);
	if (c->copies.a.rows)
		widen_round(&c->copies, packed, (int64_t)(dnn_conv_packed_bytes(c->dnn) / sizeof(float)));
}
