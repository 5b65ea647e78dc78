/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow.c: copies operations of MLflow's API for the writer's thread; creates, renames, tags and deletes
 * experiments. */
#include "web/store/mlflow/mlflow.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/mem/mem.h"
#include "web/store/mlflow/mlflow_inside.h"

/* Copies the points with a model; the others are in the intake. */
static const struct mlflow_point *copy_model_points(struct arena *a, const struct mlflow_op *op, size_t *ret_count)
{
	struct mlflow_point *copy;
	size_t i, n = 0;

	for (i = 0; i < op->point_count; i++)
		n += op->points[i].model != NULL;
	copy = arena_array(a, n + 1, sizeof(*copy));
	for (i = 0, n = 0; i < op->point_count; i++) {
		const struct mlflow_point *p = &op->points[i];

		if (!p->model)
			continue;
		copy[n] = *p;
		copy[n].key = change_dup(a, p->key);
		copy[n].model = change_dup(a, p->model);
		copy[n].dataset_name = change_dup(a, p->dataset_name);
		copy[n++].dataset_digest = change_dup(a, p->dataset_digest);
	}
	*ret_count = n;
	return copy;
}

static const struct ingest_dataset *copy_datasets(struct arena *a, const struct mlflow_op *op)
{
	struct ingest_dataset *copy = arena_array(a, op->dataset_count + 1, sizeof(*copy));
	size_t i;

	for (i = 0; i < op->dataset_count; i++) {
		const struct ingest_dataset *d = &op->datasets[i];

		copy[i] = (struct ingest_dataset){
			.name = change_dup(a, d->name),
			.digest = change_dup(a, d->digest),
			.source_type = change_dup(a, d->source_type),
			.source = change_dup(a, d->source),
			.schema = change_dup(a, d->schema),
			.profile = change_dup(a, d->profile),
			.tags = change_dup_pairs(a, d->tags, d->tag_count),
			.tag_count = d->tag_count,
		};
	}
	return copy;
}

static const struct mlflow_model *copy_models(struct arena *a, const struct mlflow_op *op)
{
	struct mlflow_model *copy = arena_array(a, op->model_count + 1, sizeof(*copy));
	size_t i;

	for (i = 0; i < op->model_count; i++)
		copy[i] = (struct mlflow_model){ change_dup(a, op->models[i].id), op->models[i].step };
	return copy;
}

/* Copies an operation to the arena. */
static const struct mlflow_op *copy_mlflow_op(const struct mlflow_op *from, struct arena *a)
{
	struct mlflow_op *to = arena_alloc(a, sizeof(*to));

	*to = *from;
	to->run = change_dup(a, from->run);
	to->model = change_dup(a, from->model);
	to->name = change_dup(a, from->name);
	to->user = change_dup(a, from->user);
	to->status = change_dup(a, from->status);
	to->type = change_dup(a, from->type);
	to->source_run = change_dup(a, from->source_run);
	to->location = change_dup(a, from->location);
	to->params = change_dup_pairs(a, from->params, from->param_count);
	to->tags = change_dup_pairs(a, from->tags, from->tag_count);
	to->points = copy_model_points(a, from, &to->point_count);
	to->datasets = copy_datasets(a, from);
	to->models = copy_models(a, from);
	return to;
}

int mlflow_decode_points(struct change *c, const struct ingest_op *change, struct err *err)
{
	const struct mlflow_op *op = change->more;
	struct intake *in = &c->in;
	struct ingest_point *points = arena_array(in->arena, op->point_count + 1, sizeof(*points));
	struct ingest_op all = { .logged.points = points, .logged.point_count = op->point_count };
	size_t i;

	for (i = 0; i < op->point_count; i++)
		points[i] = (struct ingest_point){ op->points[i].key, op->points[i].step,
						   (double)op->points[i].time_ms / 1e3, op->points[i].value,
						   STATE_RUN_LEVEL };
	return intake_points(in, &all, err);
}

static size_t count_text_bytes(const struct mlflow_op *op)
{
	size_t bytes = 0, i;

	for (i = 0; i < op->tag_count; i++)
		bytes += strlen(op->tags[i].value);
	for (i = 0; i < op->dataset_count; i++)
		bytes += strlen(op->datasets[i].source) +
			 (op->datasets[i].profile ? strlen(op->datasets[i].profile) : 0);
	return bytes;
}

