/* SPDX-License-Identifier: Apache-2.0 */
/* model_lines.c: lines of JSON about what journals cannot contain: experiments, data sets, logged models, the registry.
 * Each becomes requests to the store, by MLflow's own routes, after all runs are imported. */
#include "web/cli/import/importer.h"

#include <stdlib.h>

#define API "/api/2.0/mlflow/"

/* Queues requests for the object; it is stored as text until then. */
static int queue_json_request(struct importer *b, enum importer_phase phase, importer_fn *fn, json_t *object,
			      struct err *err)
{
	char *printed = json_dumps(object, JSON_COMPACT), *kept = printed ? arena_strdup(b->kept, printed) : NULL;

	free(printed);
	return importer_then(b, phase, fn, kept, err);
}

static int parse_queued_json(json_t **ret, const char *printed, struct err *err)
{
	*ret = json_loads(printed, 0, NULL);
	return *ret ? 0 : err_nomem(err, NULL);
}

static int post_to_mlflow(struct importer_store *s, const char *route, json_t *body, json_t **ret, struct err *err)
{
	char target[128];

	snprintf(target, sizeof(target), API "%s", route);
	return cli_send(s->source, &(struct cli_request){ .method = "POST", .target = target, .body = body }, ret, err);
}

/* A request about a run that an earlier import has deleted is no error: its data are stored already. */
static int post_about_run(struct importer_store *s, const char *route, json_t *body, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = post_to_mlflow(s, route, body, NULL, &why);

	if (rc == ERR_USAGE && strstr(why.text, "'active'"))
		return 0;
	return rc ? err_set(err, rc, "%s", why.text) : 0;
}

struct mlflow_item {
	const char *route, *name, *version; /* version NULL: none */
};

/* GET of an item by name and perhaps version; ERR_NOENT when missing. */
static int find_mlflow_item(struct importer_store *s, const struct mlflow_item *item, json_t **ret, struct err *err)
{
	struct buf target;
	int rc;

	buf_init(&target, 1 << 16);
	buf_addf(&target, API "%s", item->route);
	source_arg(&target, strstr(item->route, "experiments") ? "experiment_name" : "name", item->name);
	source_arg(&target, "version", item->version);
	rc = cli_send(s->source,
		      &(struct cli_request){ .method = "GET", .target = buf_failed(&target) ? NULL : target.data }, ret,
		      err);
	buf_done(&target);
	return rc;
}

/* Converts {KEY: VALUE} to [{"key": KEY, "value": TEXT}]. */
static json_t *make_pair_list(json_t *object)
{
	json_t *list = json_array(), *value;
	const char *key;

	json_object_foreach(object, key, value) {
		char *text = content_text(value);

		json_array_append_new(list, json_pack("{s:s, s:s}", "key", key, "value", text ? text : ""));
		free(text);
	}
	return list;
}

/* --- experiments ------------------------------------------------------------------------------------------------ */

static int create_experiment(struct importer_store *s, const char *name, char id[32], bool *ret_deleted,
			     struct err *err)
{
	json_t *found = NULL, *e;
	int rc = find_mlflow_item(s, &(struct mlflow_item){ "experiments/get-by-name", name, NULL }, &found, err);

	*ret_deleted = false;
	if (rc == ERR_NOENT)
		rc = post_to_mlflow(s, "experiments/create", json_pack("{s:s}", "name", name), &found, err);
	e = json_object_get(found, "experiment");
	snprintf(id, 32, "%s", cli_text(e ? e : found, "experiment_id"));
	*ret_deleted = e && !strcmp(cli_text(e, "lifecycle_stage"), "deleted");
	json_decref(found);
	return rc;
}

/* Creates the experiment with its tags; deletes it if the original is deleted. */
static int import_experiment(struct importer_store *s, void *arg, struct err *err)
{
	json_t *e, *tags = NULL, *tag;
	bool deleted;
	char id[32];
	size_t i;
	int rc = parse_queued_json(&e, arg, err);

	rc = rc ? rc : create_experiment(s, cli_text(e, "name"), id, &deleted, err);
	if (!rc && !deleted) {
		tags = make_pair_list(json_object_get(e, "tags"));
		json_array_foreach(tags, i, tag) {
			json_object_set_new(tag, "experiment_id", json_string(id));
			if (!rc)
				rc = post_to_mlflow(s, "experiments/set-experiment-tag", json_incref(tag), NULL, err);
		}
		if (!rc && json_is_true(json_object_get(e, "deleted")))
			rc = post_to_mlflow(s, "experiments/delete", json_pack("{s:s}", "experiment_id", id), NULL,
					    err);
	}
	json_decref(tags);
	json_decref(e);
	return rc;
}

