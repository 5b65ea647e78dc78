/* sgd.c: SGD steps as nodes, one per parameter. */
#include "trainer/ops/sgd/sgd.h"

#include "trainer/ops/ops.h"
#include "trainer/optimizers/optimizers.h"

struct node *sgd_add(struct graph *g, struct tensor *p, struct tensor *step, const struct sgd_attr *attr)
{
	struct tensor *m = attr->momentum != 0 ? op_moment(g, p, "momentum") : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_sgd,
						  .name = graph_printf(g, "%s.sgd", p->name),
						  NODE_IN(p, p->grad, m, step),
						  NODE_OUT(p, m),
						  .attr = attr,
						  .attr_bytes = sizeof(*attr) });
}

static int sgd_shape(struct graph *g, struct node *n)
{
	const struct tensor *p = n->in[0], *grad = n->in[1], *m = n->in[2];

	return graph_expect(g, n,
			    shape_equal(&p->shape, &grad->shape) && (!m || shape_equal(&p->shape, &m->shape)) &&
				    n->out[0] == p && n->out[1] == m,
			    "parameter, gradient and moment differ in shape");
}

static int sgd_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : 2;
}

static void sgd_dump(const struct node *n, struct buf *out)
{
	const struct sgd_attr *a = n->attr;

	buf_addf(out, " momentum=%g weight_decay=%g%s", a->momentum, a->weight_decay, a->nesterov ? " nesterov" : "");
}

const struct op op_sgd = {
	.name = "sgd",
	.id = OP_sgd,
	.shape = sgd_shape,
	.dtype = op_dtype_keep,
	.inplace = sgd_inplace,
	.dump = sgd_dump,
};

static void add_sgd_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	sgd_add(g, p, step,
		&(struct sgd_attr){ .momentum = a->momentum, .weight_decay = a->weight_decay,
				    .nesterov = a->nesterov });
}

const struct optimizer optimizer_sgd = { .add = add_sgd_step };
