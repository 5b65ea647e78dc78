/* SPDX-License-Identifier: Apache-2.0 */
/* sgd.c: see sgd.h. */
#include "trainer/ops/sgd/sgd.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/optimizers/optimizers.h"

struct node *sgd_add(struct graph *g, struct tensor *p, struct tensor *step, const struct sgd_attr *attr)
{
	struct tensor *m = attr->momentum != 0 ? op_moment(g, p, "momentum") : NULL;

	return update_add(g, p, step,
			  &(struct update_spec){ .op = &op_sgd, .moments = 1, .moment = { m }, NODE_ATTR(*attr) });
}

static void sgd_dump(const struct node *n, struct buf *out)
{
	const struct sgd_attr *a = n->attr;

	buf_addf(out, " momentum=%g weight_decay=%g%s", a->momentum, a->weight_decay, a->nesterov ? " nesterov" : "");
}

const struct op op_sgd = {
	.name = "sgd",
	.id = OP_sgd,
	.shape = update_shape,
	.dtype = op_dtype_keep,
	.inplace = update_inplace,
	.dump = sgd_dump,
};

static void add_sgd_step(struct graph *g, struct tensor *p, struct tensor *step, const struct optimizer_attr *a)
{
	sgd_add(g, p, step,
		&(struct sgd_attr){ .momentum = a->momentum, .weight_decay = a->weight_decay,
				    .nesterov = a->nesterov });
}

const struct optimizer optimizer_sgd = { .add = add_sgd_step };

/* ---- ref ----
 * One SGD step, elementwise. */

static int run_sgd_ref(void *state, const struct kernel_args *args, struct err *err)
{
	const struct node *n = state;
	const struct sgd_attr *a = n->attr;
	const double *grad = args->in[1], *step = args->in[3];
	double *p = args->out[0], *m = args->out[1];

	(void)err;
	if (step[STEP_GUARD_SKIP] != 0)
		return 0;
	for (int64_t i = 0; i < shape_count(&n->in[0]->shape); i++) {
		double d = grad[i] * step[STEP_GUARD_FACTOR] + a->weight_decay * p[i];

		if (m) {
			m[i] = a->momentum * m[i] + d;
			d = a->nesterov ? d + a->momentum * m[i] : m[i];
		}
		p[i] -= args->page->lr * d;
	}
	return 0;
}

const struct kernel sgd_ref = REF_KERNEL(run_sgd_ref);
