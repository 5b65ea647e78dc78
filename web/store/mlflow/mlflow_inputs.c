/* mlflow_inputs.c: data sets and models that a run read, models that it made. */
#include "web/store/mlflow/mlflow_inside.h"
#include "web/store/write/input.h"

static int put_linked_models(struct state *st, struct state_run *r, const struct mlflow_op *op, bool made,
			     struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->model_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_model_add, err, "iiti", r->id, (int64_t)made,
			    op->models[i].id, op->models[i].step);
	return rc;
}

static int put_run_inputs(struct state *st, struct change *c, bool made, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_run *r;
	size_t i;
	int rc = mlflow_run_need(st, c, &r, err);

	if (rc <= 0)
		return rc;
	for (i = 0, rc = 0; i < op->dataset_count && !rc; i++)
		rc = input_put(st, r, &op->datasets[i], err);
	if (!rc)
		rc = put_linked_models(st, r, op, made, err);
	state_mark(st, r, true);
	return rc;
}

static int put_models_read(struct state *st, struct change *c, struct err *err)
{
	return put_run_inputs(st, c, false, err);
}

static int put_models_made(struct state *st, struct change *c, struct err *err)
{
	return put_run_inputs(st, c, true, err);
}

const struct change_ops mlflow_inputs_read = { .name = "mlflow_inputs_read",
					       .copy = mlflow_copy,
					       .apply = put_models_read };
const struct change_ops mlflow_inputs_made = { .name = "mlflow_inputs_made",
					       .copy = mlflow_copy,
					       .apply = put_models_made };
