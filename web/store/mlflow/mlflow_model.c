/* tracking_model.c: logged models: made, finished, tagged, deleted; and the points that were logged with one. */
#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "web/store/mlflow/mlflow_inside.h"

/* Deleted ones are as if they were not there. 1, 0 when it was refused, or negative. */
static int need_model(struct state *st, struct apply_job *job, const char *uuid, int64_t *ret, struct err *err)
{
	int rc = db_int(state_db(st), ret, DB_model_active, err, "t", uuid);

	return rc ? rc : apply_refuse(job, ERR_NOENT, "Logged model with ID '%.60s' not found.", uuid);
}

static int put_pairs(struct state *st, enum db_query q, int64_t model, const struct ingest_kv *kv, size_t n, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = db_run(state_db(st), q, err, "itt", model, kv[i].key, kv[i].value);
	return rc;
}

/* A param's first value holds. 1, 0 when one was refused, or negative. */
static int need_same_params(struct state *st, struct apply_job *job, const struct tracking_op *op, int64_t model, struct err *err)
{
	struct db_rows *q;
	size_t i;

	for (i = 0; i < op->param_count; i++) {
		const struct ingest_kv *kv = &op->params[i];
		int rc = db_start(state_db(st), &q, DB_model_param_find, err, "it", model, kv->key);
		const char *old;

		if (rc || (rc = db_next(state_db(st), q, err)) < 0)
			return rc;
		if (!rc)
			continue;
		old = db_str(q, COL_model_param_find_value);
		if (strcmp(old, kv->value))
			rc = apply_refuse(job, ERR_USAGE, "Changing param values is not allowed. Param with key='%.100s' was already "
					  "logged with value='%.100s' for logged model ID='%s'. Attempted logging new value '%.100s'.",
					  kv->key, old, op->model, kv->value);
		db_stop(q);
		if (!rc)
			return 0;
	}
	return 1;
}

int tracking_model_new(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	int64_t id;
	int rc = tracking_need_experiment(st, job, op->experiment, err);

	if (rc <= 0)
		return rc;
	snprintf(job->res.id, sizeof job->res.id, "%s", op->model);
	rc = db_run(state_db(st), DB_model_add, err, "tittti", op->model, op->experiment, op->name, op->type, op->source_run,
		    clock_wall_ms());
	id = db_last_id(state_db(st));
	if (!rc)
		rc = put_pairs(st, DB_model_param_put, id, op->params, op->param_count, err);
	return rc ? rc : put_pairs(st, DB_model_tag_put, id, op->tags, op->tag_count, err);
}

static int untag(struct state *st, struct apply_job *job, const struct tracking_op *op, int64_t id, struct err *err)
{
	int64_t there;
	int rc = db_int(state_db(st), &there, DB_model_tag_find, err, "it", id, op->name);

	if (!rc)
		return apply_refuse(job, ERR_NOENT, "No tag with key '%.250s' found for model with ID '%s'.", op->name, op->model);
	return rc < 0 ? rc : db_run(state_db(st), DB_model_tag_delete, err, "it", id, op->name);
}

int tracking_model_change(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	int64_t id = 0;
	int rc = need_model(st, job, op->model, &id, err);

	if (rc <= 0)
		return rc;
	snprintf(job->res.id, sizeof job->res.id, "%s", op->model);
	switch (op->kind) {
	case TRACKING_MODEL_STATUS:
		return db_run(state_db(st), DB_model_status_put, err, "iti", id, op->status, clock_wall_ms());
	case TRACKING_MODEL_DELETE:
		return db_run(state_db(st), DB_model_deleted_put, err, "ii", id, clock_wall_ms());
	case TRACKING_MODEL_TAGS:
		return put_pairs(st, DB_model_tag_put, id, op->tags, op->tag_count, err);
	case TRACKING_MODEL_UNTAG:
		return untag(st, job, op, id, err);
	default:
		rc = need_same_params(st, job, op, id, err);
		return rc <= 0 ? rc : put_pairs(st, DB_model_param_put, id, op->params, op->param_count, err);
	}
}

int tracking_model_points(struct state *st, const struct tracking_op *op, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->point_count && rc >= 0; i++) {
		const struct tracking_point *p = &op->points[i];
		int64_t id;

		rc = db_int(state_db(st), &id, DB_model_active, err, "t", p->model);
		if (rc > 0)
			rc = db_run(state_db(st), DB_model_metric_put, err, "itiitdtt", id, p->key, p->time_ms, p->step, op->run, p->value,
				    p->dataset_name ? p->dataset_name : "", p->dataset_digest ? p->dataset_digest : "");
	}
	return rc < 0 ? rc : 0;
}