void mlflow_copy(struct change *c, const struct ingest_op *op)
{
	const struct mlflow_op *from = op->more, *copy = copy_mlflow_op(from, c->in.arena);

	c->op = (struct ingest_op){ .kind = op->kind, .run = copy->run, .more = copy };
	c->text_bytes = count_text_bytes(from);
}

struct ingest_op mlflow_op(const struct mlflow_op *op)
{
	return (struct ingest_op){ .kind = op->kind, .run = op->run, .more = op };
}

/* creates, renames, tags, deletes and restores experiments, by MLflow's rules. */

#define NO_EXPERIMENT INT64_C(-1)

struct experiment_row {
	bool found, deleted;
};

static int load_experiment_row(struct state *st, int64_t id, struct experiment_row *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_experiment_state, err, "i", id);

	*ret = (struct experiment_row){ 0 };
	if (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
		*ret = (struct experiment_row){ true, db_i32(q, COL_experiment_state_deleted) };
		db_stop(q);
	}
	return rc < 0 ? rc : 0;
}

/* For the audit log, of the kinds whose object is the experiment. */
static int describe_experiment(struct state *st, struct change *c, int64_t id, struct err *err)
{
	int rc = change_about_experiment(st, c, id, err);

	c->about.id = arena_printf(c->in.arena, "%lld", (long long)id);
	c->about.name = c->about.experiment;
	return rc;
}

static int fail_no_experiment(struct change *c, int64_t id)
{
	return change_refuse(c, ERR_NOENT, "No Experiment with id=%lld exists", (long long)id);
}

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
	rc = change_may_write(st, c, (*ret)->experiment_id, err);
	if (rc == ERR_NOENT)
		return change_refuse(c, ERR_NOENT, "Run with id=%.40s not found", uuid);
	if (rc <= 0)
		return rc;
	if ((*ret)->deleted_ms != INT64_MIN)
		return change_refuse(c, ERR_USAGE,
				     "The run %s must be in the 'active' state. Current state is deleted.", uuid);
	memcpy(c->res.id, (*ret)->uuid, sizeof(*ret)->uuid);
	rc = change_about_run(st, c, *ret, err);
	return rc ? rc : 1;
}

/* Requires an experiment, deleted or not, that the caller may write: 1 found, 0 refused. */
static int need_experiment_row(struct state *st, struct change *c, int64_t id, struct experiment_row *ret,
			       struct err *err)
{
	int rc = load_experiment_row(st, id, ret, err);

	if (!rc)
		rc = ret->found ? change_may_write(st, c, id, err) : ERR_NOENT;
	return rc == ERR_NOENT ? fail_no_experiment(c, id) : rc;
}

int mlflow_experiment_need(struct state *st, struct change *c, int64_t id, struct err *err)
{
	struct experiment_row row;
	int rc = need_experiment_row(st, c, id, &row, err);

	if (rc <= 0)
		return rc;
	if (row.deleted)
		return change_refuse(c, ERR_USAGE,
				     "The experiment %lld must be in the 'active' state. Current state is deleted.",
				     (long long)id);
	rc = describe_experiment(st, c, id, err);
	return rc ? rc : 1;
}

static int put_experiment_tags(struct state *st, int64_t id, const struct mlflow_op *op, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_experiment_tag_put, err, "itt", id, op->tags[i].key, op->tags[i].value);
	return rc;
}

/* 1: no experiment other than own has the name, 0 refused. */
static int experiment_name_is_free(struct state *st, struct change *c, const char *name, int64_t own, struct err *err)
{
	struct db_rows *q;
	bool taken = false, deleted = false;
	int rc = db_start(state_db(st), &q, DB_experiment_name_state, err, "ti", name, own);

	if (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
		taken = true;
		deleted = db_i32(q, COL_experiment_name_state_deleted);
		db_stop(q);
	}
	if (rc < 0)
		return rc;
	if (!taken)
		return 1;
	return change_refuse(c, ERR_EXISTS, "Experiment(name=%.200s) already exists.%s", name,
			     deleted ? " It is in deleted state: restore it, or choose another name." : "");
}

static int make_mlflow_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t id;
	bool existed;
	int rc = change_may_use_name(st, c, op->name, err);

	if (rc > 0)
		rc = experiment_name_is_free(st, c, op->name, NO_EXPERIMENT, err);
	if (rc <= 0)
		return rc;
	rc = state_experiment(st, op->name, &id, &existed, err);
	if (!rc)
		snprintf(c->res.id, sizeof(c->res.id), "%lld", (long long)id);
	if (!rc && op->location && *op->location)
		rc = db_run(state_db(st), DB_experiment_location_put, err, "it", id, op->location);
	return rc ? rc : put_experiment_tags(st, id, op, err);
}

