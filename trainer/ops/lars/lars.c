/* SPDX-License-Identifier: Apache-2.0 */
/* lars.c: see lars.h. */
#include "trainer/ops/lars/lars.h"

#include "trainer/ops/norm/norm.h"
#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/optimizers/optimizers.h"

struct node *lars_add(struct graph *g, struct tensor *p, struct tensor *step, bool adapts, const struct lars_attr *attr)
{
	struct tensor *m = attr->momentum != 0 ? op_moment(g, p, "momentum") : NULL;
	struct tensor *psum = adapts ? norm_sumsq(g, p) : NULL, *gsum = adapts ? norm_sumsq(g, p->grad) : NULL;

	return update_add(g, p, step,
			  &(struct update_spec){ .op = &op_lars, .moments = 1, .moment = { m }, .sums = 2,
						 .sum = { psum, gsum }, NODE_ATTR(*attr) });
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
	.shape = update_shape,
	.dtype = op_dtype_keep,
	.inplace = update_inplace,
	.dump = lars_dump,
};

static void add_lars_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	lars_add(g, p, step, a->adapts, &(struct lars_attr){ a->momentum, a->weight_decay, a->trust });
}

const struct optimizer optimizer_lars = { .add = add_lars_step };

/* ---- ref ----
 * One LARS step, elementwise. */

static int run_lars_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct lars_attr *a = n->attr;
	const double *grad = args->in[1], *step = args->in[3];
	double *p = args->out[0], *m = args->out[1], factor = step[STEP_GUARD_FACTOR];
	double rate = args->page->lr * lars_ratio(a, args->in[4], args->in[5], factor);

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = rate * (grad[i] * factor + a->weight_decay * p[i]);

		if (m)
			d = m[i] = a->momentum * m[i] + d;
		p[i] -= d;
	}
	return 0;
}

const struct kernel lars_ref = REF_KERNEL(run_lars_ref);
