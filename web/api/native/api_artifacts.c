/* SPDX-License-Identifier: Apache-2.0 */
/* api_artifacts.c: /runs/{run}/artifacts, files that clients uploaded; /runs/{run}/files, files in the run's own
 * folder. */
#include "web/api/blob.h"

#include "web/api/native/native_inside.h"
#include "web/store/mlflow/logged_models.h"

static enum call_next fail_artifact_path(struct call *c)
{
	return call_fail(
		c, CALL_bad_value, "path",
		"path: expected names of at most 255 bytes divided by single slashes, without .., backslashes and "
		"control characters");
}

/* The folder of the run, or a path inside it, relative to the root of artifacts; NULL after failing the call. */
static const char *find_artifact_path(struct call *c, const char *path)
{
	const char *id = call_run_id(c, 0);
	struct query_runs_opts o = { .ids = &id, .id_count = 1, .with_deleted = true, .bare = true, .limit = 1 };
	struct query_runs runs;
	struct err err = ERR_INIT;

	if (!id)
		return NULL;
	if (path && *path && !artifact_path_ok(path)) {
		fail_artifact_path(c);
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

static enum call_next fail_native_artifact(struct call *c, const struct err *err)
{
	if (err->code == ERR_LIMIT)
		return call_fail(c, CALL_too_large, NULL, "%s", err->text);
	return call_fail_err(c, "path", err);
}

/* One page of a folder. */
struct folder_page {
	const char *path, *next; /* next: token of the next page, or NULL */
	struct artifact_entry *list;
	size_t n;
};

/* Completes a reply whose object is open. */
static enum call_next write_folder_page(struct call *c, struct js *j, const struct folder_page *page)
{
	js_key_str(j, "path", page->path);
	js_key(j, "files");
	run_json_files(c, j, page->path, page->list, page->n);
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
	struct artifact_entries list;
	struct err err = ERR_INIT;
	int include = -1;

	path = path ? path : "";
	if (!call_arg_int(c, "limit", &page.limit, 1, BLOB_PAGE_MAX) ||
	    !call_arg_word(c, "include", includes, &include) || !call_args_done(c) ||
	    !(place = find_artifact_path(c, path)))
		return CALL_DONE;
	if (artifact_list(c->api->store, place, c->arena, &list, &err))
		return call_fail_err(c, NULL, &err);
	blob_page(&page, &list.items, &list.count);
	if (!include && artifact_digests(c->api->store, place, &list, c->arena, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	return write_folder_page(c, &j, &(struct folder_page){ path, page.next, list.items, list.count });
}

/* Returns false after failing the call if the folder is not empty. what: its content, for the message. */
static bool require_empty_folder(struct call *c, const char *run, const char *folder, const char *what)
{
	struct artifact_entries list;
	struct err err = ERR_INIT;

	if (artifact_list(c->api->store, folder, c->arena, &list, &err))
		return call_fail_err(c, NULL, &err), false;
	if (list.count)
		call_fail(c, CALL_conflict, "experiment", "run %s has %s in its experiment: it cannot be moved", run,
			  what);
	return !list.count;
}

/* Clients find the files of a run by its experiment, and also those of its logged models, which would move with it. */
bool artifacts_may_move(struct call *c, const char *run)
{
	const char *place = find_artifact_path(c, "");
	struct models_folders folders;
	struct err err = ERR_INIT;

	if (!place || !require_empty_folder(c, run, place, "artifacts"))
		return false;
	if (models_folders(c->api->store, run, c->arena, &folders, &err))
		return call_fail_err(c, NULL, &err), false;
	for (size_t i = 0; i < folders.count; i++)
		if (!require_empty_folder(c, run, folders.items[i], "a logged model's artifacts"))
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
		return fail_artifact_path(c);
	if (folder_files_list(c->api->store, &(struct folder_files_place){ id, path }, c->arena, &found, &err))
		return call_fail_err(c, "run", &err);
	js_open(&j, '{');
	blob_page(&page, &found.list, &found.count);
	js_key_str(&j, "folder", found.folder);
	return write_folder_page(c, &j, &(struct folder_page){ path, page.next, found.list, found.count });
}

enum call_next on_artifact_get(struct call *c)
{
	static const char *const views[] = { "frame", NULL };
	const char *place;
	int view = -1;

	if (!call_arg_word(c, "view", views, &view) || !call_args_done(c) ||
	    !(place = find_artifact_path(c, c->address.rest)))
		return CALL_DONE;
	return blob_reply(c, &(struct blob_reply){ .path = place, .frame = !view, .fail = fail_native_artifact });
}

static enum call_next reply_stored_artifact(struct call *c, const struct artifact_file *file)
{
	struct js j = { .out = &c->out };

	js_open(&j, '{');
	js_key_str(&j, "path", c->address.rest);
	js_key_int(&j, "bytes", (int64_t)file->bytes);
	js_key_str(&j, "sha256", file->sha256);
	return js_reply(c, &j);
}

enum call_next on_artifact_put(struct call *c)
{
	const char *place;

	if (!call_args_done(c))
		return CALL_DONE;
	if (!*c->address.rest)
		return call_fail(c, CALL_bad_value, "path", "path: expected a file name");
	place = find_artifact_path(c, c->address.rest);
	return place ? blob_put(c, &(struct blob_put){ place, fail_native_artifact, reply_stored_artifact })
		     : CALL_DONE;
}

static enum call_next reply_removed_artifact(struct call *c)
{
	c->status = 204;
	return CALL_DONE;
}

enum call_next on_artifact_delete(struct call *c)
{
	const char *place;

	if (!call_args_done(c) || !(place = find_artifact_path(c, c->address.rest)))
		return CALL_DONE;
	if (!*c->address.rest)
		return call_fail(c, CALL_bad_value, "path", "path: expected a file or folder");
	return blob_remove(c, &(struct blob_remove){ place, fail_native_artifact, reply_removed_artifact });
}
