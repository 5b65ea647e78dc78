/* SPDX-License-Identifier: Apache-2.0 */
/* lamb.c: see lamb.h. */
#include "trainer/ops/lamb/lamb.h"

#include <string.h>

#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/optimizers/optimizers.h"

struct node *lamb_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts, const struct lamb_attr *attr)
{
	struct tensor *m = op_moment(g, p, "exp_avg"), *v = op_moment(g, p, "exp_avg_sq"), *u, *psum, *usum;
	struct node *n = graph_node(g, &(struct node_spec){ .op = &op_lamb_update,
							    .name = graph_printf(g, "%s.lamb_update", p->name),
							    NODE_IN(p, p->grad, m, v, step),
							    NODE_OUT(NULL, m, v),
							    .attr = attr,
							    .attr_bytes = sizeof(*attr) });

	if (!n)
		return NULL;
	u = n->out[0];
	u->shard = p->shard;
	psum = adapts ? norm_sumsq(g, p) : NULL;
	usum = adapts ? norm_sumsq(g, u) : NULL;
	return graph_node(g, &(struct node_spec){ .op = &op_lamb,
						  .name = graph_printf(g, "%s.lamb", p->name),
						  NODE_IN(p, u, step, psum, usum),
						  NODE_OUT(p) });
}

static int lamb_update_shape(struct graph *g, struct node *n)
{
	const struct tensor *p = n->in[0];
	int rc = update_shape(g, n);

	return rc ? rc : graph_out(g, n, 0, TENSOR_TYPE(p->dtype, p->shape), "");
}

static void lamb_update_dump(const struct node *n, struct buf *out)
{
	const struct lamb_attr *a = n->attr;

	buf_addf(out, " betas=%g,%g eps=%g weight_decay=%g", a->beta1, a->beta2, a->eps, a->weight_decay);
}

static int lamb_shape(struct graph *g, struct node *n)
{
	return graph_expect(g, n, shape_equal(&n->in[0]->shape, &n->in[1]->shape) && n->out[0] == n->in[0],
			    "parameter and step differ in shape");
}

const struct op op_lamb_update = {
	.name = "lamb_update",
	.id = OP_lamb_update,
	.shape = lamb_update_shape,
	.dtype = op_dtype_keep,
	.inplace = update_inplace,
	.dump = lamb_update_dump,
};

const struct op op_lamb = {
	.name = "lamb",
	.id = OP_lamb,
	.shape = lamb_shape,
	.dtype = op_dtype_keep,
	.inplace = op_inplace_same,
};

static void lamb_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	lamb_add(g, p, step, a->adapts, &(struct lamb_attr){ a->beta1, a->beta2, a->eps, a->weight_decay });
}

const struct optimizer optimizer_lamb = { .add = lamb_step };

/* ---- ref ----
 * One LAMB step, elementwise. */

/* The formula of lamb_update in lamb.h. */
static int run_lamb_update_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct lamb_attr *a = n->attr;
	const double *p = args->in[0], *grad = args->in[1], *step = args->in[4];
	double *u = args->out[0], *m = args->out[1], *v = args->out[2], t = step[STEP_GUARD_UPDATES];
	double c1 = 1 - pow(a->beta1, t), c2 = 1 - pow(a->beta2, t);
	int64_t count = shape_count(&n->in[0]->shape);

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0) {
		memset(u, 0, (size_t)count * sizeof(*u));
		return 0;
	}
	for (int64_t i = 0; i < count; i++) {
		double d = grad[i] * step[STEP_GUARD_FACTOR];

		m[i] = a->beta1 * m[i] + (1 - a->beta1) * d;
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * d * d;
		u[i] = m[i] / c1 / (sqrt(v[i] / c2) + a->eps) + a->weight_decay * p[i];
	}
	return 0;
}

static int run_lamb_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const double *u = args->in[1], *step = args->in[2];

	(void)err;
	if (step[STEP_GUARD_SKIP] == 0)
		ref_axpy(args->out[0], -args->page->lr * lamb_ratio(args->in[3], args->in[4]), u,
			 shape_count(&n->in[0]->shape));
	return 0;
}

const struct kernel lamb_update_ref = REF_KERNEL(run_lamb_update_ref);
const struct kernel lamb_ref = REF_KERNEL(run_lamb_ref);