CHANGE_KIND(mlflow_experiment_new, mlflow_copy, make_mlflow_experiment);

/* Marks all runs of the experiment as deleted, or as active. */
static int delete_experiment_runs(struct state *st, int64_t id, bool delete, struct err *err)
{
	int64_t *ids = NULL, now = clock_wall_ms();
	size_t n = 0, cap = 0, i;
	struct state_run *r;
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_runs_to_sweep, err, "ii", id, (int64_t) delete);

	while (rc >= 0 && (rc = db_next(state_db(st), q, err)) > 0)
		mem_push(&ids, &n, &cap, db_i64(q, COL_runs_to_sweep_id));
	for (i = 0; i < n && !rc; i++) {
		rc = state_run_by_id(st, ids[i], &r, err);
		if (rc)
			break;
		r->deleted_ms = delete ? now : INT64_MIN;
		state_mark(st, r, true);
	}
	free(ids);
	return rc;
}

static int set_experiment_deleted(struct state *st, struct change *c, bool delete, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t now = clock_wall_ms();
	struct experiment_row row;
	int rc = need_experiment_row(st, c, op->experiment, &row, err);

	if (rc <= 0)
		return rc;
	if (row.deleted == delete)
		return fail_no_experiment(c, op->experiment);
	rc = describe_experiment(st, c, op->experiment, err);
	if (!rc)
		rc = db_run(state_db(st), DB_experiment_deleted_put, err, "ixi", op->experiment,
			    delete ? now : INT64_MIN, now);
	return rc ? rc : delete_experiment_runs(st, op->experiment, delete, err);
}

static int delete_experiment(struct state *st, struct change *c, struct err *err)
{
	return set_experiment_deleted(st, c, true, err);
}

static int restore_experiment(struct state *st, struct change *c, struct err *err)
{
	return set_experiment_deleted(st, c, false, err);
}

CHANGE_AUDITED(mlflow_experiment_delete, mlflow_copy, delete_experiment, "delete", "experiment");
CHANGE_AUDITED(mlflow_experiment_restore, mlflow_copy, restore_experiment, "restore", "experiment");

static int rename_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct experiment_row row;
	int rc = need_experiment_row(st, c, op->experiment, &row, err);

	if (rc <= 0)
		return rc;
	if (row.deleted)
		return change_refuse(c, ERR_UNSUPPORTED, "Cannot rename a non-active experiment.");
	if (!change_may_create(c, op->name))
		return change_refuse_name(c);
	rc = experiment_name_is_free(st, c, op->name, op->experiment, err);
	if (rc > 0 && !(rc = describe_experiment(st, c, op->experiment, err))) {
		c->about.detail = arena_printf(c->in.arena, "was %s", c->about.name);
		c->about.name = c->about.experiment = op->name;
		rc = 1;
	}
	return rc <= 0 ? rc
		       : db_run(state_db(st), DB_experiment_name_put, err, "iti", op->experiment, op->name,
				clock_wall_ms());
}

CHANGE_AUDITED(mlflow_experiment_rename, mlflow_copy, rename_experiment, "rename", "experiment");

static int tag_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	c->about.detail = change_keys(c->in.arena, op->tags, op->tag_count);
	return rc <= 0 ? rc : put_experiment_tags(st, op->experiment, op, err);
}

CHANGE_AUDITED(mlflow_experiment_tag, mlflow_copy, tag_experiment, "tag", "experiment");

static int untag_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t there;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	if (rc <= 0)
		return rc;
	c->about.detail = op->name;
	rc = db_int(state_db(st), &there, DB_experiment_tag_find, err, "it", op->experiment, op->name);
	if (rc < 0)
		return rc;
	if (!rc)
		return change_refuse(c, ERR_NOENT, "No tag with name: %.250s in experiment with id %lld", op->name,
				     (long long)op->experiment);
	return db_run(state_db(st), DB_experiment_tag_delete, err, "it", op->experiment, op->name);
}

CHANGE_AUDITED(mlflow_experiment_untag, mlflow_copy, untag_experiment, "untag", "experiment");
