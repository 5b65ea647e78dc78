/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.c: see adamw.h. */
#include "trainer/ops/adamw/adamw.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/update.h"
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
