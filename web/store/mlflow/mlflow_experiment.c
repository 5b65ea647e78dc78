/* tracking_experiment.c: experiments by MLflow's rules: made, renamed, tagged, deleted with their runs, restored. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "web/store/mlflow/mlflow_inside.h"

#define NO_EXPERIMENT INT64_C(-1)

struct row {
	bool found, deleted;
};

static int load(struct state *st, int64_t id, struct row *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_experiment_state, err, "i", id);

	*ret = (struct row){ 0 };
	if (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
		*ret = (struct row){ true, db_i32(q, COL_experiment_state_deleted) };
		db_stop(q);
	}
	return rc < 0 ? rc : 0;
}

static int no_such(struct apply_job *job, int64_t id)
{
	return apply_refuse(job, ERR_NOENT, "No Experiment with id=%lld exists", (long long)id);
}

int tracking_need_experiment(struct state *st, struct apply_job *job, int64_t id, struct err *err)
{
	struct row row;
	int rc = load(st, id, &row, err);

	if (rc)
		return rc;
	if (!row.found)
		return no_such(job, id);
	if (row.deleted)
		return apply_refuse(job, ERR_USAGE, "The experiment %lld must be in the 'active' state. Current state is deleted.",
				    (long long)id);
	return 1;
}

static int put_tags(struct state *st, int64_t id, const struct tracking_op *op, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < op->tag_count && !rc; i++)
		rc = db_run(state_db(st), DB_experiment_tag_put, err, "itt", id, op->tags[i].key, op->tags[i].value);
	return rc;
}

/* 1 no other experiment than own has the name, 0 refused. */
static int name_free(struct state *st, struct apply_job *job, const char *name, int64_t own, struct err *err)
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
	return apply_refuse(job, ERR_EXISTS, "Experiment(name=%.200s) already exists.%s", name,
			    deleted ? " It is in deleted state: restore it, or choose another name." : "");
}

int tracking_experiment_new(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	int64_t id;
	bool existed;
	int rc = name_free(st, job, op->name, NO_EXPERIMENT, err);

	if (rc <= 0)
		return rc;
	rc = state_experiment(st, op->name, &id, &existed, err);
	if (!rc)
		snprintf(job->res.id, sizeof job->res.id, "%lld", (long long)id);
	if (!rc && op->location && *op->location)
		rc = db_run(state_db(st), DB_experiment_location_put, err, "it", id, op->location);
	return rc ? rc : put_tags(st, id, op, err);
}

/* Marks every run of the experiment deleted, or active again. */
static int sweep_runs(struct state *st, int64_t id, bool delete, struct err *err)
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
				return err_set(err, ERR_NOMEM, "store: out of memory");
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

static int set_deleted(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	bool delete = op->kind == TRACKING_EXPERIMENT_DELETE;
	int64_t now = clock_wall_ms();
	struct row row;
	int rc = load(st, op->experiment, &row, err);

	if (rc)
		return rc;
	if (!row.found || row.deleted == delete)
		return no_such(job, op->experiment);
	rc = db_run(state_db(st), DB_experiment_deleted_put, err, "ixi", op->experiment, delete ? now : INT64_MIN, now);
	return rc ? rc : sweep_runs(st, op->experiment, delete, err);
}

static int rename_it(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	struct row row;
	int rc = load(st, op->experiment, &row, err);

	if (rc)
		return rc;
	if (!row.found)
		return no_such(job, op->experiment);
	if (row.deleted)
		return apply_refuse(job, ERR_UNSUPPORTED, "Cannot rename a non-active experiment.");
	rc = name_free(st, job, op->name, op->experiment, err);
	return rc <= 0 ? rc : db_run(state_db(st), DB_experiment_name_put, err, "iti", op->experiment, op->name, clock_wall_ms());
}

static int untag(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	int64_t there;
	int rc = db_int(state_db(st), &there, DB_experiment_tag_find, err, "it", op->experiment, op->name);

	if (rc < 0)
		return rc;
	if (!rc)
		return apply_refuse(job, ERR_NOENT, "No tag with name: %.250s in experiment with id %lld", op->name,
				    (long long)op->experiment);
	return db_run(state_db(st), DB_experiment_tag_delete, err, "it", op->experiment, op->name);
}

int tracking_experiment_change(struct state *st, struct apply_job *job, const struct tracking_op *op, struct err *err)
{
	int rc;

	if (op->kind == TRACKING_EXPERIMENT_DELETE || op->kind == TRACKING_EXPERIMENT_RESTORE)
		return set_deleted(st, job, op, err);
	if (op->kind == TRACKING_EXPERIMENT_RENAME)
		return rename_it(st, job, op, err);
	rc = tracking_need_experiment(st, job, op->experiment, err);
	if (rc <= 0)
		return rc;
	return op->kind == TRACKING_EXPERIMENT_TAG ? put_tags(st, op->experiment, op, err) : untag(st, job, op, err);
}
