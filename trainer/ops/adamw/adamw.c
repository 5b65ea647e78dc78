/* adamw.c: see adamw.h. */
#include "trainer/ops/adamw/adamw.h"

#include "trainer/ops/ops.h"
#include "trainer/optimizers/optimizers.h"

struct node *adamw_add(struct graph *g, struct tensor *p, struct tensor *step, const struct adamw_attr *attr)
{
	struct tensor *m = op_moment(g, p, "exp_avg"), *v = op_moment(g, p, "exp_avg_sq");

	return graph_node(g, &(struct node_spec){ .op = &op_adamw,
						  .name = graph_printf(g, "%s.adamw", p->name),
						  NODE_IN(p, p->grad, m, v, step),
						  NODE_OUT(p, m, v),
						  .attr = attr,
						  .attr_bytes = sizeof(*attr) });
}

static int adamw_shape(struct graph *g, struct node *n)
{
	const struct tensor *p = n->in[0], *m = n->in[2], *v = n->in[3];

	return graph_expect(g, n,
			    shape_equal(&p->shape, &n->in[1]->shape) && shape_equal(&p->shape, &m->shape) &&
				    shape_equal(&p->shape, &v->shape) && n->out[0] == p && n->out[1] == m &&
				    n->out[2] == v,
			    "parameter, gradient and moments differ in shape");
}

static int adamw_inplace(const struct node *n, int out)
{
	(void)n;
	return out == 0 ? 0 : out + 1;
}

static void adamw_dump(const struct node *n, struct buf *out)
{
	const struct adamw_attr *a = n->attr;

	buf_addf(out, " betas=%g,%g eps=%g weight_decay=%g%s", a->beta1, a->beta2, a->eps, a->weight_decay,
		 a->coupled ? " coupled" : "");
}

const struct op op_adamw = {
	.name = "adamw",
	.id = OP_adamw,
	.shape = adamw_shape,
	.dtype = op_dtype_keep,
	.inplace = adamw_inplace,
	.dump = adamw_dump,
};

static struct adamw_attr make_adamw_attr(const struct optimizer_attr *a, bool coupled)
{
	return (struct adamw_attr){ a->beta1, a->beta2, a->eps, a->weight_decay, coupled };
}

static void add_adamw_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	const struct adamw_attr attr = make_adamw_attr(a, false);

	adamw_add(g, p, step, &attr);
}

static void add_adam_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	const struct adamw_attr attr = make_adamw_attr(a, true);

	adamw_add(g, p, step, &attr);
}

const struct optimizer optimizer_adamw = { .add = add_adamw_step };
const struct optimizer optimizer_adam = { .add = add_adam_step };