int model_line_experiment(struct importer *b, json_t *experiment, struct err *err)
{
	if (b->target->experiment)
		return 0;
	return queue_json_request(b, IMPORT_DELETIONS, import_experiment, experiment, err);
}

/* --- inputs and outputs of runs ----------------------------------------------------------------------------------- */

static int log_run_input(struct importer_store *s, void *arg, struct err *err)
{
	json_t *body = NULL;
	int rc = parse_queued_json(&body, arg, err);

	return rc ? rc : post_about_run(s, "runs/log-inputs", body, err);
}

static int log_run_output(struct importer_store *s, void *arg, struct err *err)
{
	json_t *body = NULL;
	int rc = parse_queued_json(&body, arg, err);

	return rc ? rc : post_about_run(s, "runs/outputs", body, err);
}

int model_line_input(struct importer *b, const char *run, json_t *input, struct err *err)
{
	json_t *dataset = json_copy(input), *body;
	int rc;

	json_object_del(dataset, "tags");
	body = json_pack("{s:s, s:[{s:o, s:o}]}", "run_id", run, "datasets", "dataset", dataset, "tags",
			 make_pair_list(json_object_get(input, "tags")));
	rc = queue_json_request(b, IMPORT_FILES, log_run_input, body, err);
	json_decref(body);
	return rc;
}

int model_line_output(struct importer *b, const char *run, const char *model, int64_t step, struct err *err)
{
	json_t *body = json_pack("{s:s, s:[{s:s, s:I}]}", "run_id", run, "models", "model_id", model, "step",
				 (json_int_t)step);
	int rc = queue_json_request(b, IMPORT_OUTPUTS, log_run_output, body, err);

	json_decref(body);
	return rc;
}

/* --- logged models ---------------------------------------------------------------------------------------------- */

static int copy_model_files(struct importer_store *s, json_t *m, const char *experiment, struct err *err)
{
	char base[200];

	if (!*cli_text(m, "files"))
		return 0;
	snprintf(base, sizeof(base), "/api/2.0/mlflow-artifacts/artifacts/%s/models/%.40s/artifacts", experiment,
		 cli_text(m, "model_id"));
	return importer_model_files(s, base, cli_text(m, "files"), err);
}

/* Logs a point [RUN, KEY, STEP, TIME, NUMBER, DATASET, DIGEST] of a model, which its run has as well. */
static int log_model_point(struct importer_store *s, const char *model, json_t *point, struct err *err)
{
	const char *run, *key, *dataset = json_string_value(json_array_get(point, 5)),
			       *digest = json_string_value(json_array_get(point, 6));
	json_t *number, *body;
	json_int_t step;
	double at_s;

	if (json_unpack(point, "[s, s, I, F, o]", &run, &key, &step, &at_s, &number) || !content_is_number(number))
		return err_set(err, ERR_CORRUPT, "a point: expected [run, key, step, time, number]");
	body = json_pack("{s:s, s:s, s:s, s:I, s:I, s:O}", "run_id", run, "key", key, "model_id", model, "step", step,
			 "timestamp", (json_int_t)llround(at_s * 1e3), "value", number);
	if (dataset && digest) {
		json_object_set_new(body, "dataset_name", json_string(dataset));
		json_object_set_new(body, "dataset_digest", json_string(digest));
	}
	return post_about_run(s, "runs/log-metric", body, err);
}

