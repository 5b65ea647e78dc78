/* SPDX-License-Identifier: Apache-2.0 */
/* change_purge.c: removes deleted runs, models and experiments for good, a bounded part at a time, and returns free
 * pages. The id of a removed run is kept in the table gone. Touches no file but the store's. Each table that holds
 * rows of runs must be in the list below. */

#include "tracker/base/clock.h"
#include "web/store/points/scan.h"
#include "web/store/write/change.h"

#define PURGE_ROWS 1000 /* per call: commits wait some milliseconds for it */
#define CHUNK_ROWS 20	/* a full chunk fills several pages, so it counts as this many rows */

/* Each deletes at most ?2 rows of run ?1. Journals are last: their paths are needed until their files are handled. */
static const enum db_query run_queries[] = {
	DB_purge_metric, DB_purge_param, DB_purge_segment_param, DB_purge_tag, DB_purge_environment, DB_purge_segment,
	DB_purge_part, DB_purge_console, DB_purge_code, DB_purge_file, DB_purge_told, DB_purge_media,
	DB_purge_alert, DB_purge_alert_fired, DB_purge_problem, DB_purge_idempotency, DB_purge_run_dataset,
	DB_purge_run_dataset_tag, DB_purge_run_model, DB_purge_artifact, DB_purge_arrival, DB_purge_archive,
	DB_purge_run_text, DB_purge_note_text, DB_purge_wandb_made, DB_purge_wandb_use, DB_purge_writer,
};

struct purge_list {
	const enum db_query *queries;
	size_t count;
};
#define PURGE_LIST(queries) &(struct purge_list){ queries, sizeof(queries) / sizeof(queries)[0] }

/* Points that are not folded yet are removed at once: folding must not find a series that is gone. */
static int purge_log(struct state *st, struct change *c, int64_t run_id, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(state_db(st), &q, DB_purge_log_totals, err, "i", run_id);

	if (!rc && (rc = db_next(state_db(st), q, err)) > 0) {
		c->log_rows_gone = (uint64_t)db_i64(q, COL_purge_log_totals_rows);
		c->log_points_gone = (uint64_t)db_i64(q, COL_purge_log_totals_points);
		db_stop(q);
	}
	return rc < 0 ? rc : db_run(state_db(st), DB_purge_log, err, "i", run_id);
}

static int mark_run_gone(struct state *st, struct change *c, struct state_run *r, struct err *err)
{
	struct db *d = state_db(st);
	int rc;

	if (r->deleted_ms == INT64_MIN || r->deleted_ms > c->op.before_ms)
		return change_refuse(c, ERR_EXISTS, "the run is not deleted, or not long enough");
	rc = change_about_run(st, c, r, err);
	if (!rc)
		rc = purge_log(st, c, r->id, err);
	if (!rc)
		rc = db_run(d, DB_gone_add, err, "itii", r->id, r->uuid, r->experiment_id, clock_wall_ms());
	if (!rc)
		rc = db_run(d, DB_purge_note, err, "i", r->id);
	if (!rc)
		rc = db_run(d, DB_purge_run, err, "i", r->id);
	r->gone = true;
	state_mark(st, r, true);
	c->res.more = true;
	return rc;
}

/* Finds the next series of the run: 1 found, 0 none left, negative: failed. *ret_points: folded points. */
static int next_purged_series(struct db *d, int64_t run_id, int64_t *ret_id, int64_t *ret_points, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_purge_series_next, err, "i", run_id);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	*ret_id = db_i64(q, COL_purge_series_next_id);
	*ret_points = db_i64(q, COL_purge_series_next_count);
	db_stop(q);
	return 1;
}

/* Deletes chunks, then the series that own them; *left: how many rows may still be deleted. */
static int purge_series(struct db *d, int64_t run_id, int64_t *left, struct err *err)
{
	int64_t id = 0, points = 0, chunks, rows;
	int rc = 0;

	while (*left > 0 && (rc = next_purged_series(d, run_id, &id, &points, err)) > 0) {
		rows = points <= CHUNK_GROUP ? 1 : CHUNK_ROWS;
		chunks = (*left + rows - 1) / rows;
		rc = db_run(d, DB_purge_chunk, err, "iii", SCAN_CHUNK_ID(id, 0), SCAN_CHUNK_ID(id + 1, 0) - 1, chunks);
		if (rc)
			return rc;
		*left -= 1 + rows * db_changed(d);
		if (db_changed(d) < chunks && (rc = db_run(d, DB_purge_series, err, "i", id)))
			return rc;
	}
	return rc < 0 ? rc : 0;
}

/* Deletes at most *left rows of the run, model or experiment. */
static int purge_tables(struct db *d, const struct purge_list *l, int64_t id, int64_t *left, struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i<l->count && * left> 0 && !rc; i++) {
		rc = db_run(d, l->queries[i], err, "ii", id, *left);
		*left -= db_changed(d);
	}
	return rc;
}

