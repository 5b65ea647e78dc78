/* SPDX-License-Identifier: Apache-2.0 */
/* import_mlflow_db.c: reads MLflow's SQLite store. */

#include "web/cli/import/import_mlflow.h"
#include "web/store/db/foreign.h"

struct mlflow_db {
	struct foreign *db;
	struct importer *b;
	char store_folder[PATH_MAX]; /* folder of the file */
	bool inputs;		     /* the tables of inputs exist */
	struct map *places;	     /* id of a run → its artifact_uri, in the arena */
};

/* Counts what a damaged file holds as left out; rows before the damage are kept. Returns 0, or the code if the import
 * cannot continue. */
static int skip_damaged_rows(struct mlflow_db *m, int rc, struct err *why, const char *what, struct err *err)
{
	if (rc >= 0)
		return 0;
	err_prefix(why, "%s", what);
	return importer_skip(m->b, rc, why, err);
}

/* Reads all rows of a query as [{"key","value"}]. */
static int read_tag_list(struct mlflow_db *m, struct foreign_question t, json_t **ret, struct err *err)
{
	json_t *list = json_array();
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &t, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		mlflow_pair(list, foreign_str(r, FOREIGN_ml_tags_key), foreign_str(r, FOREIGN_ml_tags_value));
		rc = 0;
	}
	*ret = list;
	return skip_damaged_rows(m, rc, &why, "tags", err);
}

/* --- runs ------------------------------------------------------------------------------------------------------- */

/* SQLite stores texts in columns of numbers; read as numbers they would be 0. */
static void add_db_point(struct mlflow_db *m, struct importer_run *run, struct foreign_rows *r)
{
	bool nan = foreign_i64(r, FOREIGN_ml_metrics_is_nan);
	const char *key = foreign_str(r, FOREIGN_ml_metrics_key);

	if (!(nan || foreign_number(r, FOREIGN_ml_metrics_value)) || !foreign_number(r, FOREIGN_ml_metrics_step) ||
	    !foreign_number(r, FOREIGN_ml_metrics_timestamp))
		importer_leave_out(m->b, "a point of %.200s in run %s: its value, time or step is not a number", key,
				   run->id);
	else
		importer_point(run, key, foreign_i64(r, FOREIGN_ml_metrics_step),
			       foreign_f64(r, FOREIGN_ml_metrics_timestamp) / 1e3,
			       nan ? NAN : foreign_f64(r, FOREIGN_ml_metrics_value));
}

static int read_db_points(struct mlflow_db *m, struct importer_run *run, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_metrics, run->id, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		add_db_point(m, run, r);
		rc = 0;
	}
	return skip_damaged_rows(m, rc, &why, "points of a run", err);
}

static int read_db_pairs(struct mlflow_db *m, struct importer_run *run, enum foreign_query q,
			 void (*take)(struct importer_run *run, const char *key, const char *value), struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ q, run->id, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		take(run, foreign_str(r, FOREIGN_ml_tags_key), foreign_str(r, FOREIGN_ml_tags_value));
		rc = 0;
	}
	return skip_damaged_rows(m, rc, &why, "params or tags of a run", err);
}

static json_t *column_or_null(struct foreign_rows *r, enum foreign_column column)
{
	return foreign_null(r, column) ? json_null() : json_string(foreign_str(r, column));
}

static json_t *make_dataset_json(struct foreign_rows *r, json_t *tags)
{
	json_t *data = json_pack("{s:s, s:s, s:s, s:s}", "name", foreign_str(r, FOREIGN_ml_inputs_name), "digest",
				 foreign_str(r, FOREIGN_ml_inputs_digest), "source_type",
				 foreign_str(r, FOREIGN_ml_inputs_source_type), "source",
				 foreign_str(r, FOREIGN_ml_inputs_source));

	json_object_set_new(data, "schema", column_or_null(r, FOREIGN_ml_inputs_schema));
	json_object_set_new(data, "profile", column_or_null(r, FOREIGN_ml_inputs_profile));
	return json_pack("{s:o, s:O}", "dataset", data, "tags", tags);
}

