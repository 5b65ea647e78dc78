/* api_artifacts.c: /runs/{run}/artifacts, what was handed to the server; /runs/{run}/files, what lies in the run's own
 * folder. */
#include "web/api/blob.h"

#include <string.h>

#include "web/api/handlers.h"
#include "web/api/native/run_json.h"
#include "web/store/files/folder_files.h"
#include "web/store/mlflow/logged_models.h"

static enum call_next bad_path(struct call *c)
{
	return call_fail(c, CALL_bad_value, "path",
			 "path: want names of at most 255 bytes divided by single slashes, without .., backslashes and "
			 "control characters");
}

/* The run's folder, or the path inside it, below the root; NULL after failing the call. */
static const char *stored_path(struct call *c, const char *path)
{
	const char *id = call_run_id(c, 0);
	struct query_runs_opts o = { .ids = &id, .id_count = 1, .with_deleted = true, .bare = true, .limit = 1 };
	struct query_runs runs;
	struct err err = ERR_INIT;

	if (!id)
		return NULL;
	if (path && *path && !artifact_path_ok(path)) {
		bad_path(c);
		return NULL;
	}
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		call_fail_err(c, NULL, &err);
	else if (!runs.count)
		call_fail(c, CALL_not_found, "run", "there is no run %s", id);
	else
		return arena_printf(c->arena, "%s/%s/artifacts%s%s", runs.items[0].experiment_id, id,
				    path && *path ? "/" : "", path ? path : "");
	return NULL;
}

static enum call_next fail(struct call *c, const struct err *err)
{
	if (err->code == ERR_LIMIT)
		return call_fail(c, CALL_too_large, NULL, "%s", err->text);
	return call_fail_err(c, "path", err);
}

/* The rest of a reply whose object is open: one page of a folder, as blob_page has cut it. */
static enum call_next write_page(struct call *c, struct js *j, struct blob_page *page, const char *path,
				 struct artifact_entry *list, size_t n)
{
	js_key_str(j, "path", path);
	js_key(j, "files");
	run_json_files(c, j, path, list, n);
	js_key_str(j, "next_page_token", page->next);
	js_close(j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_artifact_list_get(struct call *c)
{
	static const char *const includes[] = { "digests", NULL };
	const char *path = call_arg(c, "path"), *place;
	struct blob_page page = { .token = call_arg(c, "page_token"), .limit = INT64_MAX };
	struct js j = { .out = &c->out };
	struct artifact_entry *list;
	struct err err = ERR_INIT;
	size_t n;
	int include = -1;

	path = path ? path : "";
	if (!call_arg_int(c, "limit", &page.limit, 1, BLOB_PAGE_MAX) ||
	    !call_arg_word(c, "include", includes, &include) || !call_args_done(c) || !(place = stored_path(c, path)))
		return CALL_DONE;
	if (artifact_list(store_artifacts(c->api->store), place, c->arena, &list, &n, &err))
		return call_fail_err(c, NULL, &err);
	blob_page(&page, &list, &n);
	if (!include && artifact_digests(c->api->store, place, list, n, c->arena, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	return write_page(c, &j, &page, path, list, n);
}

/* Fails the call where the folder holds anything, which is what of the run. */
static bool need_empty(struct call *c, const char *run, const char *folder, const char *what)
{
	struct artifact_entry *list;
	struct err err = ERR_INIT;
	size_t n;

	if (artifact_list(store_artifacts(c->api->store), folder, c->arena, &list, &n, &err))
		return call_fail_err(c, NULL, &err), false;
	if (n)
		call_fail(c, CALL_conflict, "experiment", "run %s keeps %s in its experiment: it cannot be moved", run,
			  what);
	return !n;
}

/* Clients know by its experiment where a run's files lie, and those of its logged models, which go with it. */
bool artifacts_may_move(struct call *c, const char *run)
{
	const char *place = stored_path(c, ""), **folders;
	struct err err = ERR_INIT;
	size_t n;

	if (!place || !need_empty(c, run, place, "artifacts"))
		return false;
	if (models_folders(c->api->store, run, c->arena, &folders, &n, &err))
		return call_fail_err(c, NULL, &err), false;
	for (size_t i = 0; i < n; i++)
		if (!need_empty(c, run, folders[i], "a logged model's artifacts"))
			return false;
	return true;
}

enum call_next on_file_list_get(struct call *c)
{
	const char *path = call_arg(c, "path"), *id = call_run_id(c, 0);
	struct blob_page page = { .token = call_arg(c, "page_token"), .limit = INT64_MAX };
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct folder_files found;

	path = path ? path : "";
	if (!id || !call_arg_int(c, "limit", &page.limit, 1, BLOB_PAGE_MAX) || !call_args_done(c))
		return CALL_DONE;
	if (*path && !artifact_path_ok(path))
		return bad_path(c);
	if (folder_files_list(c->api->store, id, path, c->arena, &found, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	blob_page(&page, &found.list, &found.count);
	js_key_str(&j, "folder", found.folder);
	return write_page(c, &j, &page, path, found.list, found.count);
}

enum call_next on_artifact_get(struct call *c)
{
	static const char *const views[] = { "frame", NULL };
	const char *place;
	int view = -1;

	if (!call_arg_word(c, "view", views, &view) || !call_args_done(c) || !(place = stored_path(c, c->rest)))
		return CALL_DONE;
	return blob_reply(c, &(struct blob_reply){ .path = place, .frame = !view, .fail = fail });
}

static enum call_next stored(struct call *c, const struct artifact_file *file)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_str(&j, "path", c->rest);
	js_key_int(&j, "bytes", (int64_t)file->bytes);
	js_key_str(&j, "sha256", file->sha256);
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

enum call_next on_artifact_put(struct call *c)
{
	const char *place;

	if (!call_args_done(c))
		return CALL_DONE;
	if (!*c->rest)
		return call_fail(c, CALL_bad_value, "path", "path: name the file");
	place = stored_path(c, c->rest);
	return place ? blob_put(c, &(struct blob_put){ place, fail, stored }) : CALL_DONE;
}

static enum call_next gone(struct call *c)
{
	c->status = 204;
	return CALL_DONE;
}

enum call_next on_artifact_delete(struct call *c)
{
	const char *place;

	if (!call_args_done(c) || !(place = stored_path(c, c->rest)))
		return CALL_DONE;
	if (!*c->rest)
		return call_fail(c, CALL_bad_value, "path", "path: name the file or folder");
	return blob_remove(c, &(struct blob_remove){ place, fail, gone });
}
