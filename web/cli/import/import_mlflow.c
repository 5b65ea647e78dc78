/* SPDX-License-Identifier: Apache-2.0 */
/* import_mlflow.c: requests to the store, by MLflow's own routes, after MLflow's runs are imported. */
#include "web/cli/import/import_mlflow.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "tracker/base/utf8.h"

#define API "/api/2.0/mlflow/"

static const char *json_text_of(json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

json_t *mlflow_text(const char *text)
{
	json_t *to = json_string(text);
	size_t n = strlen(text);
	char *copy = to ? NULL : malloc(3 * n + 1);

	if (copy) {
		utf8_copy(copy, 3 * n + 1, text, n, NULL);
		to = json_string(copy);
	}
	free(copy);
	return to;
}

json_t *mlflow_number(double v)
{
	return isfinite(v) ? json_real(v) : json_string(isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

void mlflow_pair(json_t *list, const char *key, const char *value)
{
	json_array_append_new(list, json_pack("{s:o, s:o}", "key", mlflow_text(key), "value", mlflow_text(value)));
}

enum event_status mlflow_status(struct importer *b, const char *word, const char *run)
{
	static const struct {
		const char *word;
		enum event_status status;
	} words[] = { { "RUNNING", EVENT_RUNNING }, { "SCHEDULED", EVENT_SCHEDULED }, { "FINISHED", EVENT_FINISHED },
		      { "FAILED", EVENT_FAILED },   { "KILLED", EVENT_KILLED },	      { "1", EVENT_RUNNING },
		      { "2", EVENT_SCHEDULED },	    { "3", EVENT_FINISHED },	      { "4", EVENT_FAILED },
		      { "5", EVENT_KILLED } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].word, word))
			return words[i].status;
	importer_leave_out(b, "the status of run %s: unknown word '%.40s'", run, word);
	return EVENT_FINISHED;
}

void mlflow_tag(struct importer_run *run, const char *key, const char *value)
{
	importer_tag(run, key, value);
	if (!strcmp(key, "mlflow.note.content"))
		importer_note(run, value);
}

/* Queues a request; the document is stored as text until then. */
static int queue_json_request(struct importer *b, importer_fn *fn, json_t *document, struct err *err)
{
	char *printed = document ? json_dumps(document, JSON_COMPACT) : NULL, *kept;

	json_decref(document);
	if (!printed) {
		importer_leave_out(b, "an experiment, model or data set whose name is not UTF-8");
		return 0;
	}
	kept = arena_strdup(b->kept, printed);
	free(printed);
	return importer_then(b, fn, kept, err);
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
	snprintf(id, 32, "%s", json_text_of(e ? e : found, "experiment_id"));
	*ret_deleted = e && !strcmp(json_text_of(e, "lifecycle_stage"), "deleted");
	json_decref(found);
	return rc;
}

/* Creates the experiment with its tags; deletes it if the original is deleted. */
static int import_experiment(struct importer_store *s, void *arg, struct err *err)
{
	json_t *e, *tag;
	bool deleted;
	char id[32];
	size_t i;
	int rc = parse_queued_json(&e, arg, err);

	rc = rc ? rc : create_experiment(s, json_text_of(e, "name"), id, &deleted, err);
	if (!rc && !deleted) {
		json_array_foreach(json_object_get(e, "tags"), i, tag)
			if (!rc)
				rc = post_to_mlflow(s, "experiments/set-experiment-tag",
						    json_pack("{s:s, s:s, s:s}", "experiment_id", id, "key",
							      json_text_of(tag, "key"), "value",
							      json_text_of(tag, "value")),
						    NULL, err);
		if (!rc && json_is_true(json_object_get(e, "deleted")))
			rc = post_to_mlflow(s, "experiments/delete", json_pack("{s:s}", "experiment_id", id), NULL,
					    err);
	}
	json_decref(e);
	return rc;
}

int mlflow_experiment(struct importer *b, json_t *experiment, struct err *err)
{
	if (!b->target->experiment)
		return queue_json_request(b, import_experiment, experiment, err);
	json_decref(experiment);
	return 0;
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static bool is_existing_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Decodes the percent-encoding of a file: URI. */
static void decode_file_path(char *to, size_t room, const char *uri)
{
	size_t n = 0;
	char hex[3] = "";

	for (; *uri && n + 1 < room; uri++) {
		char *end = hex;

		if (*uri == '%') {
			snprintf(hex, sizeof(hex), "%.2s", uri + 1);
			to[n] = (char)strtol(hex, &end, 16);
		}
		if (end == hex + 2)
			uri += 2;
		else
			to[n] = *uri;
		n++;
	}
	to[n] = 0;
}

/* Finds the folder of a run's files: the path itself, else the longest tail of it that exists next to the store. */
static bool find_artifact_folder(char *ret, size_t room, const char *path, const char *store_folder)
{
	static const char *const below[] = { "", "mlartifacts/", "mlruns/" };

	snprintf(ret, room, "%s", path);
	if (*path == '/' && is_existing_folder(ret))
		return true;
	for (const char *tail = path; tail; tail = strchr(tail, '/')) {
		tail += strspn(tail, "/");
		if (!strchr(tail, '/'))
			break; /* a name alone is no evidence */
		for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
			snprintf(ret, room, "%.2000s/%s%.1900s", store_folder, below[i], tail);
			if (is_existing_folder(ret))
				return true;
		}
	}
	return false;
}

static void cut_path_segments(char *path, int n)
{
	for (char *slash; n > 0 && (slash = strrchr(path, '/')); n--)
		*slash = 0;
}

/* Finds the folder of an artifact URI on this machine. Returns 1, 0 if it is missing, or -1 for another kind of
 * place. */
static int find_uri_folder(const char *uri, const char *store_folder, char *ret, size_t room)
{
	static const char artifacts[] = "mlflow-artifacts:";
	const char *at = uri, *colon = strstr(uri, ":/");
	char path[4096];

	if (!strncmp(uri, "file:", 5) || !strncmp(uri, artifacts, sizeof(artifacts) - 1)) {
		at = colon ? colon + 1 : strchr(uri, ':') + 1;
		at = strncmp(at, "//", 2) ? at : at + 2 + strcspn(at + 2, "/");
	} else if (colon && colon - uri > 1) {
		return -1;
	}
	decode_file_path(path, sizeof(path), at);
	return find_artifact_folder(ret, room, path, store_folder);
}

int mlflow_files(struct importer *b, const char *run, const char *uri, const char *store_folder, struct err *err)
{
	char parent[4096], folder[4096];
	int found = find_uri_folder(uri, store_folder, folder, sizeof(folder));

	if (found > 0)
		return importer_files(b, run, "", folder, err);
	if (found < 0) {
		importer_leave_out(b, "the files of a run stored at %.*s://…", (int)strcspn(uri, ":"), uri);
		return 0;
	}
	snprintf(parent, sizeof(parent), "%s", uri);
	cut_path_segments(parent, 2);
	if (find_uri_folder(parent, store_folder, folder, sizeof(folder)) > 0)
		return 0; /* the folder of its experiment exists, so the run has no files */
	importer_leave_out(b, "the files of a run, if any: their folder is not on this machine");
	return 0;
}

const char *mlflow_below(const char *source, const char *artifact_uri)
{
	size_t n = strlen(artifact_uri);

	while (n && artifact_uri[n - 1] == '/')
		n--;
	if (!strncmp(source, "runs:/", 6))
		return strchr(source + 6, '/') ? strchr(source + 6, '/') + 1 : NULL;
	return n && !strncmp(source, artifact_uri, n) && (source[n] == '/' || !source[n])
		       ? source + n + strspn(source + n, "/")
		       : NULL;
}

/* --- inputs ----------------------------------------------------------------------------------------------------- */

static int log_run_inputs(struct importer_store *s, void *arg, struct err *err)
{
	struct err why = ERR_INIT;
	json_t *body = NULL;
	int rc = parse_queued_json(&body, arg, err);

	rc = rc ? rc : post_to_mlflow(s, "runs/log-inputs", body, NULL, &why);
	if (rc == ERR_USAGE && strstr(why.text, "active")) /* the run is deleted already: a repeated import */
		return 0;
	return rc && why.code ? err_set(err, rc, "%s", why.text) : rc;
}

static int log_run_outputs(struct importer_store *s, void *arg, struct err *err)
{
	json_t *body = NULL;
	int rc = parse_queued_json(&body, arg, err);

	return rc ? rc : post_to_mlflow(s, "runs/outputs", body, NULL, err);
}

int mlflow_inputs(struct importer *b, json_t *body, struct err *err)
{
	return queue_json_request(b, log_run_inputs, body, err);
}

int mlflow_outputs(struct importer *b, json_t *body, struct err *err)
{
	char *text = json_dumps(body, JSON_COMPACT);
	char *kept = text ? arena_strdup(b->kept, text) : NULL;

	free(text);
	json_decref(body);
	return importer_then(b, log_run_outputs, kept, err);
}

/* --- logged models ---------------------------------------------------------------------------------------------- */

static int copy_model_files(struct importer_store *s, json_t *m, const char *experiment, struct err *err)
{
	const char *uri = json_text_of(m, "uri"), *id = json_text_of(m, "model_id");
	char folder[4096], base[200];
	int found = find_uri_folder(uri, json_text_of(m, "store"), folder, sizeof(folder));

	if (found <= 0) {
		importer_leave_out(s->of, "the files of model %s at %s%s", id, uri,
				   found ? "" : ": not on this machine");
		return 0;
	}
	snprintf(base, sizeof(base), "/api/2.0/mlflow-artifacts/artifacts/%s/models/%s/artifacts", experiment, id);
	return importer_model_files(s, base, folder, err);
}

/* Sets the status of a model, and its points, which its run has as well. */
static int finish_logged_model(struct importer_store *s, json_t *m, struct err *err)
{
	char target[128];
	json_t *metric;
	size_t i;
	int rc;

	snprintf(target, sizeof(target), API "logged-models/%.40s", json_text_of(m, "model_id"));
	rc = cli_send(s->source,
		      &(struct cli_request){ .method = "PATCH", .target = target,
					     .body = json_pack("{s:s}", "status", json_text_of(m, "status")) },
		      NULL, err);
	if (rc == ERR_NOENT && json_is_true(json_object_get(m, "deleted")))
		return 0; /* stored by an earlier import */
	json_array_foreach(json_object_get(m, "metrics"), i, metric)
		if (!rc)
			rc = post_to_mlflow(s, "runs/log-metric", json_incref(metric), NULL, err);
	if (!rc && json_is_true(json_object_get(m, "deleted")))
		rc = cli_send(s->source, &(struct cli_request){ .method = "DELETE", .target = target }, NULL, err);
	return rc;
}

/* Removes the tag that the registration of versions makes. */
static json_t *drop_versions_tag(json_t *tags)
{
	for (size_t i = json_array_size(tags); i-- > 0;)
		if (!strcmp(json_text_of(json_array_get(tags, i), "key"), "mlflow.modelVersions"))
			json_array_remove(tags, i);
	return tags;
}

/* Creates the model with its own id unless it exists, then its files, status and points. */
static int import_logged_model(struct importer_store *s, void *arg, struct err *err)
{
	json_t *m = NULL, *got = NULL, *body;
	bool deleted = false;
	char experiment[32];
	int rc = parse_queued_json(&m, arg, err);

	rc = rc ? rc : create_experiment(s, json_text_of(m, "experiment"), experiment, &deleted, err);
	body = json_pack("{s:s, s:s, s:s, s:s, s:s, s:O, s:O}", "model_id", json_text_of(m, "model_id"),
			 "experiment_id", experiment, "name", json_text_of(m, "name"), "model_type",
			 json_text_of(m, "model_type"), "source_run_id", json_text_of(m, "source_run_id"), "params",
			 json_object_get(m, "params"), "tags", drop_versions_tag(json_object_get(m, "tags")));
	if (rc)
		json_decref(body);
	else
		rc = post_to_mlflow(s, "logged-models", body, &got, err);
	if (!rc && !json_is_true(json_object_get(m, "deleted")))
		rc = copy_model_files(s, m, experiment, err);
	rc = rc ? rc : finish_logged_model(s, m, err);
	if (rc)
		err_prefix(err, "logged model %s", json_text_of(m, "model_id"));
	json_decref(got);
	json_decref(m);
	return rc;
}

int mlflow_logged_model(struct importer *b, json_t *model, struct err *err)
{
	if (b->target->experiment)
		json_object_set_new(model, "experiment", json_string(b->target->experiment));
	return queue_json_request(b, import_logged_model, model, err);
}

/* --- the registry ----------------------------------------------------------------------------------------------- */

/* Location of the run's files in this store, followed by the path. */
static int format_version_source(struct importer_store *s, json_t *version, struct buf *to, struct err *err)
{
	const char *run = json_text_of(version, "run_id"), *path = json_string_value(json_object_get(version, "path"));
	char target[128];
	json_t *got = NULL;
	int rc;

	if (!*run || !path) {
		buf_adds(to, json_text_of(version, "source"));
		return 0;
	}
	snprintf(target, sizeof(target), API "runs/get?run_id=%.32s", run);
	rc = cli_send(s->source, &(struct cli_request){ .method = "GET", .target = target }, &got, err);
	buf_adds(to, json_text_of(json_object_get(json_object_get(got, "run"), "info"), "artifact_uri"));
	if (*path)
		buf_addf(to, "/%s", path);
	json_decref(got);
	return rc;
}

static int request_version_delete(struct importer_store *s, const char *name, const char *number, struct err *err)
{
	return cli_send(s->source,
			&(struct cli_request){ .method = "DELETE", .target = API "model-versions/delete",
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
		snprintf(got, sizeof(got), "%.20s", json_text_of(json_object_get(made, "model_version"), "version"));
		number = strtol(got, NULL, 10);
		if (!rc && number != wanted)
			rc = request_version_delete(s, name, got, err);
		json_decref(made);
	}
	return rc ? rc : number == wanted;
}

static int request_version_stage(struct importer_store *s, const char *name, json_t *v, struct err *err)
{
	const char *stage = json_text_of(v, "stage");

	if (!*stage || !strcmp(stage, "None"))
		return 0;
	return post_to_mlflow(
		s, "model-versions/transition-stage",
		json_pack("{s:s, s:s, s:s}", "name", name, "version", json_text_of(v, "version"), "stage", stage), NULL,
		err);
}

/* Creates a version unless it exists, with its number and stage. */
static int import_version(struct importer_store *s, const char *name, json_t *v, struct err *err)
{
	struct buf source;
	struct err why = ERR_INIT;
	json_t *body, *found = NULL;
	int rc = find_mlflow_item(s, &(struct mlflow_item){ "model-versions/get", name, json_text_of(v, "version") },
				  &found, NULL);

	json_decref(found);
	if (rc != ERR_NOENT)
		return 0; /* exists already */
	buf_init(&source, 1 << 16);
	rc = format_version_source(s, v, &source, err);
	body = json_pack("{s:s, s:s, s:s, s:s, s:O}", "name", name, "source", source.len ? source.data : "", "run_id",
			 json_text_of(v, "run_id"), "description", json_text_of(v, "description"), "tags",
			 json_object_get(v, "tags"));
	if (!rc && !strncmp(source.data ? source.data : "", "models:/m-", 10)) /* MLflow requires the id as well */
		json_object_set_new(body, "model_id", json_string(source.data + 8));
	rc = rc ? rc : create_version_number(s, name, body, strtol(json_text_of(v, "version"), NULL, 10), &why);
	if (rc > 0)
		rc = request_version_stage(s, name, v, err);
	else if (why.code)
		importer_leave_out(s->of, "version %s of model %s: %s", json_text_of(v, "version"), name, why.text);
	else if (!rc)
		importer_leave_out(s->of, "version %s of model %s: its number is already in use",
				   json_text_of(v, "version"), name);
	json_decref(body);
	buf_done(&source);
	return why.code ? 0 : rc;
}

static int set_model_aliases(struct importer_store *s, const char *name, json_t *aliases, struct err *err)
{
	const char *alias;
	json_t *version;
	int rc = 0;

	json_object_foreach(aliases, alias, version)
		if (!rc)
			rc = post_to_mlflow(s, "registered-models/alias",
					    json_pack("{s:s, s:s, s:s}", "name", name, "alias", alias, "version",
						      json_string_value(version)),
					    NULL, err);
	return rc;
}

/* Creates the model with its description and tags, unless it exists. */
static int create_registered_model(struct importer_store *s, json_t *m, bool *ret_new, struct err *err)
{
	json_t *found = NULL;
	int rc = find_mlflow_item(s, &(struct mlflow_item){ "registered-models/get", json_text_of(m, "name"), NULL },
				  &found, err);

	json_decref(found);
	*ret_new = rc == ERR_NOENT;
	if (!*ret_new)
		return rc;
	return post_to_mlflow(s, "registered-models/create",
			      json_pack("{s:s, s:s, s:O}", "name", json_text_of(m, "name"), "description",
					json_text_of(m, "description"), "tags", json_object_get(m, "tags")),
			      NULL, err);
}

static int import_registered_model(struct importer_store *s, void *arg, struct err *err)
{
	json_t *m = NULL, *v;
	bool fresh = false;
	size_t i;
	int rc = parse_queued_json(&m, arg, err);

	rc = rc ? rc : create_registered_model(s, m, &fresh, err);
	json_array_foreach(json_object_get(m, "versions"), i, v)
		if (!rc)
			rc = import_version(s, json_text_of(m, "name"), v, err);
	if (!rc && fresh)
		rc = set_model_aliases(s, json_text_of(m, "name"), json_object_get(m, "aliases"), err);
	json_decref(m);
	return rc;
}

int mlflow_registered(struct importer *b, json_t *model, struct err *err)
{
	return queue_json_request(b, import_registered_model, model, err);
}
