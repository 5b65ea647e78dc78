/* mlflow_inputs.c: data sets that a run read, models that it read or made. A data set is one of its experiment by name
 * and digest; what is said about one first holds. */
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/mlflow/mlflow_inside.h"

static int put_dataset(struct state *st, int64_t experiment, const struct mlflow_dataset *d, int64_t *ret,
		       struct err *err)
{
	int rc = db_run(state_db(st), DB_dataset_add, err, "itttttt", experiment, d->name, d->digest, d->source_type,
			d->source, d->schema, d->profile);

	if (rc)
		return rc;
	rc = db_int(state_db(st), ret, DB_dataset_find, err, "itt", experiment, d->name, d->digest);
	return rc > 0 ? 0 : rc ? rc : err_set(err, ERR_IO, "store: a data set vanished");
}

/* Tags are kept of the first time a run says that it used the set. */
static int put_input(struct state *st, struct state_run *r, const struct mlflow_dataset *d, struct err *err)
{
	int64_t dataset = 0, there;
	size_t i;
	int rc = put_dataset(st, r->experiment_id, d, &dataset, err);

	if (rc)
		return rc;
	rc = db_int(state_db(st), &there, DB_run_dataset_find, err, "ii", r->id, dataset);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = db_run(state_db(st), DB_run_dataset_add, err, "ii", r->id, dataset);
	for (i = 0; i < d->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_dataset_tag_add, err, "iitt", r->id, dataset, d->tags[i].key,
			    d->tags[i].value);
	return rc;
}

static int put_models(struct state *st, struct state_run *r, const struct mlflow_op *op, bool made, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->model_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_model_add, err, "iiti", r->id, (int64_t)made,
			    op->models[i].id, op->models[i].step);
	return rc;
}

static int put_all(struct state *st, struct change *c, bool made, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_run *r;
	size_t i;
	int rc = mlflow_run_need(st, c, &r, err);

	if (rc <= 0)
		return rc;
	for (i = 0, rc = 0; i < op->dataset_count && !rc; i++)
		rc = put_input(st, r, &op->datasets[i], err);
	if (!rc)
		rc = put_models(st, r, op, made, err);
	state_mark(st, r, true);
	return rc;
}

static int put_read(struct state *st, struct change *c, struct err *err)
{
	return put_all(st, c, false, err);
}

static int put_made(struct state *st, struct change *c, struct err *err)
{
	return put_all(st, c, true, err);
}

const struct change_ops mlflow_inputs_read = { .name = "mlflow_inputs_read", .copy = mlflow_copy, .apply = put_read };
const struct change_ops mlflow_inputs_made = { .name = "mlflow_inputs_made", .copy = mlflow_copy, .apply = put_made };
