/* mlflow_experiment.c: creates, renames, tags, deletes and restores experiments, by MLflow's rules. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "web/store/base/no_memory.h"
#include "web/store/mlflow/mlflow_inside.h"

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

static int fail_no_experiment(struct change *c, int64_t id)
{
	return change_refuse(c, ERR_NOENT, "No Experiment with id=%lld exists", (long long)id);
}

int mlflow_experiment_need(struct state *st, struct change *c, int64_t id, struct err *err)
{
	struct experiment_row row;
	int rc = load_experiment_row(st, id, &row, err);

	if (rc)
		return rc;
	if (!row.found)
		return fail_no_experiment(c, id);
	if (row.deleted)
		return change_refuse(c, ERR_USAGE,
				     "The experiment %lld must be in the 'active' state. Current state is deleted.",
				     (long long)id);
	return 1;
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
	int rc = experiment_name_is_free(st, c, op->name, NO_EXPERIMENT, err);

	if (rc <= 0)
		return rc;
	rc = state_experiment(st, op->name, &id, &existed, err);
	if (!rc)
		snprintf(c->res.id, sizeof c->res.id, "%lld", (long long)id);
	if (!rc && op->location && *op->location)
		rc = db_run(state_db(st), DB_experiment_location_put, err, "it", id, op->location);
	return rc ? rc : put_experiment_tags(st, id, op, err);
}

const struct change_ops mlflow_experiment_new = { .name = "mlflow_experiment_new",
						  .copy = mlflow_copy,
						  .apply = make_mlflow_experiment };

/* Marks all runs of the experiment as deleted, or as active. */
static int delete_experiment_runs(struct state *st, int64_t id, bool delete, struct err *err)
{
	int64_t *ids = NULL, now = clock_wall_ms();
	size_t n = 0, cap = 0, i;
	struct state_run *r;
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_runs_to_sweep, err, "ii", id, (int64_t)delete);

	while (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
		if (n == cap) {
			int64_t *grown = realloc(ids, (cap = cap ? cap * 2 : 256) * sizeof *ids);

			if (!grown) {
				db_stop(q);
				free(ids);
				return no_memory(err);
			}
			ids = grown;
		}
		ids[n++] = db_i64(q, COL_runs_to_sweep_id);
		rc = 0;
	}
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
	int rc = load_experiment_row(st, op->experiment, &row, err);

	if (rc)
		return rc;
	if (!row.found || row.deleted == delete)
		return fail_no_experiment(c, op->experiment);
	rc = db_run(state_db(st), DB_experiment_deleted_put, err, "ixi", op->experiment, delete ? now : INT64_MIN, now);
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

const struct change_ops mlflow_experiment_delete = { .name = "mlflow_experiment_delete",
						     .copy = mlflow_copy,
						     .apply = delete_experiment };
const struct change_ops mlflow_experiment_restore = { .name = "mlflow_experiment_restore",
						      .copy = mlflow_copy,
						      .apply = restore_experiment };

static int rename_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct experiment_row row;
	int rc = load_experiment_row(st, op->experiment, &row, err);

	if (rc)
		return rc;
	if (!row.found)
		return fail_no_experiment(c, op->experiment);
	if (row.deleted)
		return change_refuse(c, ERR_UNSUPPORTED, "Cannot rename a non-active experiment.");
	rc = experiment_name_is_free(st, c, op->name, op->experiment, err);
	return rc <= 0 ? rc
		       : db_run(state_db(st), DB_experiment_name_put, err, "iti", op->experiment, op->name,
				clock_wall_ms());
}

const struct change_ops mlflow_experiment_rename = { .name = "mlflow_experiment_rename",
						     .copy = mlflow_copy,
						     .apply = rename_experiment };

static int tag_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	return rc <= 0 ? rc : put_experiment_tags(st, op->experiment, op, err);
}

const struct change_ops mlflow_experiment_tag = { .name = "mlflow_experiment_tag",
						  .copy = mlflow_copy,
						  .apply = tag_experiment };

static int untag_experiment(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	int64_t there;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	if (rc <= 0)
		return rc;
	rc = db_int(state_db(st), &there, DB_experiment_tag_find, err, "it", op->experiment, op->name);
	if (rc < 0)
		return rc;
	if (!rc)
		return change_refuse(c, ERR_NOENT, "No tag with name: %.250s in experiment with id %lld", op->name,
				     (long long)op->experiment);
	return db_run(state_db(st), DB_experiment_tag_delete, err, "it", op->experiment, op->name);
}

const struct change_ops mlflow_experiment_untag = { .name = "mlflow_experiment_untag",
						    .copy = mlflow_copy,
						    .apply = untag_experiment };
