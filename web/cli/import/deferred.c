/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.c: the queue of requests to the store after all runs are imported: files, and everything that journals
 * cannot contain. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "web/cli/import/importer.h"

#define PATIENCE_S 60.0 /* time for a server to find the journals in its folder */
#define LOOK_S 0.2
#define IMPORT_DEPTH_MAX 64

struct importer_deferred {
	importer_fn *fn;
	void *arg;
	struct importer_deferred *next;
};

int importer_then(struct importer *b, enum importer_phase phase, importer_fn *fn, void *arg, struct err *err)
{
	struct importer_deferred *l = arena_alloc(b->kept, sizeof(*l));
	struct importer_queue *q = &b->queues[phase];

	if (!l || !arg)
		return err_nomem(err, NULL);
	*l = (struct importer_deferred){ fn, arg, NULL };
	*(q->end ? q->end : &q->first) = l;
	q->end = &l->next;
	return 0;
}

/* --- runs ------------------------------------------------------------------------------------------------------- */

/* Fetches the run from the store; waits for a server that follows the folder and has not found it yet. */
static int wait_for_run(struct importer_store *s, const char *id, json_t **ret, struct err *err)
{
	double until = clock_mono_s() + PATIENCE_S;
	char target[64];
	const struct cli_request request = { .method = "GET", .target = target };
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%s", id);
	while ((rc = cli_send(s->source, &request, ret, err)) == ERR_NOENT && clock_mono_s() < until)
		clock_sleep_s(LOOK_S);
	return rc ? err_set(err, ERR_PEER, "the store does not list the imported run %s", id) : 0;
}

static bool is_run_deleted(json_t *run)
{
	return json_is_true(json_object_get(run, "deleted"));
}

static int delete_imported_run(struct importer_store *s, void *arg, struct err *err)
{
	char target[64];
	json_t *run = NULL;
	int rc = wait_for_run(s, arg, &run, err);

	snprintf(target, sizeof(target), "/api/v1/runs/%s", (const char *)arg);
	if (!rc && !is_run_deleted(run))
		rc = cli_send(s->source, &(struct cli_request){ .method = "DELETE", .target = target }, NULL, err);
	json_decref(run);
	return rc;
}

int importer_delete_run(struct importer *b, const char *run, struct err *err)
{
	return importer_then(b, IMPORT_DELETIONS, delete_imported_run, arena_strdup(b->kept, run), err);
}

/* --- files ------------------------------------------------------------------------------------------------------ */

struct imported_folder {
	struct importer_store *store;
	const char *run;  /* NULL: the files of a logged model */
	const char *base; /* address of the folder of artifacts */
	const char *path, *from;
	int depth;
};

/* Appends each segment of a path, percent-encoded. */
static void escape_path_segments(struct buf *to, const char *path)
{
	char segment[1024];

	while (*path) {
		size_t n = strcspn(path, "/");

		snprintf(segment, sizeof(segment), "%.*s", (int)n, path);
		buf_addc(to, '/');
		source_escape(to, segment);
		path += n + (path[n] == '/');
	}
}

/* The same for a file of a logged model: MLflow's list has names below the folder. */
static bool has_model_file(const struct imported_folder *f, uint64_t bytes)
{
	static const char proxy[] = "/api/2.0/mlflow-artifacts/artifacts/";
	const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
	char folder[4096];
	json_t *list = NULL, *item;
	struct buf target;
	bool has = false;
	size_t i;

	snprintf(folder, sizeof(folder), "%s%s%.*s", f->base + sizeof(proxy) - 1, slash ? "/" : "",
		 slash ? (int)(slash - f->path) : 0, f->path);
	buf_init(&target, 1 << 16);
	buf_adds(&target, "/api/2.0/mlflow-artifacts/artifacts");
	source_arg(&target, "path", folder);
	if (!cli_send(f->store->source, &(struct cli_request){ .method = "GET", .target = target.data }, &list, NULL))
		json_array_foreach(json_object_get(list, "files"), i, item)
			if (!strcmp(name, json_string_value(json_object_get(item, "path"))))
				has = json_integer_value(json_object_get(item, "file_size")) == (json_int_t)bytes;
	json_decref(list);
	buf_done(&target);
	return has;
}

/* Returns true if the store has a file of that size at the path. */
static bool has_store_file(const struct imported_folder *f, uint64_t bytes)
{
	const char *slash = strrchr(f->path, '/');
	json_t *list = NULL, *item;
	struct buf target;
	bool has = false;
	size_t i;

	if (!f->run)
		return has_model_file(f, bytes);
	buf_init(&target, 1 << 16);
	buf_adds(&target, f->base);
	if (slash) {
		char folder[4096];

		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - f->path), f->path);
		source_arg(&target, "path", folder);
	}
	if (!cli_send(f->store->source, &(struct cli_request){ .method = "GET", .target = target.data }, &list, NULL))
		json_array_foreach(json_object_get(list, "files"), i, item)
			if (!strcmp(f->path, json_string_value(json_object_get(item, "path"))))
				has = json_integer_value(json_object_get(item, "bytes")) == (json_int_t)bytes;
	json_decref(list);
	buf_done(&target);
	return has;
}