static int read_db_inputs(struct mlflow_db *m, const char *run, struct err *err)
{
	json_t *list = json_array(), *tags;
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_inputs, run, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		rc = read_tag_list(m,
				   (struct foreign_question){ FOREIGN_ml_input_tags,
							      foreign_str(r, FOREIGN_ml_inputs_input_uuid), 0 },
				   &tags, &why);
		json_array_append_new(list, make_dataset_json(r, tags));
		json_decref(tags);
	}
	rc = skip_damaged_rows(m, rc, &why, "data sets of a run", err);
	if (!rc && json_array_size(list))
		return mlflow_inputs(m->b, json_pack("{s:s, s:o}", "run_id", run, "datasets", list), err);
	json_decref(list);
	return rc;
}

/* Queues the requests to the store for a run. */
static int queue_run_requests(struct mlflow_db *m, struct foreign_rows *r, const char *id, struct err *err)
{
	const char *uri = foreign_str(r, FOREIGN_ml_runs_artifact_uri);
	char **place = map_put(m->places, id, 32);
	int rc;

	if (place)
		*place = arena_strdup(m->b->kept, uri);
	rc = mlflow_files(m->b, id, uri, m->store_folder, err);
	if (!rc && m->inputs)
		rc = read_db_inputs(m, id, err);
	if (!rc && !strcmp(foreign_str(r, FOREIGN_ml_runs_lifecycle_stage), "deleted"))
		rc = importer_delete_run(m->b, id, err);
	return rc;
}

/* Imports the run of a row with its points, params and tags. */
static int read_db_run(struct mlflow_db *m, struct foreign_rows *r, struct err *err)
{
	enum event_status status =
		mlflow_status(m->b, foreign_str(r, FOREIGN_ml_runs_status), foreign_str(r, FOREIGN_ml_runs_run_uuid));
	struct importer_run run;
	const struct importer_run_head head = { foreign_str(r, FOREIGN_ml_runs_run_uuid),
						foreign_str(r, FOREIGN_ml_runs_experiment),
						foreign_str(r, FOREIGN_ml_runs_name),
						(double)foreign_i64(r, FOREIGN_ml_runs_start_time) / 1e3 };
	struct err why = ERR_INIT;
	int rc = importer_run_begin(&run, m->b, &head, &why);

	if (rc) {
		importer_run_drop(&run);
		return importer_skip(m->b, rc, &why, err);
	}
	rc = read_db_points(m, &run, err);
	rc = rc ? rc : read_db_pairs(m, &run, FOREIGN_ml_params, importer_param, err);
	rc = rc ? rc : read_db_pairs(m, &run, FOREIGN_ml_tags, mlflow_tag, err);
	if (rc) {
		importer_run_drop(&run);
		return rc;
	}
	importer_status(&run, status, (double)foreign_i64(r, FOREIGN_ml_runs_end_time) / 1e3, "");
	rc = importer_run_end(&run, err);
	return rc ? rc : queue_run_requests(m, r, run.id, err);
}

static int read_db_runs(struct mlflow_db *m, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_runs, NULL, 0 }, err), next;

	if (rc)
		return rc;
	while (!rc && (next = foreign_next(r, &why)) > 0)
		rc = read_db_run(m, r, err);
	if (rc || next >= 0)
		return rc;
	if (!m->b->runs) /* nothing can be read */
		return err_set(err, next, "%s", why.text);
	return skip_damaged_rows(m, next, &why, "further runs", err);
}

/* --- logged models ---------------------------------------------------------------------------------------------- */

/* Reads the points of a model as bodies of runs/log-metric. */
static int read_model_metrics(struct mlflow_db *m, const char *model, json_t *ret, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_logged_metrics, model, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		json_int_t at = foreign_i64(r, FOREIGN_ml_logged_metrics_timestamp);
		json_t *one = json_pack("{s:s, s:s, s:s, s:I, s:I}", "run_id",
					foreign_str(r, FOREIGN_ml_logged_metrics_run), "key",
					foreign_str(r, FOREIGN_ml_logged_metrics_key), "model_id", model,
					"timestamp", at, "step",
					(json_int_t)foreign_i64(r, FOREIGN_ml_logged_metrics_step));

		json_object_set_new(one, "value", mlflow_number(foreign_f64(r, FOREIGN_ml_logged_metrics_value)));
		if (*foreign_str(r, FOREIGN_ml_logged_metrics_dataset_name)) {
			json_object_set_new(one, "dataset_name",
					    mlflow_text(foreign_str(r, FOREIGN_ml_logged_metrics_dataset_name)));
			json_object_set_new(one, "dataset_digest",
					    mlflow_text(foreign_str(r, FOREIGN_ml_logged_metrics_dataset_digest)));
		}
		json_array_append_new(ret, one);
		rc = 0;
	}
	return skip_damaged_rows(m, rc, &why, "points of a logged model", err);
}

