/* import_mlflow.c: what our store is asked for, by MLflow's own routes, when runs of MLflow are there. */
#include "web/cli/import/import_mlflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define API "/api/2.0/mlflow/"

static const char *text(json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

void mlflow_pair(json_t *list, const char *key, const char *value)
{
	json_array_append_new(list, json_pack("{s:s, s:s}", "key", key, "value", value));
}

enum event_status mlflow_status(const char *word)
{
	static const struct {
		const char *word;
		enum event_status status;
	} words[] = { { "RUNNING", EVENT_RUNNING },   { "SCHEDULED", EVENT_SCHEDULED }, { "FINISHED", EVENT_FINISHED },
		      { "FAILED", EVENT_FAILED },     { "KILLED", EVENT_KILLED },       { "1", EVENT_RUNNING },
		      { "2", EVENT_SCHEDULED },       { "3", EVENT_FINISHED },	      { "4", EVENT_FAILED },
		      { "5", EVENT_KILLED } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].word, word))
			return words[i].status;
	return EVENT_FINISHED;
}

void mlflow_tag(struct importer_run *run, const char *key, const char *value)
{
	importer_tag(run, key, value);
	if (!strcmp(key, "mlflow.note.content"))
		importer_note(run, value);
}

/* The document, kept as text until its turn comes. */
static int later(struct importer *b, importer_fn *fn, json_t *document, struct err *err)
{
	char *printed = document ? json_dumps(document, JSON_COMPACT) : NULL, *kept;

	json_decref(document);
	if (!printed)
		return err_set(err, ERR_NOMEM, "out of memory, or text that is no UTF-8");
	kept = arena_strdup(b->kept, printed);
	free(printed);
	return importer_then(b, fn, kept, err);
}

static int parsed(json_t **ret, const char *printed, struct err *err)
{
	*ret = json_loads(printed, 0, NULL);
	return *ret ? 0 : err_set(err, ERR_NOMEM, "out of memory");
}

static int post(struct importer_store *s, const char *method, const char *route, json_t *body, json_t **ret,
		struct err *err)
{
	char target[128];

	snprintf(target, sizeof(target), API "%s", route);
	return importer_ask(s, method, target, body, ret, err);
}

/* GET with one or two arguments; ERR_NOENT where there is none. */
static int find(struct importer_store *s, const char *route, const char *name, const char *version, json_t **ret,
		struct err *err)
{
	struct buf target;
	int rc;

	buf_init(&target, 1 << 16);
	buf_addf(&target, API "%s", route);
	source_arg(&target, strstr(route, "experiments") ? "experiment_name" : "name", name);
	if (version)
		source_arg(&target, "version", version);
	rc = buf_failed(&target) ? ERR_NOMEM : importer_ask(s, "GET", target.data, NULL, ret, err);
	buf_done(&target);
	return rc;
}

/* --- experiments ------------------------------------------------------------------------------------------------ */

static int make_experiment(struct importer_store *s, const char *name, char id[32], bool *ret_deleted, struct err *err)
{
	json_t *found = NULL, *e;
	int rc = find(s, "experiments/get-by-name", name, NULL, &found, err);

	*ret_deleted = false;
	if (rc == ERR_NOENT)
		rc = post(s, "POST", "experiments/create", json_pack("{s:s}", "name", name), &found, err);
	e = json_object_get(found, "experiment");
	snprintf(id, 32, "%s", text(e ? e : found, "experiment_id"));
	*ret_deleted = e && !strcmp(text(e, "lifecycle_stage"), "deleted");
	json_decref(found);
	return rc;
}

static int put_experiment(struct importer_store *s, void *arg, struct err *err)
{
	json_t *e, *tag;
	bool deleted;
	char id[32];
	size_t i;
	int rc = parsed(&e, arg, err);

	rc = rc ? rc : make_experiment(s, text(e, "name"), id, &deleted, err);
	if (!rc && !deleted) {
		json_array_foreach(json_object_get(e, "tags"), i, tag)
			if (!rc)
				rc = post(s, "POST", "experiments/set-experiment-tag",
					  json_pack("{s:s, s:s, s:s}", "experiment_id", id, "key", text(tag, "key"),
						    "value", text(tag, "value")),
					  NULL, err);
		if (!rc && json_is_true(json_object_get(e, "deleted")))
			rc = post(s, "POST", "experiments/delete", json_pack("{s:s}", "experiment_id", id), NULL, err);
	}
	json_decref(e);
	return rc;
}

