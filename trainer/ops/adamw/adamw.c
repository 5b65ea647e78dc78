/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.c: see adamw.h. */
#include "trainer/ops/adamw/adamw.h"

#include <math.h>

#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/optimizers/optimizers.h"

struct node *adamw_add(struct graph *g, struct tensor *p, struct tensor *step, const struct adamw_attr *attr)
{
	struct tensor *m = op_moment(g, p, "exp_avg"), *v = op_moment(g, p, "exp_avg_sq");

	return update_add(g, p, step,
			  &(struct update_spec){ .op = &op_adamw, .moments = 2, .moment = { m, v }, NODE_ATTR(*attr) });
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
	.shape = update_shape,
	.dtype = op_dtype_keep,
	.inplace = update_inplace,
	.dump = adamw_dump,
};

static void add_adamw_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	adamw_add(g, p, step, &(struct adamw_attr){ a->beta1, a->beta2, a->eps, a->weight_decay, .coupled = false });
}

static void add_adam_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	adamw_add(g, p, step, &(struct adamw_attr){ a->beta1, a->beta2, a->eps, a->weight_decay, .coupled = true });
}

const struct optimizer optimizer_adamw = { .add = add_adamw_step };
const struct optimizer optimizer_adam = { .add = add_adam_step };

/* ---- ref ----
 * One AdamW step, elementwise. */

/* The formula of adamw.h. */
static int run_adamw_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct adamw_attr *a = n->attr;
	const double *grad = args->in[1], *step = args->in[4];
	double *p = args->out[0], *m = args->out[1], *v = args->out[2];
	double lr = args->page->lr, t = step[STEP_GUARD_UPDATES];
	double c1 = 1 - pow(a->beta1, t), c2 = sqrt(1 - pow(a->beta2, t));

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = grad[i] * step[STEP_GUARD_FACTOR];

		if (a->coupled)
			d += a->weight_decay * p[i];
		else
			p[i] -= lr * a->weight_decay * p[i];
		m[i] += (1 - a->beta1) * (d - m[i]);
		v[i] = a->beta2 * v[i] + (1 - a->beta2) * d * d;
		p[i] -= lr / c1 * m[i] / (sqrt(v[i]) / c2 + a->eps);
	}
	return 0;
}

const struct kernel adamw_ref = REF_KERNEL(run_adamw_ref);