/* Queues the logged model of a row. */
static int read_db_model(struct mlflow_db *m, struct foreign_rows *r, struct err *err)
{
	static const char *const states[] = { "LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY",
					      "LOGGED_MODEL_UPLOAD_FAILED" };
	const char *id = foreign_str(r, FOREIGN_ml_logged_model_id);
	int64_t status = foreign_i64(r, FOREIGN_ml_logged_status);
	json_t *tags, *params, *metrics = json_array();
	int rc = read_tag_list(m, (struct foreign_question){ FOREIGN_ml_logged_tags, id, 0 }, &tags, err);

	rc = rc ? rc : read_model_metrics(m, id, metrics, err);
	if (read_tag_list(m, (struct foreign_question){ FOREIGN_ml_logged_params, id, 0 }, &params, err))
		rc = err->code;
	if (!rc)
		rc = mlflow_logged_model(m->b, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:O, s:O, s:O}",
			"model_id", id, "experiment", foreign_str(r, FOREIGN_ml_logged_experiment), "name",
			foreign_str(r, FOREIGN_ml_logged_name), "model_type", foreign_str(r, FOREIGN_ml_logged_type),
			"source_run_id", foreign_str(r, FOREIGN_ml_logged_run), "status",
			states[status >= 1 && status <= 3 ? status - 1 : 1], "deleted",
			!strcmp(foreign_str(r, FOREIGN_ml_logged_stage), "deleted"), "uri",
			foreign_str(r, FOREIGN_ml_logged_uri), "store", m->store_folder, "params", params, "tags", tags,
			"metrics", metrics), err);
	json_decref(tags);
	json_decref(params);
	json_decref(metrics);
	return rc;
}

/* Queues all logged models, then what runs made of them. */
static int read_db_models(struct mlflow_db *m, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_logged, NULL, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0)
		rc = read_db_model(m, r, err);
	if (!rc)
		rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_outputs, NULL, 0 }, &why);
	while (!rc && (rc = foreign_next(r, &why)) > 0)
		rc = mlflow_outputs(m->b, json_pack("{s:s, s:[{s:s, s:I}]}", "run_id",
						    foreign_str(r, FOREIGN_ml_outputs_run), "models", "model_id",
						    foreign_str(r, FOREIGN_ml_outputs_model), "step",
						    (json_int_t)foreign_i64(r, FOREIGN_ml_outputs_step)), err);
	return why.code ? skip_damaged_rows(m, rc, &why, "logged models", err) : rc;
}

/* --- experiments, the registry ---------------------------------------------------------------------------------- */

static int read_db_experiments(struct mlflow_db *m, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_experiments, NULL, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		bool deleted = !strcmp(foreign_str(r, FOREIGN_ml_experiments_lifecycle_stage), "deleted");
		json_t *tags;

		rc = read_tag_list(m,
				   (struct foreign_question){ FOREIGN_ml_experiment_tags, NULL,
							      foreign_i64(r, FOREIGN_ml_experiments_experiment_id) },
				   &tags, err);
		if (!rc)
			rc = mlflow_experiment(m->b, json_pack("{s:s, s:b, s:O}", "name",
							       foreign_str(r, FOREIGN_ml_experiments_name), "deleted",
							       deleted, "tags", tags), err);
		json_decref(tags);
	}
	return why.code ? skip_damaged_rows(m, rc, &why, "experiments", err) : rc;
}

/* A version in the form of mlflow_registered; NULL: it was deleted. */
static json_t *make_version_json(struct mlflow_db *m, struct foreign_rows *r, json_t *tags)
{
	const char *run = foreign_str(r, FOREIGN_ml_versions_run_id);
	const char *source = foreign_str(r, FOREIGN_ml_versions_source);
	char **place = strlen(run) == 32 ? map_get(m->places, run, 32) : NULL;
	const char *path = place && *place ? mlflow_below(source, *place) : NULL;
	char number[24];

	if (!strcmp(foreign_str(r, FOREIGN_ml_versions_stage), "Deleted_Internal"))
		return NULL;
	snprintf(number, sizeof(number), "%lld", (long long)foreign_i64(r, FOREIGN_ml_versions_version));
	return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s, s:O}", "version", number, "description",
			 foreign_str(r, FOREIGN_ml_versions_description), "stage",
			 foreign_str(r, FOREIGN_ml_versions_stage), "run_id", run, "path", path, "source", source,
			 "tags", tags);
}

