/* SPDX-License-Identifier: Apache-2.0 */
/* relu_cases.c: test cases of relu and relu_grad. */
#include <math.h>

#include "tests/ops/cases/cases.h"

static struct node *build_relu_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){
				     .op = &op_relu, NODE_IN(case_input(g, "x", DTYPE_F32, shape)), NODE_OUT(NULL) });
}

static struct node *build_relu_grad_case(struct graph *g, const struct op_case *c)
{
	struct shape shape = SHAPE(c->size[0], c->size[1]);

	return graph_node(g, &(struct node_spec){ .op = &op_relu_grad,
						  NODE_OUT(NULL),
						  NODE_IN(case_input(g, "dy", DTYPE_F32, shape),
							  case_input(g, "y", DTYPE_F32, shape)) });
}

static void fill_relu_edges(const struct op_case *c, struct case_values *v)
{
	static const double values[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1 };

	(void)c;
	for (int i = 0; i < 7; i++)
		v->in[0][i * 3] = values[i];
}

/* y as the output of a ReLU. */
static void fill_relu_output(const struct op_case *c, struct case_values *v)
{
	(void)c;
	for (int64_t i = 0; i < case_count(v->node->in[1]); i++)
		v->in[1][i] = v->in[1][i] > 0 ? v->in[1][i] : 0;
}

const struct op_case cases_relu[] = {
	{ "no elements", .build = build_relu_case, .exact = true, .size = { 0, 3 } },
	{ "odd length", .build = build_relu_case, .exact = true, .size = { 5, 37 } },
	{ "long", .build = build_relu_case, .exact = true, .size = { 130, 513 } },
	{ "NaN and infinities", .build = build_relu_case, .fill = fill_relu_edges, .exact = true, .size = { 3, 11 } },
	{ NULL },
};

const struct op_case cases_relu_grad[] = {
	{ "no elements", .build = build_relu_grad_case, .fill = fill_relu_output, .exact = true, .size = { 0, 3 } },
	{ "odd length", .build = build_relu_grad_case, .fill = fill_relu_output, .exact = true, .size = { 5, 37 } },
	{ "long", .build = build_relu_grad_case, .fill = fill_relu_output, .exact = true, .size = { 130, 513 } },
	{ NULL },
};
