/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_artifacts.c: MLflow's artifact routes: of the proxy, a run, a logged model. */
#include "web/api/mlflow/mlflow_request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "web/api/blob.h"
#include "web/store/mlflow/experiments.h"

/* Judges a path as given and decoded. Returns false for a file: URI, a drive of Windows, a fragment, and what
 * artifact_path_ok refuses. */
static bool is_safe_artifact_path(struct call *c, const char *path)
{
	const char *text = artifact_path_ok(path) ? ml_unquote(c, path) : NULL;

	return text && artifact_path_ok(text) && !strchr(text, '#') &&
	       strncasecmp(text, "file:", 5) != 0 &&
	       !(isalpha((unsigned char)*text) && text[1] == ':' && text[2] == '/');
}

/* "" means the root. Returns false after failing the call. */
static bool check_ml_artifact_path(struct call *c, const char *path)
{
	if (!path || !*path || is_safe_artifact_path(c, path))
		return true;
	ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid path");
	return false;
}

/* Removes slashes at the end: MLflow accepts them after the name of a folder. */
static const char *trim_trailing_slashes(struct call *c, const char *path)
{
	char *copy = path ? arena_strdup(c->arena, path) : NULL;
	size_t n = copy ? strlen(copy) : 0;

	while (n && copy[n - 1] == '/')
		copy[--n] = '\0';
	return copy ? copy : "";
}

/* Removes "." and empty segments. A path with a leading slash is returned unchanged; it is refused later. */
static const char *remove_dot_segments(struct call *c, const char *path)
{
	char *copy = arena_alloc(c->arena, strlen(path) + 1), *to = copy;
	size_t n;

	if (*path == '/')
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

static enum call_next fail_artifact(struct call *c, const struct err *err)
{
	if (err->code == ERR_EXISTS)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s", err->text);
	return ml_fail_err(c, err);
}

static enum call_next fail_artifact_open(struct call *c, const struct err *err)
{
	if (err->code == ERR_NOENT)
		return ml_fail(c, ML_RESOURCE_DOES_NOT_EXIST, "%s", err->text);
	if (err->code == ERR_USAGE)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "%s", err->text);
	return fail_artifact(c, err);
}

static enum call_next reply_ml_file(struct call *c, const char *path)
{
	return blob_reply(c, &(struct blob_reply){ .path = path, .download = true, .fail = fail_artifact_open });
}

/* Writes the files of a folder. prefix: path in front of each name. page_token and max_results select a page; MLflow's
 * own server has no max_results. */
static bool write_ml_file_list(struct call *c, struct js *j, const char *folder, const char *prefix)
{
	struct blob_page page = { .token = call_arg(c, "page_token"), .limit = INT64_MAX };
	struct artifact_entries list;
	struct err err = ERR_INIT;
	size_t i;

	if (!call_arg_int(c, "max_results", &page.limit, 1, BLOB_PAGE_MAX))
		return false;
	if (artifact_list(c->api->store, folder, c->arena, &list, &err)) {
		ml_fail_err(c, &err);
		return false;
	}
	blob_page(&page, &list.items, &list.count);
	if (!list.count)
		return true;
	js_key_open(j, "files", '[');
	for (i = 0; i < list.count; i++) {
		const struct artifact_entry *e = &list.items[i];

		js_open(j, '{');
		js_key_str(j, "path", *prefix ? arena_printf(c->arena, "%s/%s", prefix, e->name) : e->name);
		js_key_bool(j, "is_dir", e->folder);
		if (!e->folder && e->bytes)
			js_key_int(j, "file_size", (int64_t)e->bytes);
		js_close(j, '}');
	}
	js_close(j, ']');
	if (page.next)
		js_key_str(j, "next_page_token", page.next);
	return true;
}

/* The artifact location that a client set for a folder's experiment; "": this server. */
static const char *find_external_location(struct call *c, const char *folder)
{
	const char *location = "";
	struct err err = ERR_INIT;

	experiment_location(c->api->store, atoll(folder), c->arena, &location, &err);
	return location;
}

static void write_root_uri(struct call *c, struct js *j, const char *folder)
{
	const char *below = strchr(folder, '/') + 1;
	int n = (int)(strstr(below, "/artifacts") - below) + 10;

	js_key_str(j, "root_uri",
		   location_of(c->arena, find_external_location(c, folder), atoll(folder),
			       arena_printf(c->arena, "%.*s", n, below)));
}

/* --- the proxy ---------------------------------------------------------------------------------------------- */

enum call_next on_ml_proxy_list(struct call *c)
{
	const char *path = remove_dot_segments(c, trim_trailing_slashes(c, call_arg(c, "path")));
	struct js j = { .out = &c->out };

