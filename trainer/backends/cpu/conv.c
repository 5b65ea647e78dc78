/* conv.c: one convolution in one implementation. It must not know how implementations are chosen. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/conv.h"
#include "trainer/backends/cpu/wgrad_bf16.h"

struct cpu_conv {
	struct dnn_conv_spec spec; /* n at least 1 */
	bool empty;		   /* the batch holds no sample */
	int threads;
	struct dnn_conv *dnn; /* NULL: "own" */
};

/* The library asks OpenMP how many threads it may use; that number belongs to the calling thread. */
static void use_threads(const struct cpu_conv *c)
{
	if (omp_get_max_threads() != c->threads)
		omp_set_num_threads(c->threads);
}

bool cpu_conv_own(const struct cpu_module *m, const struct dnn_conv_spec *spec)
{
	return wgrad_bf16_takes(m, spec);
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
	if (strcmp(name, "own") == 0 && cpu_conv_own(m, &c->spec)) {
		*ret = c;
		return 0;
	}
	use_threads(c);
	rc = dnn_conv_new(&c->dnn, m->dnn, &c->spec, name[0] ? name : NULL, err);
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
	return c->dnn ? dnn_conv_packed_bytes(c->dnn) : 0;
}

size_t cpu_conv_workspace_bytes(const struct cpu_conv *c)
{
	if (c->empty)
		return 0;
	return c->dnn ? dnn_conv_workspace_bytes(c->dnn) : wgrad_bf16_workspace_bytes(&c->spec, c->threads);
}

const char *cpu_conv_impl(const struct cpu_conv *c)
{
	return c->dnn ? dnn_conv_impl(c->dnn) : "own:avx512_bf16";
}

int cpu_conv_run(struct cpu_conv *c, const struct dnn_conv_args *args, struct err *err)
{
	const struct dnn_conv_spec *s = &c->spec;

	if (c->empty) {
		if (s->pass == DNN_WGRAD)
			memset(args->out, 0, (size_t)(s->k * s->kernel * s->kernel * s->c) * sizeof(float));
		return 0;
	}
	if (!c->dnn) {
		wgrad_bf16_run(&c->spec, c->threads, args);
		return 0;
	}
	use_threads(c);
	return dnn_conv_run(c->dnn, args, err);
}

int cpu_conv_pack(struct cpu_conv *c, const void *krsc_f32, void *packed, struct err *err)
{
	use_threads(c);
	return dnn_conv_pack(c->dnn, krsc_f32, packed, err);
}