int mlflow_experiment(struct importer *b, json_t *experiment, struct err *err)
{
	if (!b->target->experiment)
		return later(b, put_experiment, experiment, err);
	json_decref(experiment);
	return 0;
}

/* --- files ------------------------------------------------------------------------------------------------------ */

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Undoes percent-encoding of a file: address. */
static void plain_path(char *to, size_t room, const char *uri)
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

/* The folder as it was named, else the longest tail of its path that is one beside the store. */
static bool find_folder(char *ret, size_t room, const char *path, const char *beside)
{
	static const char *const below[] = { "", "mlartifacts/", "mlruns/" };

	snprintf(ret, room, "%s", path);
	if (*path == '/' && is_folder(ret))
		return true;
	for (const char *tail = path; tail; tail = strchr(tail, '/')) {
		tail += strspn(tail, "/");
		if (!strchr(tail, '/'))
			break; /* a name alone is no sign */
		for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
			snprintf(ret, room, "%.2000s/%s%.1900s", beside, below[i], tail);
			if (is_folder(ret))
				return true;
		}
	}
	return false;
}

static void cut_segments(char *path, int n)
{
	for (char *slash; n > 0 && (slash = strrchr(path, '/')); n--)
		*slash = 0;
}

int mlflow_files(struct importer *b, const char *run, const char *uri, const char *beside, struct err *err)
{
	static const char artifacts[] = "mlflow-artifacts:";
	char path[4096], folder[4096];
	const char *at = uri, *colon = strstr(uri, ":/");

	if (!strncmp(uri, "file:", 5) || !strncmp(uri, artifacts, sizeof(artifacts) - 1)) {
		at = colon + 1;
		at = strncmp(at, "//", 2) ? at : at + 2 + strcspn(at + 2, "/");
	} else if (colon && colon - uri > 1) {
		importer_leave_out(b, "the files of a run that lie at %.*s://…", (int)(colon - uri), uri);
		return 0;
	}
	plain_path(path, sizeof(path), at);
	if (find_folder(folder, sizeof(folder), path, beside))
		return importer_files(b, run, "", folder, err);
	cut_segments(path, 2);
	if (find_folder(folder, sizeof(folder), path, beside))
		return 0; /* where its experiment's runs have theirs, it has none */
	importer_leave_out(b, "the files of a run, if it had any: their folder is not on this machine");
	return 0;
}

const char *mlflow_below(const char *source, const char *artifact_uri)
{
	size_t n = strlen(artifact_uri);

	while (n && artifact_uri[n - 1] == '/')
		n--;
	if (!strncmp(source, "runs:/", 6))
		return strchr(source + 6, '/') ? strchr(source + 6, '/') + 1 : NULL;
	return n && !strncmp(source, artifact_uri, n) && (source[n] == '/' || !source[n]) ?
		       source + n + strspn(source + n, "/") :
		       NULL;
}

/* --- inputs ----------------------------------------------------------------------------------------------------- */

static int put_inputs(struct importer_store *s, void *arg, struct err *err)
{
	struct err why = ERR_INIT;
	json_t *body = NULL;
	int rc = parsed(&body, arg, err);

	rc = rc ? rc : post(s, "POST", "runs/log-inputs", body, NULL, &why);
	if (rc == ERR_USAGE && strstr(why.text, "active")) /* its run is deleted by now: a repeat */
		return 0;
	return rc && why.code ? err_set(err, rc, "%s", why.text) : rc;
}

int mlflow_inputs(struct importer *b, json_t *body, struct err *err)
{
	return later(b, put_inputs, body, err);
}

/* --- the registry ----------------------------------------------------------------------------------------------- */

/* Where the run's files lie here, with the path behind it. */
static int source_of(struct importer_store *s, json_t *version, struct buf *to, struct err *err)
{
	const char *run = text(version, "run_id"), *path = json_string_value(json_object_get(version, "path"));
	char target[128];
	json_t *got = NULL;
	int rc;

	if (!*run || !path) {
		buf_adds(to, text(version, "source"));
		return 0;
	}
	snprintf(target, sizeof(target), API "runs/get?run_id=%.32s", run);
	rc = importer_ask(s, "GET", target, NULL, &got, err);
	buf_adds(to, text(json_object_get(json_object_get(got, "run"), "info"), "artifact_uri"));
	if (*path)
		buf_addf(to, "/%s", path);
	json_decref(got);
	return rc;
}