	if (!check_ml_artifact_path(c, path))
		return CALL_DONE;
	js_open(&j, '{');
	if (write_ml_file_list(c, &j, path, ""))
		js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_proxy_get(struct call *c)
{
	const char *path = c->address.rest;

	if (!*path)
		return on_ml_proxy_list(c);
	return check_ml_artifact_path(c, path) ? reply_ml_file(c, path) : CALL_DONE;
}

static enum call_next finish_proxy_put(struct call *c, const struct artifact_file *file)
{
	(void)file;
	return ml_empty(c, NULL);
}

enum call_next on_ml_proxy_put(struct call *c)
{
	if (!*c->address.rest)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid path");
	return check_ml_artifact_path(c, c->address.rest)
		       ? blob_put(c, &(struct blob_put){ c->address.rest, fail_artifact, finish_proxy_put })
		       : CALL_DONE;
}

static enum call_next finish_proxy_delete(struct call *c)
{
	return ml_empty(c, NULL);
}

enum call_next on_ml_proxy_delete(struct call *c)
{
	if (!*c->address.rest)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Invalid path");
	return check_ml_artifact_path(c, c->address.rest)
		       ? blob_remove(c, &(struct blob_remove){ c->address.rest, fail_artifact, finish_proxy_delete })
		       : CALL_DONE;
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

static const char *find_run_folder(struct call *c, const char *id, const char *path)
{
	struct query_run run;

	if (!ml_find_run(c, id, &run))
		return NULL;
	return arena_printf(c->arena, "%s/%s/artifacts%s%s", run.experiment_id, run.id, *path ? "/" : "", path);
}

enum call_next on_ml_artifact_list(struct call *c)
{
	const char *id = NULL, *path = NULL, *folder;
	const struct ml_field fields[] = { { "run_id", ML_STRING, true, &id, NULL },
					   { "path", ML_STRING, false, &path, NULL },
					   { 0 } };
	struct js j = { .out = &c->out };

	if (!ml_args(c, fields))
		return CALL_DONE;
	path = trim_trailing_slashes(c, path);
	if (!check_ml_artifact_path(c, remove_dot_segments(c, path)) ||
	    !(folder = find_run_folder(c, id, remove_dot_segments(c, path))))
		return CALL_DONE;
	js_open(&j, '{');
	write_root_uri(c, &j, folder);
	if (write_ml_file_list(c, &j, folder, path))
		js_close(&j, '}');
	return CALL_DONE;
}

/* Reads the arguments run_id or run_uuid, and path. Returns false after failing the call. */
static bool read_run_artifact_args(struct call *c, const char **ret_place)
{
	const char *id = call_arg(c, "run_id"), *path = call_arg(c, "path");

	id = id ? id : call_arg(c, "run_uuid");
	if (!path || !*path)
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify path.");
	else if (check_ml_artifact_path(c, path = remove_dot_segments(c, path)) && (!id || !*id))
		ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify run_id.");
	else if (c->status == 200)
		*ret_place = find_run_folder(c, id, path);
	return *ret_place != NULL;
}

enum call_next on_ml_artifact_get(struct call *c)
{
	const char *place = NULL;

	return read_run_artifact_args(c, &place) ? reply_ml_file(c, place) : CALL_DONE;
}

/* Checks the path before all other arguments. */
enum call_next on_ml_version_artifact_get(struct call *c)
{
	const char *path = call_arg(c, "path"), *name = call_arg(c, "name"), *version = call_arg(c, "version"), *folder;
	struct registered_version v;
	int64_t number;

	if (!path || !*path)
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, "Request must specify path.");
	path = remove_dot_segments(c, path);
	if (!check_ml_artifact_path(c, path) || !ml_model_name_ok(c, "name", name ? name : "") ||
	    !ml_version_number(c, version ? version : "", &number) || !ml_find_version(c, name, number, &v))
		return CALL_DONE;
	folder = ml_source_folder(c, v.location);
	if (!folder || !check_ml_artifact_path(c, remove_dot_segments(c, folder)))
		return CALL_DONE;
	return reply_ml_file(
		c, arena_printf(c->arena, "%s/%s", remove_dot_segments(c, trim_trailing_slashes(c, folder)), path));
}

static enum call_next finish_artifact_upload(struct call *c, const struct artifact_file *file)
{
	(void)file;
	(void)c;
	return CALL_DONE;
}

static bool has_request_body(struct call *c)
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
	path = remove_dot_segments(c, path);
	if (!check_ml_artifact_path(c, path))
		return CALL_DONE;
	if (!*path || !has_request_body(c))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE, *path ? "Request must specify data." : "Invalid path");
	place = find_run_folder(c, id, path);
	if (place && *find_external_location(c, place))
		return ml_fail(c, ML_INVALID_PARAMETER_VALUE,
			       "The artifacts of run %s are stored at %s: its clients write to that location directly.",
			       id, find_external_location(c, place));
	return place ? blob_put(c, &(struct blob_put){ place, fail_artifact, finish_artifact_upload }) : CALL_DONE;
}

/* --- of a logged model -------------------------------------------------------------------------------------- */

static const char *find_model_folder(struct call *c, const char *path)
{
	struct model m;

	if (!ml_find_model(c, c->address.vars[0], &m))
		return NULL;
	return arena_printf(c->arena, "%lld/models/%s/artifacts%s%s", (long long)m.experiment, m.id, *path ? "/" : "",
			    path);
}

enum call_next on_ml_model_artifact_list(struct call *c)
{
	const char *path = trim_trailing_slashes(c, call_arg(c, "artifact_directory_path")), *folder;
	struct js j = { .out = &c->out };

	if (!check_ml_artifact_path(c, remove_dot_segments(c, path)) ||
	    !(folder = find_model_folder(c, remove_dot_segments(c, path))))
		return CALL_DONE;
	js_open(&j, '{');
	write_root_uri(c, &j, folder);
	if (write_ml_file_list(c, &j, folder, path))
		js_close(&j, '}');
	return CALL_DONE;
}

enum call_next on_ml_model_artifact_get(struct call *c)
{
	const char *path = call_arg(c, "artifact_file_path"), *place;

	if (!path || !*path)
		return ml_fail(c, ML_BAD_REQUEST, "Request must include the \"artifact_file_path\" query parameter.");
	path = remove_dot_segments(c, path);
	place = check_ml_artifact_path(c, path) ? find_model_folder(c, path) : NULL;
	return place ? reply_ml_file(c, place) : CALL_DONE;
}
