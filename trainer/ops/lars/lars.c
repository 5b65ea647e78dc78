/* lars.c: see lars.h. */
#include "trainer/ops/lars/lars.h"

#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"
#include "trainer/optimizers/optimizers.h"

struct node *lars_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts, const struct lars_attr *attr)
{
	struct tensor *m = attr->momentum != 0 ? op_moment(g, p, "momentum") : NULL;
	struct tensor *psum = adapts ? norm_sumsq(g, p) : NULL, *gsum = adapts ? norm_sumsq(g, p->grad) : NULL;

	return graph_node(g, &(struct node_spec){ .op = &op_lars,
						  .name = graph_printf(g, "%s.lars", p->name),
						  NODE_IN(p, p->grad, m, step, psum, gsum),
						  NODE_OUT(p, m),
						  .attr = attr,
						  .attr_bytes = sizeof(*attr) });
}

static int lars_shape(struct graph *g, struct node *n)
{
	const struct tensor *p = n->in[0], *m = n->in[2];

	return graph_expect(g, n,
			    shape_equal(&p->shape, &n->in[1]->shape) && (!m || shape_equal(&p->shape, &m->shape)) &&
				    n->out[0] == p && n->out[1] == m,
			    "parameter, gradient and moment differ in shape");
}

static int lars_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : 2;
}

static void lars_dump(const struct node *n, struct buf *out)
{
	const struct lars_attr *a = n->attr;

	buf_addf(out, " momentum=%g weight_decay=%g", a->momentum, a->weight_decay);
	if (n->in[4])
		buf_addf(out, " trust=%g", a->trust);
}

const struct op op_lars = {
	.name = "lars",
	.id = OP_lars,
	.shape = lars_shape,
	.dtype = op_dtype_keep,
	.inplace = lars_inplace,
	.dump = lars_dump,
};

static void add_lars_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	lars_add(g, p, step, a->adapts, &(struct lars_attr){ a->momentum, a->weight_decay, a->trust });
}

const struct optimizer optimizer_lars = { .add = add_lars_step };