static int remove_version(struct importer_store *s, const char *name, const char *number, struct err *err)
{
	return post(s, "DELETE", "model-versions/delete", json_pack("{s:s, s:s}", "name", name, "version", number),
		    NULL, err);
}

/* Makes versions until one has the wanted number: what lies below it was deleted where it comes from. *ret: it has
 * it. */
static int number_version(struct importer_store *s, const char *name, json_t *body, long wanted, bool *ret,
			  struct err *err)
{
	long number = -1;
	int rc = 0;

	while (!rc && number < wanted) {
		json_t *made = NULL;
		char got[24] = "";

		rc = post(s, "POST", "model-versions/create", json_incref(body), &made, err);
		snprintf(got, sizeof(got), "%.20s", text(json_object_get(made, "model_version"), "version"));
		number = strtol(got, NULL, 10);
		if (!rc && number != wanted)
			rc = remove_version(s, name, got, err);
		json_decref(made);
	}
	*ret = number == wanted;
	return rc;
}

static int stage_version(struct importer_store *s, const char *name, json_t *v, struct err *err)
{
	const char *stage = text(v, "stage");

	if (!*stage || !strcmp(stage, "None"))
		return 0;
	return post(s, "POST", "model-versions/transition-stage",
		    json_pack("{s:s, s:s, s:s}", "name", name, "version", text(v, "version"), "stage", stage), NULL,
		    err);
}

static int put_version(struct importer_store *s, const char *name, json_t *v, struct err *err)
{
	struct buf source;
	struct err why = ERR_INIT;
	json_t *body, *found = NULL;
	bool has = false;
	int rc = find(s, "model-versions/get", name, text(v, "version"), &found, NULL);

	json_decref(found);
	if (rc != ERR_NOENT)
		return 0; /* it is there */
	buf_init(&source, 1 << 16);
	rc = source_of(s, v, &source, err);
	body = json_pack("{s:s, s:s, s:s, s:s, s:O}", "name", name, "source", source.len ? source.data : "", "run_id",
			 text(v, "run_id"), "description", text(v, "description"), "tags", json_object_get(v, "tags"));
	rc = rc ? rc : number_version(s, name, body, strtol(text(v, "version"), NULL, 10), &has, &why);
	if (!rc && has)
		rc = stage_version(s, name, v, err);
	else if (why.code)
		importer_leave_out(s->of, "version %s of model %s: %s", text(v, "version"), name, why.text);
	else if (!rc)
		importer_leave_out(s->of, "version %s of model %s: its number was taken here", text(v, "version"), name);
	json_decref(body);
	buf_done(&source);
	return why.code ? 0 : rc;
}

static int put_aliases(struct importer_store *s, const char *name, json_t *aliases, struct err *err)
{
	const char *alias;
	json_t *version;
	int rc = 0;

	json_object_foreach(aliases, alias, version)
		if (!rc)
			rc = post(s, "POST", "registered-models/alias",
				  json_pack("{s:s, s:s, s:s}", "name", name, "alias", alias, "version",
					    json_string_value(version)),
				  NULL, err);
	return rc;
}

/* With what it says of itself where it is new here. */
static int make_model(struct importer_store *s, json_t *m, bool *ret_new, struct err *err)
{
	json_t *found = NULL;
	int rc = find(s, "registered-models/get", text(m, "name"), NULL, &found, err);

	json_decref(found);
	*ret_new = rc == ERR_NOENT;
	if (!*ret_new)
		return rc;
	return post(s, "POST", "registered-models/create",
		    json_pack("{s:s, s:s, s:O}", "name", text(m, "name"), "description", text(m, "description"), "tags",
			      json_object_get(m, "tags")),
		    NULL, err);
}

static int put_model(struct importer_store *s, void *arg, struct err *err)
{
	json_t *m = NULL, *v;
	bool fresh = false;
	size_t i;
	int rc = parsed(&m, arg, err);

	rc = rc ? rc : make_model(s, m, &fresh, err);
	json_array_foreach(json_object_get(m, "versions"), i, v)
		if (!rc)
			rc = put_version(s, text(m, "name"), v, err);
	if (!rc && fresh)
		rc = put_aliases(s, text(m, "name"), json_object_get(m, "aliases"), err);
	json_decref(m);
	return rc;
}

int mlflow_registered(struct importer *b, json_t *model, struct err *err)
{
	return later(b, put_model, model, err);
}
