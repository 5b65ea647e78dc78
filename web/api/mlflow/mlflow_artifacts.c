/* mlflow_artifacts.c: MLflow's artifact routes: through the proxy, of a run, of a logged model. */
#include "web/api/mlflow/mlflow_errors.h"

#include <stdlib.h>
#include <string.h>

#include "web/api/blob.h"
#include "web/api/handlers.h"
#include "web/store/base/location.h"
#include "web/store/mlflow/experiments.h"
#include "web/store/mlflow/logged_models.h"

/* "" is the root. False after failing the call. */
static bool path_ok(struct call *c, const char *path)
{
	if (!path || !*path || (artifact_path_ok(path) && !strchr(path, '#')))
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid path");
	return false;
}

/* MLflow takes a slash at the end of a folder. */
static const char *trim(struct call *c, const char *path)
{
	char *copy = path ? arena_strdup(c->arena, path) : NULL;
	size_t n = copy ? strlen(copy) : 0;

	while (n && copy[n - 1] == '/')
		copy[--n] = '\0';
	return copy ? copy : "";
}

/* Without "." and empty parts, which lead nowhere. A path that begins with a slash stays as it is, and is refused. */
static const char *plain(struct call *c, const char *path)
{
	char *copy = arena_alloc(c->arena, strlen(path) + 1), *to = copy;
	size_t n;

	if (!copy || *path == '/')
		return path;
	for (; *path; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (!n || (n == 1 && *path == '.'))
			continue;
		if (to > copy)
			*to++ = '/';
		to = mempcpy(to, path, n);
	}
	*to = '\0';
	return copy;
}

static enum call_next fail(struct call *c, const struct err *err)
{
	if (err->code == ERR_EXISTS)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s", err->text);
	return ml_fail_err(c, err);
}

static enum call_next not_opened(struct call *c, const struct err *err)
{
	if (err->code == ERR_NOENT)
		return ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "%s", err->text);
	if (err->code == ERR_USAGE)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s", err->text);
	return fail(c, err);
}

static enum call_next reply_file(struct call *c, const char *path)
{
	return blob_reply(c, &(struct blob_reply){ .path = path, .download = true, .fail = not_opened });
}

/* prefix: what stands before each name. page_token and, which MLflow's own server does not have, max_results: a part.
 */
static bool write_files(struct call *c, struct js *j, const char *folder, const char *prefix)
{
	struct blob_page page = { .token = call_arg(c, "page_token"), .limit = INT64_MAX };
	struct artifact_entry *list;
	struct err err = ERR_INIT;
	size_t n, i;

	if (!call_arg_int(c, "max_results", &page.limit, 1, BLOB_PAGE_MAX))
		return false;
	if (artifact_list(store_artifacts(c->api->store), folder, c->arena, &list, &n, &err)) {
		ml_fail_err(c, &err);
		return false;
	}
	blob_page(&page, &list, &n);
	if (!n)
		return true;
	js_key(j, "files");
	js_open(j, '[');
	for (i = 0; i < n; i++) {
		js_open(j, '{');
		js_key_str(j, "path", *prefix ? arena_printf(c->arena, "%s/%s", prefix, list[i].name) : list[i].name);
		js_key(j, "is_dir");
		js_bool(j, list[i].folder);
		if (!list[i].folder && list[i].bytes)
			js_key_int(j, "file_size", (int64_t)list[i].bytes);
		js_close(j, '}');
	}
	js_close(j, ']');
	if (page.next)
		js_key_str(j, "next_page_token", page.next);
	return true;
}

/* Where a client said that the artifacts of a folder's experiment lie; "": here. */
static const char *elsewhere(struct call *c, const char *folder)
{
	const char *location = "";
	struct err err = ERR_INIT;

	experiment_location(c->api->store, atoll(folder), c->arena, &location, &err);
	return location;
}

static void write_root(struct call *c, struct js *j, const char *folder)
{
	const char *below = strchr(folder, '/') + 1;
	int n = (int)(strstr(below, "/artifacts") - below) + 10;

	js_key_str(
		j, "root_uri",
		location_of(c->arena, elsewhere(c, folder), atoll(folder), arena_printf(c->arena, "%.*s", n, below)));
}

/* --- the proxy ---------------------------------------------------------------------------------------------- */

enum call_next on_ml_proxy_list(struct call *c)
{
	const char *path = plain(c, trim(c, call_arg(c, "path")));
	struct js j = { .out = &c->out };

