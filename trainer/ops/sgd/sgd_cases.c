/* sgd_cases.c: test cases of sgd. */
#include <math.h>

#include "trainer/ops/cases.h"
#include "trainer/ops/sgd/sgd.h"

/* size: elements, percent of momentum, ppm of weight decay, nesterov. */
static struct node *build(struct graph *g, const struct op_case *c)
{
	struct sgd_attr attr = { .momentum = (double)c->size[1] / 100,
				 .weight_decay = (double)c->size[2] / 1e6,
				 .nesterov = c->size[3] };
	struct shape shape = SHAPE(c->size[0]);
	struct tensor *p = case_input(g, "p", DTYPE_F32, shape), *grad = case_input(g, "g", DTYPE_F32, shape);
	struct tensor *m = c->size[1] ? case_input(g, "m", DTYPE_F32, shape) : NULL;

	return graph_node(g,
			  &(struct node_spec){ .op = &op_sgd, NODE_IN(p, grad, m), NODE_OUT(p, m), NODE_ATTR(attr) });
}

static double bound(const struct case_values *v, int k, double *terms)
{
	const struct sgd_attr *a = v->node->attr;
	double scale = v->page->clip_factor / v->page->loss_scale;

	for (int64_t i = 0; i < case_count(v->node->in[0]); i++) {
		double p = fabs(v->in[0][i]), d = fabs(v->in[1][i]) * scale + a->weight_decay * p;
		double m = v->in[2] ? a->momentum * fabs(v->in[2][i]) + d : d;

		terms[i] = k == 1 ? m : p + v->page->lr * (a->nesterov ? d + a->momentum * m : m);
	}
	return 4;
}

const struct op_case cases_sgd[] = {
	{ "no elements", .build = build, .bound = bound, .size = { 0, 90, 100, 0 } },
	{ "one element", .build = build, .bound = bound, .size = { 1, 90, 100, 0 } },
	{ "momentum and decay", .build = build, .bound = bound, .size = { 1037, 90, 100000, 0 } },
	{ "Nesterov", .build = build, .bound = bound, .size = { 1037, 90, 100000, 1 } },
	{ "no momentum", .build = build, .bound = bound, .size = { 1037, 0, 100000, 0 } },
	{ "no decay", .build = build, .bound = bound, .size = { 70001, 90, 0, 0 } },
	{ NULL },
};