/* Sets the status of a model, and its points. */
static int finish_logged_model(struct importer_store *s, json_t *m, struct err *err)
{
	const char *status = *cli_text(m, "status") ? cli_text(m, "status") : "LOGGED_MODEL_READY";
	char target[128];
	json_t *point;
	size_t i;
	int rc;

	snprintf(target, sizeof(target), API "logged-models/%.40s", cli_text(m, "model_id"));
	rc = cli_send(s->source,
		      &(struct cli_request){
			      .method = "PATCH", .target = target, .body = json_pack("{s:s}", "status", status) },
		      NULL, err);
	if (rc == ERR_NOENT && json_is_true(json_object_get(m, "deleted")))
		return 0; /* stored by an earlier import */
	json_array_foreach(json_object_get(m, "points"), i, point)
		if (!rc)
			rc = log_model_point(s, cli_text(m, "model_id"), point, err);
	if (!rc && json_is_true(json_object_get(m, "deleted")))
		rc = cli_send(s->source, &(struct cli_request){ .method = "DELETE", .target = target }, NULL, err);
	return rc;
}

/* Creates the model with its own id unless it exists, then its files, status and points. */
static int import_logged_model(struct importer_store *s, void *arg, struct err *err)
{
	json_t *m = NULL, *got = NULL, *body;
	bool deleted = false;
	char experiment[32];
	int rc = parse_queued_json(&m, arg, err);

	rc = rc ? rc : create_experiment(s, cli_text(m, "experiment"), experiment, &deleted, err);
	json_object_del(json_object_get(m, "tags"), "mlflow.modelVersions"); /* the registration of versions sets it */
	body = rc ? NULL
		  : json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "model_id", cli_text(m, "model_id"),
			      "experiment_id", experiment, "name", cli_text(m, "name"), "model_type",
			      cli_text(m, "model_type"), "source_run_id", cli_text(m, "source_run_id"), "params",
			      make_pair_list(json_object_get(m, "params")), "tags",
			      make_pair_list(json_object_get(m, "tags")));
	rc = rc ? rc : post_to_mlflow(s, "logged-models", body, &got, err);
	if (!rc && !json_is_true(json_object_get(m, "deleted")))
		rc = copy_model_files(s, m, experiment, err);
	rc = rc ? rc : finish_logged_model(s, m, err);
	if (rc)
		err_prefix(err, "logged model %s", cli_text(m, "model_id"));
	json_decref(got);
	json_decref(m);
	return rc;
}

int model_line_logged(struct importer *b, json_t *model, struct err *err)
{
	if (b->target->experiment)
		json_object_set_new(model, "experiment", json_string(b->target->experiment));
	return queue_json_request(b, IMPORT_MODELS, import_logged_model, model, err);
}

/* --- the registry ----------------------------------------------------------------------------------------------- */

/* Location of the run's files in this store, followed by the path. */
static int format_version_source(struct importer_store *s, json_t *version, struct buf *to, struct err *err)
{
	const char *run = cli_text(version, "run_id"), *path = json_string_value(json_object_get(version, "path"));
	char target[128];
	json_t *got = NULL;
	int rc;

	if (!*run || !path) {
		buf_adds(to, cli_text(version, "source"));
		return 0;
	}
	snprintf(target, sizeof(target), API "runs/get?run_id=%.32s", run);
	rc = cli_send(s->source, &(struct cli_request){ .method = "GET", .target = target }, &got, err);
	buf_adds(to, cli_text(json_object_get(json_object_get(got, "run"), "info"), "artifact_uri"));
	if (*path)
		buf_addf(to, "/%s", path);
	json_decref(got);
	return rc;
}

static int request_version_delete(struct importer_store *s, const char *name, const char *number, struct err *err)
{
	return cli_send(s->source,
			&(struct cli_request){ .method = "DELETE",
					       .target = API "model-versions/delete",
					       .body = json_pack("{s:s, s:s}", "name", name, "version", number) },
			NULL, err);
}

/* Creates versions until one has the wanted number; versions below it were deleted in the original. Returns 1 if it has
 * the number, 0 if the number is taken, or negative. */
static int create_version_number(struct importer_store *s, const char *name, json_t *body, long wanted, struct err *err)
{
	long number = -1;
	int rc = 0;

	while (!rc && number < wanted) {
		json_t *made = NULL;
		char got[24] = "";

		rc = post_to_mlflow(s, "model-versions/create", json_incref(body), &made, err);
		snprintf(got, sizeof(got), "%.20s", cli_text(json_object_get(made, "model_version"), "version"));
		number = strtol(got, NULL, 10);
		if (!rc && number != wanted)
			rc = request_version_delete(s, name, got, err);
		json_decref(made);
	}
	return rc ? rc : number == wanted;
}

