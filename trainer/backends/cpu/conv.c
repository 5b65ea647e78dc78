/* conv.c: keeps the convolutions of a module and runs them. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/conv.h"
#include "trainer/backends/cpu/pick.h"
#include "trainer/backends/cpu/wgrad_bf16.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/ops.h"

struct cpu_conv {
	struct cpu_conv *next;
	struct dnn_conv_spec spec; /* n at least 1 */
	bool empty;		   /* the batch holds no sample */
	int threads;
	struct dnn_conv *dnn; /* NULL: "own" */
};

/* Shapes of x, w and y wherever the op has them. */
static int spec_of(struct dnn_conv_spec *s, const struct node *n, struct err *err)
{
	const struct conv_attr *a = n->attr;
	const struct shape *x, *y;
	bool bf16;
	int rc;

	memset(s, 0, sizeof(*s));
	s->stride = a->stride;
	s->pad = a->pad;
	switch (n->op->id) {
	case OP_conv:
		s->pass = DNN_FORWARD;
		x = &n->in[0]->shape, y = &n->out[0]->shape;
		s->kernel = n->in[1]->shape.dim[1];
		break;
	case OP_conv_dgrad:
		s->pass = DNN_DGRAD;
		x = &n->out[0]->shape, y = &n->in[0]->shape;
		s->kernel = n->in[1]->shape.dim[1];
		break;
	default:
		s->pass = DNN_WGRAD;
		x = &n->in[0]->shape, y = &n->in[1]->shape;
		s->kernel = n->out[0]->shape.dim[1];
	}
	s->n = x->dim[0], s->h = x->dim[1], s->w = x->dim[2], s->c = x->dim[3];
	s->p = y->dim[1], s->q = y->dim[2], s->k = y->dim[3];
	if (s->pass == DNN_WGRAD)
		rc = cpu_one_type(n, (struct cpu_operands){ 2, 0 }, &bf16, err);
	else
		rc = cpu_one_type(n, (struct cpu_operands){ 1, 1 }, &bf16, err);
	s->bf16 = !rc && bf16;
	return rc;
}

static bool spec_equal(const struct dnn_conv_spec *a, const struct dnn_conv_spec *b)
{
	return a->pass == b->pass && a->bf16 == b->bf16 && a->n == b->n && a->h == b->h && a->w == b->w &&
	       a->c == b->c && a->k == b->k && a->p == b->p && a->q == b->q && a->kernel == b->kernel &&
	       a->stride == b->stride && a->pad == b->pad;
}

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
	c->threads = threads;
	if (strcmp(name, "own") == 0 && cpu_conv_own(m, spec)) {
		*ret = c;
		return 0;
	}
	use_threads(c);
	rc = dnn_conv_new(&c->dnn, m->dnn, spec, name[0] ? name : NULL, err);
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

/* A name that was remembered may have left the library since: then its first choice does. */
static int make_picked(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec, int threads,
		       struct err *err)
{
	char name[PICK_NAME_BYTES];

	cpu_pick_conv(m, spec, threads, name);
	if (name[0] && cpu_conv_make(ret, m, spec, threads, name, NULL) == 0)
		return 0;
	return cpu_conv_make(ret, m, spec, threads, "", err);
}

int cpu_conv_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err)
{
	struct cpu_module *m = env->module;
	struct dnn_conv_spec spec;
	struct cpu_conv *c;
	bool empty;
	int rc = spec_of(&spec, n, err);

	if (rc)
		return rc;
	empty = spec.n == 0;
	spec.n = empty ? 1 : spec.n;
	for (c = m->convs; c; c = c->next)
		if (c->empty == empty && c->threads == env->threads && spec_equal(&c->spec, &spec)) {
			*ret = c;
			return 0;
		}
	rc = make_picked(&c, m, &spec, env->threads, err);
	if (rc)
		return rc;
	c->empty = empty;
	c->next = m->convs;
	m->convs = c;
	*ret = c;
	return 0;
}

void cpu_conv_free_all(struct cpu_module *m)
{
	while (m->convs) {
		struct cpu_conv *c = m->convs;

		m->convs = c->next;
		cpu_conv_free(c);
	}
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