/* Uploads a file that the store lacks; one that cannot be read or is refused is left out. */
static int put_imported_file(const struct imported_folder *f, struct err *err)
{
	struct file_map map = { 0 };
	struct local_opts o = { .method = "PUT", .file = "" };
	struct err why = ERR_INIT;
	struct buf target;
	int rc = importer_map(f->store->of, &map, f->from, &why);

	buf_init(&target, 1 << 16);
	buf_adds(&target, f->base);
	escape_path_segments(&target, f->path);
	o.target = target.data;
	o.file = map.n ? (const void *)map.bytes : "";
	o.file_bytes = map.n;
	if (!rc && !has_store_file(f, map.n)) {
		rc = source_send(f->store->source, &o, &(struct local_sink){ cli_drop_reply, NULL }, &why);
		f->store->of->files += !rc;
		if (rc)
			err_prefix(&why, "%s", f->from);
	}
	buf_done(&target);
	file_map_close(&map);
	return importer_skip(f->store->of, rc, &why, err);
}

static int put_imported_tree(const struct imported_folder *f, struct err *err);

/* Uploads a file or folder of the folder `arg`, as folder_fn. */
static int put_imported_entry(void *arg, const char *from, const char *name, struct err *err)
{
	const struct imported_folder *of = arg;
	struct imported_folder f = *of;
	char path[4096];

	if (snprintf(path, sizeof(path), "%s%s%s", of->path, *of->path ? "/" : "", name) >= (int)sizeof(path)) {
		importer_leave_out(of->store->of, "%s: the path is too long", of->from);
		return 0;
	}
	f.path = path;
	f.from = from;
	f.depth++;
	switch (importer_entry(of->store->of, from)) {
	case ENTRY_FOLDER:
		return put_imported_tree(&f, err);
	case ENTRY_FILE:
		return put_imported_file(&f, err);
	case ENTRY_NONE:
		break;
	}
	return 0;
}

static int put_imported_tree(const struct imported_folder *f, struct err *err)
{
	if (f->depth < IMPORT_DEPTH_MAX && !access(f->from, R_OK | X_OK))
		return folder_each(f->from, put_imported_entry, (void *)f, err);
	importer_leave_out(f->store->of, "%s: %s", f->from,
			   f->depth < IMPORT_DEPTH_MAX ? strerror(errno) : "folders are nested too deep");
	return 0;
}

static int put_imported_files(struct importer_store *s, void *arg, struct err *err)
{
	struct imported_folder *f = arg;
	json_t *run = NULL;
	struct stat st;
	int rc;

	f->store = s;
	rc = wait_for_run(s, f->run, &run, err);

	if (!rc && stat(f->from, &st))
		importer_leave_out(s->of, "%s: %s", f->from, strerror(errno));
	else if (!rc && importer_allows(s->of, f->from))
		rc = S_ISDIR(st.st_mode) ? put_imported_tree(f, err) : put_imported_file(f, err);
	json_decref(run);
	return rc;
}

int importer_model_files(struct importer_store *s, const char *base, const char *from, struct err *err)
{
	struct imported_folder f = { .store = s, .base = base, .path = "", .from = from };

	if (!importer_allows(s->of, from))
		return 0;
	return put_imported_tree(&f, err);
}

int importer_files(struct importer *b, const char *run, const char *path, const char *from, struct err *err)
{
	struct imported_folder *f = arena_alloc(b->kept, sizeof(*f));

	*f = (struct imported_folder){ .run = arena_strdup(b->kept, run),
				       .base = arena_printf(b->kept, "/api/v1/runs/%s/artifacts", run),
				       .path = arena_strdup(b->kept, path),
				       .from = arena_strdup(b->kept, from) };
	return importer_then(b, IMPORT_FILES, put_imported_files, f, err);
}

/* --- completion --------------------------------------------------------------------------------------------------- */

/* The data must be on the disk before the import reports success. */
static int sync_import_folder(const char *folder, struct err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0 || syncfs(fd))
		rc = err_set_errno(err, errno, "cannot write %s to the disk", folder);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int run_deferred(struct importer_store *s, const struct importer_deferred *l, struct err *err)
{
	const struct importer_target *target = s->of->target;
	const struct source_opts o = { .logdir = target->url ? NULL : target->into, .url = target->url };
	struct err why = ERR_INIT;
	int rc = s->source ? 0 : source_open(&s->source, &o, err);

	if (rc)
		return rc;
	rc = l->fn(s, l->arg, &why);
	return importer_skip(s->of, rc, &why, err);
}

int importer_finish(struct importer *b, struct err *err)
{
	struct importer_store s = { .of = b };
	int rc = b->http || !b->runs ? 0 : sync_import_folder(b->target->into, err);

	terminal_progress_clear(&b->progress);
	for (int phase = 0; phase < IMPORT_PHASES; phase++)
		for (const struct importer_deferred *l = b->queues[phase].first; l && !rc; l = l->next)
			rc = run_deferred(&s, l, err);
	source_close(s.source);
	return rc;
}