	if (!path_ok(c, path))
		return CALL_DONE;
	js_open(&j, '{');
	if (write_files(c, &j, path, ""))
		js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_proxy_get(struct call *c)
{
	const char *path = c->rest;

	if (!*path)
		return on_ml_proxy_list(c);
	return path_ok(c, path) ? reply_file(c, path) : CALL_DONE;
}

static enum call_next stored(struct call *c, const struct artifact_file *file)
{
	(void)file;
	return ml_empty(c, NULL);
}

enum call_next on_ml_proxy_put(struct call *c)
{
	if (!*c->rest)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid path");
	return path_ok(c, c->rest) ? blob_put(c, &(struct blob_put){ c->rest, fail, stored }) : CALL_DONE;
}

static enum call_next gone(struct call *c)
{
	return ml_empty(c, NULL);
}

enum call_next on_ml_proxy_delete(struct call *c)
{
	if (!*c->rest)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid path");
	return path_ok(c, c->rest) ? blob_remove(c, &(struct blob_remove){ c->rest, fail, gone }) : CALL_DONE;
}

enum call_next on_ml_multipart(struct call *c)
{
	return ml_fail(c, ML_NOT_IMPLEMENTED, "Multipart upload is not supported for the current artifact repository");
}

enum call_next on_ml_presigned(struct call *c)
{
	return ml_fail(c, ML_NOT_IMPLEMENTED,
		       "Multipart download is not supported for the current artifact repository");
}

enum call_next on_ml_presigned_upload(struct call *c)
{
	return ml_fail(c, ML_INVALID_PARAMETER_VALUE,
		       "Presigned upload is not supported for proxied artifact storage (artifact URI "
		       "scheme: mlflow-artifacts). This endpoint requires a direct cloud storage artifact URI.");
}

/* --- of a run ----------------------------------------------------------------------------------------------- */

static const char *run_folder(struct call *c, const char *id, const char *path)
{
	struct query_run run;

	if (!ml_find_run(c, id, &run))
		return NULL;
	return arena_printf(c->arena, "%s/%s/artifacts%s%s", run.experiment_id, run.id, *path ? "/" : "", path);
}

enum call_next on_ml_artifact_list(struct call *c)
{
	const char *id = NULL, *path = NULL, *folder;
	const struct ml_field fields[] = {
		{ "run_id", ML_STRING, true, &id, NULL }, { "path", ML_STRING, false, &path, NULL }, { 0 }
	};
	struct js j = { .out = &c->out };

	if (!ml_args(c, fields))
		return CALL_DONE;
	path = trim(c, path);
	if (!path_ok(c, plain(c, path)) || !(folder = run_folder(c, id, plain(c, path))))
		return CALL_DONE;
	js_open(&j, '{');
	write_root(c, &j, folder);
	if (write_files(c, &j, folder, path))
		js_close(&j, '}');
	return CALL_DONE;
}

/* run_id or run_uuid, and path. False after failing the call. */
static bool of_run(struct call *c, const char **ret_place)
{
	const char *id = call_arg(c, "run_id"), *path = call_arg(c, "path");

	id = id ? id : call_arg(c, "run_uuid");
	if (!path || !*path)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify path.");
	else if (path_ok(c, path = plain(c, path)) && (!id || !*id))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify run_id.");
	else if (c->status == 200)
		*ret_place = run_folder(c, id, path);
	return *ret_place != NULL;
}

enum call_next on_ml_artifact_get(struct call *c)
{
	const char *place = NULL;

	return of_run(c, &place) ? reply_file(c, place) : CALL_DONE;
}

/* The path is looked at before anything else. */
enum call_next on_ml_version_artifact_get(struct call *c)
{
	const char *path = call_arg(c, "path"), *name = call_arg(c, "name"), *version = call_arg(c, "version"), *folder;
	struct registered_version v;
	int64_t number;

	if (!path || !*path)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify path.");
	path = plain(c, path);
	if (!path_ok(c, path) || !ml_model_name_ok(c, "name", name ? name : "") ||
	    !ml_version_number(c, version ? version : "", &number) || !ml_find_version(c, name, number, &v))
		return CALL_DONE;
	folder = ml_source_folder(c, v.location);
	if (!folder || !path_ok(c, plain(c, folder)))
		return CALL_DONE;
	return reply_file(c, arena_printf(c->arena, "%s/%s", plain(c, trim(c, folder)), path));
}

static enum call_next uploaded(struct call *c, const struct artifact_file *file)
{
	(void)file;
	(void)c;
	return CALL_DONE;
}

static bool has_body(struct call *c)
{
	const char *length = c->host->header(c, "Content-Length");

	return length ? strcmp(length, "0") != 0 : c->host->header(c, "Transfer-Encoding") != NULL;
}

enum call_next on_ml_artifact_upload(struct call *c)
{
	const char *id = call_arg(c, "run_uuid"), *path = call_arg(c, "path"), *place;

	if (!id || !*id)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify run_uuid.");
	if (!path || !*path)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify path.");
	path = plain(c, path);
	if (!path_ok(c, path))
		return CALL_DONE;
	if (!*path || !has_body(c))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, *path ? "Request must specify data." : "Invalid path");
	place = run_folder(c, id, path);
	if (place && *elsewhere(c, place))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			       "The artifacts of run %s lie at %s, which its clients write to themselves.", id,
			       elsewhere(c, place));
	return place ? blob_put(c, &(struct blob_put){ place, fail, uploaded }) : CALL_DONE;
}

/* --- of a logged model -------------------------------------------------------------------------------------- */

static const char *model_folder(struct call *c, const char *path)
{
	struct model m;

	if (!ml_find_model(c, c->vars[0], &m))
		return NULL;
	return arena_printf(c->arena, "%lld/models/%s/artifacts%s%s", (long long)m.experiment, m.id, *path ? "/" : "",
			    path);
}

enum call_next on_ml_model_artifact_list(struct call *c)
{
	const char *path = trim(c, call_arg(c, "artifact_directory_path")), *folder;
	struct js j = { .out = &c->out };

	if (!path_ok(c, plain(c, path)) || !(folder = model_folder(c, plain(c, path))))
		return CALL_DONE;
	js_open(&j, '{');
	write_root(c, &j, folder);
	if (write_files(c, &j, folder, path))
		js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_model_artifact_get(struct call *c)
{
	const char *path = call_arg(c, "artifact_file_path"), *place;

	if (!path || !*path)
		return ml_fail(c, ML_BAD_REQUEST, "Request must include the \"artifact_file_path\" query parameter.");
	path = plain(c, path);
	place = path_ok(c, path) ? model_folder(c, path) : NULL;
	return place ? reply_file(c, place) : CALL_DONE;
}