static int purge_some(struct state *st, struct change *c, int64_t run_id, struct err *err)
{
	struct db *d = state_db(st);
	int64_t left = PURGE_ROWS;
	int rc = purge_series(d, run_id, &left, err);

	if (!rc)
		rc = purge_tables(d, PURGE_LIST(run_queries), run_id, &left, err);
	c->res.more = left <= 0;
	if (!rc && !c->res.more)
		rc = db_run(d, DB_gone_finish, err, "i", run_id);
	return rc;
}

/* The first call marks a deleted run as gone and leaves its rows; each further call deletes some of them. */
static int apply_run_purge(struct state *st, struct change *c, struct err *err)
{
	struct err why = ERR_INIT;
	struct state_run *r;
	int64_t id;
	int rc = state_run(st, c->op.run, &r, &why);

	if (!rc)
		return mark_run_gone(st, c, r, err);
	if (rc == ERR_NOENT)
		return change_refuse(c, rc, "%s", why.text);
	if (rc != ERR_GONE) {
		*err = why;
		return rc;
	}
	c->about.action = NULL; /* the first call has logged it */
	rc = db_int(state_db(st), &id, DB_gone_get, err, "t", c->op.run);
	return rc > 0 ? purge_some(st, c, id, err) : rc;
}

const struct change_ops change_purge_run = {
	.name = "purge_run", .action = "purge", .object = "run", .check = change_check_run, .apply = apply_run_purge
};

/* The first call makes the deletion final: restoring the experiment does not restore the model. */
static int apply_model_purge(struct state *st, struct change *c, struct err *err)
{
	static const enum db_query tables[] = {
		DB_purge_model_metric, DB_purge_model_param, DB_purge_model_tag, DB_purge_model_artifact,
	};
	struct db *d = state_db(st);
	int64_t left = PURGE_ROWS, id, final;
	struct db_rows *q;
	int rc = db_start(d, &q, DB_model_to_purge, err, "ti", c->op.name, c->op.before_ms);

	if (rc || (rc = db_next(d, q, err)) < 0)
		return rc;
	if (!rc)
		return change_refuse(c, ERR_EXISTS, "the model is not deleted, or not long enough");
	id = db_i64(q, COL_model_to_purge_id);
	final = db_i64(q, COL_model_to_purge_final);
	db_stop(q);
	c->res.more = true;
	c->about.id = c->op.name;
	if (!final)
		return db_run(d, DB_model_deleted_put, err, "ii", id, (int64_t)0);
	c->about.action = NULL; /* that call has logged it */
	rc = purge_tables(d, PURGE_LIST(tables), id, &left, err);
	c->res.more = left <= 0;
	return rc || c->res.more ? rc : db_run(d, DB_purge_model, err, "i", id);
}

const struct change_ops change_purge_model = {
	.name = "purge_model", .action = "purge", .object = "model", .apply = apply_model_purge
};

/* Removes only an empty experiment, never Default; its runs and models are removed first. */
static int apply_experiment_purge(struct state *st, struct change *c, struct err *err)
{
	static const enum db_query tables[] = {
		DB_purge_experiment_tag, DB_purge_dataset,     DB_purge_kept_text,
		DB_purge_kept,		 DB_purge_alert_rule,  DB_purge_retention,
		DB_purge_wandb_file,	 DB_purge_wandb_alias, DB_purge_wandb_artifact
	};
	struct db *d = state_db(st);
	int64_t left = PURGE_ROWS, id;
	int rc = db_int(d, &id, DB_experiment_to_purge, err, "ti", c->op.name, c->op.before_ms);

	if (!rc)
		return change_refuse(c, ERR_EXISTS, "the experiment is not deleted, not long enough, or not empty");
	c->about.id = c->op.name;
	if (rc > 0)
		rc = change_about_experiment(st, c, id, err);
	c->about.name = c->about.experiment;
	if (!rc)
		rc = purge_tables(d, PURGE_LIST(tables), id, &left, err);
	c->res.more = left <= 0;
	if (c->res.more)
		c->about.action = NULL; /* the last call logs it */
	return rc || c->res.more ? rc : db_run(d, DB_purge_experiment, err, "i", id);
}

const struct change_ops change_purge_experiment = {
	.name = "purge_experiment", .action = "purge", .object = "experiment", .apply = apply_experiment_purge
};

/* Returns res.removed pages to the system; res.durable are left. */
static int apply_pages_purge(struct state *st, struct change *c, struct err *err)
{
	struct db *d = state_db(st);
	int64_t before = 0, after = 0;
	struct db_rows *q;
	int rc = db_int(d, &before, DB_free_pages, err, "");

	if (rc < 0)
		return rc;
	rc = db_start(d, &q, DB_vacuum_some, err, "");
	while (!rc && (rc = db_next(d, q, err)) > 0)
		rc = 0;
	if (!rc && db_int(d, &after, DB_free_pages, err, "") < 0)
		rc = err->code;
	c->res.removed = before > after ? (uint64_t)(before - after) : 0;
	c->res.durable = (uint64_t)after;
	c->res.more = after > 0 && c->res.removed;
	return rc;
}

const struct change_ops change_purge_pages = { .name = "purge_pages", .apply = apply_pages_purge };
