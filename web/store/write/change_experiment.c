/* change_experiment.c: finds an experiment by name, or adds it. */
#include <stdio.h>

#include "web/store/write/change.h"

static int check_experiment_op(const struct ingest_op *op, struct err *err)
{
	return change_check_name(op->name ? op->name : "", "the experiment's name", "name", err);
}

static int apply_experiment_op(struct state *st, struct change *c, struct err *err)
{
	int64_t id;
	int rc = state_experiment(st, c->op.name, &id, &c->res.existed, err);

	if (!rc)
		snprintf(c->res.id, sizeof c->res.id, "%lld", (long long)id);
	return rc;
}

const struct change_ops change_experiment = { .name = "experiment",
					      .check = check_experiment_op,
					      .apply = apply_experiment_op };
