/* cpu_conv.c: one convolution in one implementation. It must not know how implementations are chosen. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/cpu_conv.h"
#include "trainer/backends/cpu/wgrad_bf16.h"
#include "trainer/backends/cpu/widen.h"
#include "trainer/backends/cpu/winograd/winograd.h"

/* An implementation of this module's own. All read plain weights. */
struct own {
	const char *name, *impl;
	bool (*takes)(const struct cpu_module *m, const struct dnn_conv_spec *s);
	size_t (*workspace_bytes)(const struct dnn_conv_spec *s, int threads);
	void (*run)(const struct dnn_conv_spec *s, int threads, const struct dnn_conv_args *args);
};

/* In the order of preference where nothing is timed. */
static const struct own owns[] = {
	{ .name = "own",
	  .impl = "own:avx512_bf16",
	  .takes = wgrad_bf16_takes,
	  .workspace_bytes = wgrad_bf16_workspace_bytes,
	  .run = wgrad_bf16_run },
	{ .name = "winograd",
	  .impl = "winograd_4x3:avx512",
	  .takes = winograd_takes,
	  .workspace_bytes = winograd_workspace_bytes,
	  .run = winograd_run },
};

struct cpu_conv {
	struct dnn_conv_spec spec; /* n at least 1 */
	bool empty;		   /* the batch holds no sample */
	int threads;
	const struct own *own; /* NULL: the library's */
	struct dnn_conv *dnn;
	struct widen_copies copies; /* that the library's computes with */
	char impl[80];
};

/* The library asks OpenMP how many threads it may use; that number belongs to the calling thread. */
static void use_threads(const struct cpu_conv *c)
{
	if (omp_get_max_threads() != c->threads)
		omp_set_num_threads(c->threads);
}

const char *cpu_conv_own(const struct cpu_module *m, const struct dnn_conv_spec *spec, int i)
{
	for (size_t k = 0; k < sizeof(owns) / sizeof(owns[0]); k++)
		if (owns[k].takes(m, spec) && i-- == 0)
			return owns[k].name;
	return NULL;
}

static const struct own *own_by_name(const struct cpu_module *m, const struct dnn_conv_spec *spec, const char *name)
{
	for (size_t k = 0; k < sizeof(owns) / sizeof(owns[0]); k++)
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

static struct widen_copies copies_of(const struct cpu_module *m, const struct dnn_conv_spec *s, int threads)
{
	const struct widen_rows x = { s->n * s->h * s->w, s->c, 0 }, y = { s->n * s->p * s->q, s->k, 0 };
	struct widen_copies c = { .module = m, .threads = threads, .a = s->pass == DNN_DGRAD ? y : x };

	if (s->pass == DNN_WGRAD)
		c.b = y;
	else
		c.out = s->pass == DNN_DGRAD ? x : y;
	return c;
}

static int make_library(struct cpu_conv *c, const struct cpu_module *m, const char *name, struct err *err)
{
	const struct dnn_conv_spec computed = cpu_conv_computed(m, &c->spec);
	const bool widened = computed.bf16 != c->spec.bf16;
	int rc;

	if (widened)
		c->copies = copies_of(m, &c->spec, c->threads);
	use_threads(c);
	rc = dnn_conv_new(&c->dnn, m->dnn, &computed, name[0] ? name : NULL, err);
	if (!rc)
		snprintf(c->impl, sizeof(c->impl), "%s%s", dnn_conv_impl(c->dnn), widened ? " in f32" : "");
	return rc;
}

int cpu_conv_make(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec, int threads,
		  const char *name, struct err *err)
{
	struct cpu_conv *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, ERR_NOMEM, "backend cpu: out of memory while preparing a convolution");
	c->spec = *spec;
	c->empty = spec->n == 0;
	c->spec.n = c->empty ? 1 : spec->n;
	c->threads = threads;
	c->own = own_by_name(m, &c->spec, name);
	rc = c->own ? 0 : make_library(c, m, name, err);
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
	free(c);
}

size_t cpu_conv_packed_bytes(const struct cpu_conv *c)
{
	return c->own ? 0 : dnn_conv_packed_bytes(c->dnn);
}

size_t cpu_conv_workspace_bytes(const struct cpu_conv *c)
{
	if (c->empty)
		return 0;
	if (c->own)
		return c->own->workspace_bytes(&c->spec, c->threads);
	return dnn_conv_workspace_bytes(c->dnn) + widen_bytes(&c->copies);
}

const char *cpu_conv_impl(const struct cpu_conv *c)
{
	return c->own ? c->own->impl : c->impl;
}

static int run_library(struct cpu_conv *c, const struct dnn_conv_args *args, struct err *err)
{
	struct widen_operands o = { args->a, args->b, args->out };
	int rc;

	widen_in(&c->copies, (char *)args->workspace + dnn_conv_workspace_bytes(c->dnn), &o);
	use_threads(c);
	rc = dnn_conv_run(c->dnn, &(struct dnn_conv_args){ o.a, o.b, o.out, args->workspace }, err);
	if (!rc)
		widen_out(&c->copies, &o, args->out);
	return rc;
}

int cpu_conv_run(struct cpu_conv *c, const struct dnn_conv_args *args, struct err *err)
{
	const struct dnn_conv_spec *s = &c->spec;

	if (c->empty) {
		if (s->pass == DNN_WGRAD)
			memset(args->out, 0, (size_t)(s->k * s->kernel * s->kernel * s->c) * sizeof(float));
		return 0;
	}
	if (c->own) {
		c->own->run(s, c->threads, args);
		return 0;
	}
	return run_library(c, args, err);
}

int cpu_conv_pack(struct cpu_conv *c, const void *krsc_f32, void *packed, struct err *err)
{
	int rc;

	use_threads(c);
	rc = dnn_conv_pack(c->dnn, krsc_f32, packed, err);
	if (!rc && c->copies.a.rows)
		widen_round(&c->copies, packed, (int64_t)(dnn_conv_packed_bytes(c->dnn) / sizeof(float)));
	return rc;
}
