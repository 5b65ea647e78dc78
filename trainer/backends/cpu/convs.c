/* convs.c: a module's convolutions: which shape a node's is, in which implementation, made once for all nodes alike. */
#include "trainer/backends/cpu/convs.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/cpu_pick.h"
#include "trainer/ops/conv/conv.h"
#include "trainer/ops/ops.h"

struct cpu_convs {
	struct cpu_convs *next;
	struct dnn_conv_spec spec; /* n is 0 for a batch that holds no sample */
	int threads;
	struct cpu_conv *conv;
};

/* Shapes of x, w and y wherever the op has them. */
static int read_conv_spec(struct dnn_conv_spec *s, const struct node *n, struct err *err)
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

static bool conv_specs_equal(const struct dnn_conv_spec *a, const struct dnn_conv_spec *b)
{
	return a->pass == b->pass && a->bf16 == b->bf16 && a->n == b->n && a->h == b->h && a->w == b->w &&
	       a->c == b->c && a->k == b->k && a->p == b->p && a->q == b->q && a->kernel == b->kernel &&
	       a->stride == b->stride && a->pad == b->pad;
}

/* What implementations are looked for: of this module's if there is one, else of the library's for what it computes. */
static struct dnn_conv_spec find_computed_spec(const struct cpu_module *m, const struct dnn_conv_spec *spec)
{
	return cpu_conv_own(m, spec, 0) ? *spec : cpu_conv_computed(m, spec);
}

/* A name that was remembered may have left the library since: then its first choice does. */
static int make_picked_conv(struct cpu_conv **ret, struct cpu_module *m, const struct dnn_conv_spec *spec, int threads,
		       struct err *err)
{
	struct dnn_conv_spec filled = find_computed_spec(m, spec);
	char name[PICK_NAME_BYTES];

	filled.n = spec->n ? spec->n : 1;
	cpu_pick_conv(m, &filled, threads, name);
	if (name[0] && cpu_conv_make(ret, m, spec, threads, name, NULL) == 0)
		return 0;
	return cpu_conv_make(ret, m, spec, threads, "", err);
}

static int add_shared_conv(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, struct err *err)
{
	struct cpu_convs *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return err_set(err, ERR_NOMEM, "backend cpu: out of memory while preparing a convolution");
	rc = make_picked_conv(&k->conv, m, spec, threads, err);
	if (rc) {
		free(k);
		return rc;
	}
	k->spec = *spec;
	k->threads = threads;
	k->next = m->convs;
	m->convs = k;
	return 0;
}

int cpu_convs_get(struct cpu_conv **ret, const struct kernel_env *env, const struct node *n, struct err *err)
{
	struct cpu_module *m = env->module;
	struct dnn_conv_spec spec;
	int rc = read_conv_spec(&spec, n, err);

	if (rc)
		return rc;
	for (const struct cpu_convs *k = m->convs; k; k = k->next)
		if (k->threads == env->threads && conv_specs_equal(&k->spec, &spec)) {
			*ret = k->conv;
			return 0;
		}
	rc = add_shared_conv(m, &spec, env->threads, err);
	if (!rc)
		*ret = m->convs->conv;
	return rc;
}

void cpu_convs_free(struct cpu_module *m)
{
	while (m->convs) {
		struct cpu_convs *k = m->convs;

		m->convs = k->next;
		cpu_conv_free(k->conv);
		free(k);
	}
}
