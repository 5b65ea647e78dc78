/* tracking_inputs.c: data sets that a run read, models that it read or made. A data set is one of its experiment by name and
 * digest; what is said about one first holds. */
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/mlflow/mlflow_inside.h"

static int put_dataset(struct state *st, int64_t experiment, const struct tracking_dataset *d, int64_t *ret, struct err *err)
{
	int rc = db_run(state_db(st), DB_dataset_add, err, "itttttt", experiment, d->name, d->digest, d->source_type, d->source,
			d->schema, d->profile);

	if (rc)
		return rc;
	rc = db_int(state_db(st), ret, DB_dataset_find, err, "itt", experiment, d->name, d->digest);
	return rc > 0 ? 0 : rc ? rc : err_set(err, ERR_IO, "store: a data set vanished");
}

/* Tags are kept of the first time a run says that it used the set. */
static int put_input(struct state *st, struct state_run *r, const struct tracking_dataset *d, struct err *err)
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
		rc = db_run(state_db(st), DB_run_dataset_tag_add, err, "iitt", r->id, dataset, d->tags[i].key, d->tags[i].value);
	return rc;
}

static int put_models(struct state *st, struct state_run *r, const struct tracking_op *op, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->model_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_model_add, err, "iiti", r->id, (int64_t)(op->kind == TRACKING_RUN_OUTPUTS),
			    op->models[i].id, op->models[i].step);
	return rc;
}

int tracking_inputs(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	struct state_run *r;
	size_t i;
	int rc = tracking_need_run(st, job, op->run, &r, err);

	if (rc <= 0)
		return rc;
	for (i = 0, rc = 0; i < op->dataset_count && !rc; i++)
		rc = put_input(st, r, &op->datasets[i], err);
	if (!rc)
		rc = put_models(st, r, op, err);
	state_mark(st, r, true);
	return rc;
}

int tracking_outputs(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	return tracking_inputs(st, job, op, err);
}

int tracking_artifact(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	(void)job;
	if (op->kind == TRACKING_ARTIFACT_DELETE)
		return db_run(state_db(st), DB_artifact_delete, err, "t", op->name);
	return db_run(state_db(st), DB_artifact_put, err, "tiit", op->name, op->bytes, op->time_ns, op->sha256);
}