static int request_version_stage(struct importer_store *s, const char *name, json_t *v, struct err *err)
{
	const char *stage = cli_text(v, "stage");

	if (!*stage || !strcmp(stage, "None"))
		return 0;
	return post_to_mlflow(
		s, "model-versions/transition-stage",
		json_pack("{s:s, s:s, s:s}", "name", name, "version", cli_text(v, "version"), "stage", stage), NULL,
		err);
}

/* Creates a version unless it exists, with its number and stage. */
static int import_version(struct importer_store *s, const char *name, json_t *v, struct err *err)
{
	struct buf source;
	struct err why = ERR_INIT;
	json_t *body, *found = NULL;
	int rc = find_mlflow_item(s, &(struct mlflow_item){ "model-versions/get", name, cli_text(v, "version") },
				  &found, NULL);

	json_decref(found);
	if (rc != ERR_NOENT)
		return 0; /* exists already */
	buf_init(&source, 1 << 16);
	rc = format_version_source(s, v, &source, err);
	body = json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", name, "source", source.len ? source.data : "", "run_id",
			 cli_text(v, "run_id"), "description", cli_text(v, "description"), "tags",
			 make_pair_list(json_object_get(v, "tags")));
	if (!rc && !strncmp(source.data ? source.data : "", "models:/m-", 10)) /* MLflow requires the id as well */
		json_object_set_new(body, "model_id", json_string(source.data + 8));
	rc = rc ? rc : create_version_number(s, name, body, strtol(cli_text(v, "version"), NULL, 10), &why);
	if (rc > 0)
		rc = request_version_stage(s, name, v, err);
	else if (why.code)
		importer_leave_out(s->of, "version %s of model %s: %s", cli_text(v, "version"), name, why.text);
	else if (!rc)
		importer_leave_out(s->of, "version %s of model %s: its number is already in use",
				   cli_text(v, "version"), name);
	json_decref(body);
	buf_done(&source);
	return why.code ? 0 : rc;
}

static bool has_alias(json_t *model, const char *alias)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(model, "aliases"), i, one)
		if (!strcmp(cli_text(one, "alias"), alias))
			return true;
	return false;
}

/* Sets the aliases that the stored model lacks. */
static int set_model_aliases(struct importer_store *s, json_t *m, json_t *stored, struct err *err)
{
	const char *alias;
	json_t *version;
	int rc = 0;

	json_object_foreach(json_object_get(m, "aliases"), alias, version)
		if (!rc && !has_alias(stored, alias))
			rc = post_to_mlflow(s, "registered-models/alias",
					    json_pack("{s:s, s:s, s:O}", "name", cli_text(m, "name"), "alias", alias,
						      "version", version),
					    NULL, err);
	return rc;
}

/* Finds the model; creates it with its description and tags. */
static int create_registered_model(struct importer_store *s, json_t *m, json_t **ret, struct err *err)
{
	int rc = find_mlflow_item(s, &(struct mlflow_item){ "registered-models/get", cli_text(m, "name"), NULL }, ret,
				  err);

	if (rc != ERR_NOENT)
		return rc;
	return post_to_mlflow(s, "registered-models/create",
			      json_pack("{s:s, s:s, s:o}", "name", cli_text(m, "name"), "description",
					cli_text(m, "description"), "tags", make_pair_list(json_object_get(m, "tags"))),
			      ret, err);
}

static int import_registered_model(struct importer_store *s, void *arg, struct err *err)
{
	json_t *m = NULL, *stored = NULL, *v;
	size_t i;
	int rc = parse_queued_json(&m, arg, err);

	rc = rc ? rc : create_registered_model(s, m, &stored, err);
	json_array_foreach(json_object_get(m, "versions"), i, v)
		if (!rc)
			rc = import_version(s, cli_text(m, "name"), v, err);
	rc = rc ? rc : set_model_aliases(s, m, json_object_get(stored, "registered_model"), err);
	json_decref(stored);
	json_decref(m);
	return rc;
}

int model_line_registered(struct importer *b, json_t *model, struct err *err)
{
	return queue_json_request(b, IMPORT_REGISTRY, import_registered_model, model, err);
}