static int read_db_versions(struct mlflow_db *m, const char *name, json_t *ret, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_versions, name, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		json_t *tags, *version;

		rc = read_tag_list(m,
				   (struct foreign_question){ FOREIGN_ml_version_tags, name,
							      foreign_i64(r, FOREIGN_ml_versions_version) },
				   &tags, err);
		version = rc ? NULL : make_version_json(m, r, tags);
		if (version)
			json_array_append_new(ret, version);
		json_decref(tags);
	}
	return why.code ? skip_damaged_rows(m, rc, &why, "versions of a model", err) : rc;
}

static int read_db_aliases(struct mlflow_db *m, const char *name, json_t *ret, struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_aliases, name, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		json_object_set_new(ret, foreign_str(r, FOREIGN_ml_aliases_alias),
				    json_string(foreign_str(r, FOREIGN_ml_aliases_version)));
		rc = 0;
	}
	return why.code ? skip_damaged_rows(m, rc, &why, "aliases of a model", err) : rc;
}

/* Reads all registered models with their versions and aliases. */
static int read_db_registry(struct mlflow_db *m, struct err *err)
{
	bool with_aliases = foreign_has(m->db, "registered_model_aliases");
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc = foreign_start(m->db, &r, &(struct foreign_question){ FOREIGN_ml_registered, NULL, 0 }, &why);

	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		const char *name = foreign_str(r, FOREIGN_ml_registered_name);
		json_t *tags, *versions = json_array(), *aliases = json_object();

		rc = read_tag_list(m, (struct foreign_question){ FOREIGN_ml_registered_tags, name, 0 }, &tags, err);
		rc = rc ? rc : read_db_versions(m, name, versions, err);
		rc = rc || !with_aliases ? rc : read_db_aliases(m, name, aliases, err);
		if (!rc)
			rc = mlflow_registered(m->b, json_pack("{s:s, s:s, s:O, s:O, s:O}", "name", name, "description",
							       foreign_str(r, FOREIGN_ml_registered_description),
							       "tags", tags, "versions", versions, "aliases", aliases),
					       err);
		json_decref(tags);
		json_decref(versions);
		json_decref(aliases);
	}
	return why.code ? skip_damaged_rows(m, rc, &why, "registered models", err) : rc;
}

/* --- the store -------------------------------------------------------------------------------------------------- */

/* Counts items that cannot be imported. */
static int count_lost_items(struct mlflow_db *m, const char *table, enum foreign_query q, const char *what,
			    struct err *err)
{
	struct err why = ERR_INIT;
	struct foreign_rows *r;
	int rc;

	if (!foreign_has(m->db, table))
		return 0;
	rc = foreign_start(m->db, &r, &(struct foreign_question){ q, NULL, 0 }, &why);
	while (!rc && (rc = foreign_next(r, &why)) > 0) {
		for (int64_t n = foreign_i64(r, FOREIGN_ml_traces_lost); n > 0; n--)
			importer_leave_out(m->b, "%s", what);
		rc = 0;
	}
	return why.code ? skip_damaged_rows(m, rc, &why, "items that cannot be imported", err) : rc;
}

int mlflow_db_read(struct importer *b, const char *path, struct err *err)
{
	struct mlflow_db m = { .b = b };
	const char *slash = strrchr(path, '/');
	int rc = foreign_open(&m.db, path, err);

	if (rc)
		return rc;
	snprintf(m.store_folder, sizeof(m.store_folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	m.places = map_new(sizeof(char *));
	if (!m.places)
		rc = err_nomem(err, NULL);
	else if (!foreign_has(m.db, "runs") || !foreign_has(m.db, "metrics"))
		rc = err_set(err, ERR_USAGE, "%s: a SQLite file without MLflow's table runs", path);
	m.inputs = foreign_has(m.db, "inputs");
	rc = rc ? rc : read_db_runs(&m, err);
	if (!rc && foreign_has(m.db, "logged_models"))
		rc = read_db_models(&m, err);
	rc = rc ? rc : read_db_experiments(&m, err);
	if (!rc && foreign_has(m.db, "registered_models"))
		rc = read_db_registry(&m, err);
	rc = rc ? rc : count_lost_items(&m, "trace_info", FOREIGN_ml_traces, "a trace", err);
	map_free(m.places);
	foreign_close(m.db);
	return rc;
}
