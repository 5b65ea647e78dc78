/* mlflow_run.c: creates runs with a given start time and writes to active ones, by MLflow's rules. */
#include <stdio.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/clock.h"
#include "web/store/mlflow/mlflow_inside.h"
#include "web/store/mlflow/mlflow_repeat.h"
#include "web/store/write/apply.h"
#include "web/store/write/params.h"
#include "web/store/write/segment.h"

#define NAME_TAG "mlflow.runName"

int mlflow_run_need(struct state *st, struct change *c, struct state_run **ret, struct err *err)
{
	const char *uuid = c->op.run;
	struct err why = ERR_INIT;
	int rc = state_run(st, uuid, ret, &why);

	if (rc == ERR_NOENT || rc == ERR_GONE)
		return change_refuse(c, ERR_NOENT, "Run with id=%.40s not found", uuid);
	if (rc) {
		if (err)
			*err = why;
		return rc;
	}
	if ((*ret)->deleted_ms != INT64_MIN)
		return change_refuse(c, ERR_USAGE,
				     "The run %s must be in the 'active' state. Current state is deleted.", uuid);
	memcpy(c->res.id, (*ret)->uuid, sizeof (*ret)->uuid);
	return 1;
}

static int make_mlflow_run(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_new_run n = { .uuid = c->res.id,
				   .experiment_id = op->experiment,
				   .name = op->name,
				   .status = "running",
				   .start_ms = op->start_ms,
				   .user = op->user };
	struct state_run *r;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	if (rc <= 0)
		return rc;
	apply_draw_id(c->res.id);
	rc = state_run_add(st, &n, &r, err);
	if (!rc)
		rc = segment_open(st, r, &(struct segment_open){ .start_ms = op->start_ms, .status = "running" }, err);
	return rc ? rc : apply_tags(st, r, op->tags, op->tag_count, err);
}

const struct change_ops mlflow_run_new = {
	.name = "mlflow_run_new", .makes_run = true, .copy = mlflow_copy, .apply = make_mlflow_run
};

/* Lists params that are stored with another value; values: the stored ones. */
static void list_contradictions(const struct state_run *r, const struct mlflow_op *op, const char *const *values,
				struct buf *list)
{
	size_t i;

	for (i = 0; i < op->param_count; i++) {
		const struct ingest_kv *kv = &op->params[i];

		if (!values[i] || !strcmp(values[i], kv->value))
			continue;
		if (op->single)
			buf_addf(list,
				 "Param with key='%.100s' was already logged with value='%.100s' for run ID='%s'. "
				 "Attempted logging new value '%.100s'.",
				 kv->key, values[i], r->uuid, kv->value);
		else
			buf_addf(list, "%s{'key': '%.100s', 'old_value': '%.100s', 'new_value': '%.100s'}",
				 list->len ? ", " : "", kv->key, values[i], kv->value);
	}
}

static int check_params(struct state *st, struct change *c, struct state_run *r, const struct mlflow_op *op,
			struct err *err)
{
	struct params_lookup l = { .run = r, .kv = op->params, .count = op->param_count, .arena = c->in.arena };
	struct buf list;
	int rc = params_find(st, &l, err);

	buf_init(&list, 1 << 20);
	if (!rc)
		list_contradictions(r, op, l.values, &list);
	if (!rc && list.len && op->single)
		change_refuse(c, ERR_USAGE, "Changing param values is not allowed. %s", list.data);
	else if (!rc && list.len)
		change_refuse(c, ERR_USAGE,
			      "Changing param values is not allowed. Params were already logged='[%.380s]' for "
			      "run ID='%s'.",
			      list.data, r->uuid);
	rc = rc ? rc : !list.len;
	buf_done(&list);
	return rc;
}

static int put_mlflow_points(struct state *st, struct change *c, struct state_run *r, const struct mlflow_op *op,
			     struct err *err)
{
	struct apply_points a = { .rank = 0, .segment = r->segment };
	int rc = c->in.point_count ? apply_expect(st, r, &a, &c->in, err) : 0;

	if (!rc && c->in.point_count)
		rc = mlflow_repeat_drop(st, r, &c->in, err);
	c->res.accepted = c->in.point_count;
	if (!rc)
		rc = apply_points(st, r, &a, &c->in, err);
	return rc ? rc : mlflow_model_points(st, op, err);
}

static const char *find_run_name_tag(const struct mlflow_op *op)
{
	const char *name = NULL;
	size_t i;

	for (i = 0; i < op->tag_count; i++)
		if (!strcmp(op->tags[i].key, NAME_TAG))
			name = op->tags[i].value;
	return name;
}

/* The name of a run is also stored as a tag; both are kept equal. */
static int put_batch_rest(struct state *st, struct state_run *r, const struct mlflow_op *op, struct err *err)
{
	const struct ingest_kv named = { NAME_TAG, op->name };
	const char *name = op->name ? op->name : find_run_name_tag(op);
	struct ingest_op patch = { .name = name, .status = op->status, .end_ms = op->end_ms, .end_kept = true };
	int rc = apply_tags(st, r, op->tags, op->tag_count, err);

	if (!rc && op->name)
		rc = apply_tags(st, r, &named, 1, err);
	if (!rc && (name || op->status || op->end_ms != INGEST_NO_TIME))
		rc = apply_patch(st, r, &patch, err);
	return rc;
}

static int write_mlflow_batch(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_run *r;
	int rc = mlflow_run_need(st, c, &r, err);

	if (rc > 0 && op->param_count)
		rc = check_params(st, c, r, op, err);
	if (rc <= 0)
		return rc;
	rc = params_add(st, r, op->params, op->param_count, err);
	if (!rc)
		rc = put_mlflow_points(st, c, r, op, err);
	return rc ? rc : put_batch_rest(st, r, op, err);
}

const struct change_ops mlflow_run_write = { .name = "mlflow_run_write",
					     .copy = mlflow_copy,
					     .apply = write_mlflow_batch };

static int untag_mlflow_run(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_run *r;
	int rc = mlflow_run_need(st, c, &r, err);

	if (rc <= 0)
		return rc;
	rc = apply_untag(st, r, op->name, err);
	return rc ? rc < 0 ? rc : 0
		  : change_refuse(c, ERR_NOENT, "No tag with name: %.250s in run with id %s", op->name, r->uuid);
}

const struct change_ops mlflow_run_untag = { .name = "mlflow_run_untag",
					     .copy = mlflow_copy,
					     .apply = untag_mlflow_run };
