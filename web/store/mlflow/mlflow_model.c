/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_model.c: creates, finishes, tags and deletes logged models, stores points logged with one, and links them
 * and data sets to runs. */
#include <stdio.h>

#include "tracker/base/clock.h"
#include "web/store/mlflow/mlflow_inside.h"
#include "web/store/write/apply.h"

/* Finds a model that is not deleted and that the caller may write: 1, 0 refused, ERR_NOENT, or another code. */
static int find_own_model(struct state *st, struct change *c, const char *id, int64_t *ret, struct err *err)
{
	int64_t experiment;
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_model_active, err, "t", id);

	if (rc || (rc = db_next(state_db(st), q, err)) <= 0)
		return rc ? rc : ERR_NOENT;
	*ret = db_i64(q, COL_model_active_id);
	experiment = db_i64(q, COL_model_active_experiment_id);
	db_stop(q);
	return change_may_write(st, c, experiment, err);
}

/* For the audit log. */
static int describe_model(struct state *st, struct change *c, int64_t id, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t experiment = -1;
	struct db_rows *q;
	int rc = c->about.action ? db_start(state_db(st), &q, DB_model_name, err, "i", id) : 0;

	if (!c->about.action)
		return 0;
	while (rc >= 0 && (rc = db_next(state_db(st), q, err)) > 0) {
		c->about.name = db_text(c->in.arena, q, COL_model_name_name);
		experiment = db_i64(q, COL_model_name_experiment_id);
	}
	c->about.id = op->model;
	return rc ? rc : change_about_experiment(st, c, experiment, err);
}

/* The same of the operation: ERR_NOENT is refused. */
static int find_live_model(struct state *st, struct change *c, int64_t *ret, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int rc = find_own_model(st, c, op->model, ret, err);

	if (rc > 0)
		snprintf(c->res.id, sizeof(c->res.id), "%s", op->model);
	if (rc > 0 && describe_model(st, c, *ret, err))
		return err->code;
	return rc != ERR_NOENT ? rc : change_refuse(c, ERR_NOENT, "Logged model with ID '%.60s' not found.", op->model);
}

static int put_model_params(struct state *st, const struct mlflow_op *op, int64_t model, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->param_count && !rc; i++)
		rc = db_run(state_db(st), DB_model_param_put, err, "itt", model, op->params[i].key,
			    op->params[i].value);
	return rc;
}

static int put_model_tags(struct state *st, const struct mlflow_op *op, int64_t model, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_model_tag_put, err, "itt", model, op->tags[i].key, op->tags[i].value);
	return rc;
}

/* Refuses to change stored params: 1 all agree, 0 refused, or negative. */
static int need_same_params(struct state *st, struct change *c, int64_t model, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
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
			rc = change_refuse(c, ERR_USAGE,
					   "Changing param values is not allowed. Param with key='%.100s' was already "
					   "logged with value='%.100s' for logged model ID='%s'. Attempted logging new "
					   "value '%.100s'.",
					   kv->key, old, op->model, kv->value);
		db_stop(q);
		if (!rc)
			return 0;
	}
	return 1;
}

static int make_logged_model(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t id;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	if (rc <= 0)
		return rc;
	snprintf(c->res.id, sizeof(c->res.id), "%s", op->model);
	rc = db_run(state_db(st), DB_model_add, err, "tittti", op->model, op->experiment, op->name, op->type,
		    op->source_run, clock_wall_ms());
	id = db_last_id(state_db(st));
	if (!rc)
		rc = describe_model(st, c, id, err);
	if (!rc)
		rc = put_model_params(st, op, id, err);
	return rc ? rc : put_model_tags(st, op, id, err);
}

CHANGE_AUDITED(mlflow_model_new, mlflow_copy, make_logged_model, "create", "model");

static int set_model_status(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t id;
	int rc = find_live_model(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_model_status_put, err, "iti", id, op->status, clock_wall_ms());
}

CHANGE_KIND(mlflow_model_status, mlflow_copy, set_model_status);

static int delete_model(struct state *st, struct change *c, struct err *err)
{
	int64_t id;
	int rc = find_live_model(st, c, &id, err);

	return rc <= 0 ? rc : db_run(state_db(st), DB_model_deleted_put, err, "ii", id, clock_wall_ms());
}

CHANGE_AUDITED(mlflow_model_delete, mlflow_copy, delete_model, "delete", "model");

static int tag_model(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t id;
	int rc = find_live_model(st, c, &id, err);

	c->about.detail = change_keys(c->in.arena, op->tags, op->tag_count);
	return rc <= 0 ? rc : put_model_tags(st, op, id, err);
}

CHANGE_AUDITED(mlflow_model_tags, mlflow_copy, tag_model, "tag", "model");

static int untag_model(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t id, there;
	int rc = find_live_model(st, c, &id, err);

	if (rc <= 0)
		return rc;
	c->about.detail = op->name;
	rc = db_int(state_db(st), &there, DB_model_tag_find, err, "it", id, op->name);
	if (!rc)
		return change_refuse(c, ERR_NOENT, "No tag with key '%.250s' found for model with ID '%s'.", op->name,
				     op->model);
	return rc < 0 ? rc : db_run(state_db(st), DB_model_tag_delete, err, "it", id, op->name);
}

CHANGE_AUDITED(mlflow_model_untag, mlflow_copy, untag_model, "untag", "model");

static int add_model_params(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t id;
	int rc = find_live_model(st, c, &id, err);

	if (rc > 0)
		rc = need_same_params(st, c, id, err);
	return rc <= 0 ? rc : put_model_params(st, op, id, err);
}

CHANGE_KIND(mlflow_model_params, mlflow_copy, add_model_params);

int mlflow_model_points(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	size_t i;
	int rc = 0;

	for (i = 0; i < op->point_count && rc >= 0; i++) {
		const struct mlflow_point *p = &op->points[i];
		int64_t id;

		rc = find_own_model(st, c, p->model, &id, err);
		if (!rc || rc == ERR_NOENT) { /* without the model: the points themselves are stored */
			c->res.code = rc = 0;
			continue;
		}
		if (rc > 0)
			rc = db_run(state_db(st), DB_model_metric_put, err, "itiitdtt", id, p->key, p->time_ms, p->step,
				    op->run, p->value, p->dataset_name ? p->dataset_name : "",
				    p->dataset_digest ? p->dataset_digest : "");
	}
	return rc < 0 ? rc : 0;
}

/* --- data sets and models of a run ---------------------------------------------------------------------------- */

static int put_linked_models(struct state *st, struct state_run *r, const struct mlflow_op *op, bool made,
			     struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->model_count && !rc; i++)
		rc = db_run(state_db(st), DB_run_model_add, err, "iiti", r->id, (int64_t)made, op->models[i].id,
			    op->models[i].step);
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

CHANGE_KIND(mlflow_inputs_read, mlflow_copy, put_models_read);
CHANGE_KIND(mlflow_inputs_made, mlflow_copy, put_models_made);
