/* SPDX-License-Identifier: Apache-2.0 */
/* gc.c: removes deleted data for good. Runs one after another: first the run is marked as gone (its journals are
 * refused from then on), then its files are removed, then its rows, some at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <dirent.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "web/store/base/beneath.h"
#include "web/store/base/background_job.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"
#include "web/store/files/files.h"
#include "web/store/maintenance/maintenance.h"
#include "web/store/write/lease.h"

struct store_gc {
	struct store *s;
	const struct store_gc_opts *o;
	int64_t before_ms;
	int logdir_fd, artifacts_fd; /* -1: none */
	struct store_gc_result sum;
	struct lease lease;
};

/* Between two steps. */
static int check_gc_stop(struct store_gc *g, struct err *err)
{
	if (background_job_canceled(g->s->work))
		return err_set(err, ERR_CANCELED, "the store is closing: the next gc continues");
	return g->o->dry_run ? 0 : lease_need(&g->lease, err);
}

struct gc_run {
	char uuid[33];
	int64_t id, experiment_id, deleted_ms;
};

/* Returns true if the journal belongs to the run. */
static bool journal_names_run(int fd, const char *uuid)
{
	char head[4096];
	struct event_item item;
	struct record rec;
	struct event ev;
	size_t at = 0;
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n <= 0 || record_next(head, (size_t)n, &at, &rec) != RECORD_OK ||
	    event_open(&ev, rec.payload, rec.payload_bytes))
		return false;
	while (event_next(&ev, &item) > 0)
		if (item.kind == EVENT_HEADER)
			return event_text_equal(item.header->run_id, uuid);
	return false;
}

static int remove_journal(struct store_gc *g, int folder_fd, const char *name, const char *uuid)
{
	struct files_sum sum = { 0 };
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), rc = 0;

	if (fd < 0)
		return 0;
	if (journal_names_run(fd, uuid))
		rc = files_remove(folder_fd, name, g->o->dry_run, &sum);
	close(fd);
	g->sum.journals += sum.files;
	g->sum.journal_bytes += sum.bytes;
	return rc;
}

/* Removes all journals of the run in the folder of this one, then the folder if it is empty. */
static int remove_journals_beside(struct store_gc *g, const char *path, const char *uuid)
{
	const char *name, *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	int fd = beneath_parent(g->logdir_fd, path, false, &name), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!rc && (e = readdir(d)))
		if (e->d_name[0] != '.' && (strstr(e->d_name, "tfevents") || strstr(e->d_name, ".journal")))
			rc = remove_journal(g, fd, e->d_name, uuid);
	closedir(d);
	if (rc || g->o->dry_run || !slash)
		return rc;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	fd = beneath_parent(g->logdir_fd, folder, false, &name);
	if (fd >= 0) {
		unlinkat(fd, name, AT_REMOVEDIR); /* fails if it is not empty */
		close(fd);
	}
	return 0;
}

struct journal_paths {
	const char **items;
	size_t count;
};

/* Lists one journal path for each folder of the run. */
static int list_journal_paths(struct store_gc *g, const struct gc_run *r, struct arena *a, struct journal_paths *ret,
			      struct err *err)
{
	struct journal_paths list = { 0 };
	const char *text;
	size_t folder, before = 0;
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(g->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_paths_of_run, err, "i", r->id);
	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		text = db_text(a, q, COL_paths_of_run_path);
		folder = strrchr(text, '/') ? (size_t)(strrchr(text, '/') - text) : 0;
		if (list.count && folder == before && !strncmp(list.items[list.count - 1], text, folder))
			continue;
		list_push(a, &list.items, &list.count, text);
		before = folder;
	}
	readers_give(g->s, d);
	*ret = list;
	return rc;
}

static int remove_journals(struct store_gc *g, const struct gc_run *r, struct err *err)
{
	struct arena *a = arena_new();
	struct journal_paths paths = { 0 };
	size_t i;
	int rc, failed = 0;

	rc = list_journal_paths(g, r, a, &paths, err);
	for (i = 0; i < paths.count && !rc && !failed; i++)
		failed = remove_journals_beside(g, paths.items[i], r->uuid);
	arena_free(a);
	return failed ? err_set_errno(err, failed, "cannot remove journals of run %s", r->uuid) : rc;
}

/* Counts objects that rows name; the objects are removed later by the sweep. */
static int count_objects(struct store_gc *g, const char *path, struct err *err)
{
	return artifact_sum(g->s, path, &g->sum.artifacts, &g->sum.artifact_bytes, err);
}

static int remove_artifacts(struct store_gc *g, const struct gc_run *r, struct err *err)
{
	struct files_sum sum = { 0 };
	char experiment[24], path[64];
	int fd, rc;

	snprintf(experiment, sizeof(experiment), "%lld", (long long)r->experiment_id);
	snprintf(path, sizeof(path), "%s/%s", experiment, r->uuid);
	rc = count_objects(g, path, err);
	if (rc || g->artifacts_fd < 0)
		return rc;
	fd = openat(g->artifacts_fd, experiment, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	rc = files_remove(fd, r->uuid, g->o->dry_run, &sum);
	close(fd);
	g->sum.artifacts += sum.files;
	g->sum.artifact_bytes += sum.bytes;
	if (!g->o->dry_run)
		unlinkat(g->artifacts_fd, experiment, AT_REMOVEDIR);
	return rc ? err_set_errno(err, rc, "cannot remove artifacts of run %s", r->uuid) : 0;
}

static int purge_run_rows(struct store_gc *g, const struct gc_run *r, bool once, struct err *err)
{
	struct ingest_op op = {
		.kind = &change_purge_run, .run = r->uuid, .before_ms = g->before_ms, .author = g->o->author
	};
	struct ingest_result res = { .more = true };
	int rc = 0;

	while (res.more && !rc) {
		rc = check_gc_stop(g, err);
		if (rc)
			return rc;
		rc = ingest_submit(g->s, &op, NULL, &res, err);
		if (once)
			break;
	}
	return rc;
}

/* gone: the run is marked as gone already. */
static int remove_run(struct store_gc *g, const struct gc_run *r, bool gone, struct err *err)
{
	int rc = gone || g->o->dry_run ? 0 : purge_run_rows(g, r, true, err);

	/* The run was restored in the meantime. */
	if (rc == ERR_EXISTS)
		return 0;
	if (!rc)
		rc = remove_artifacts(g, r, err);
	if (!rc && g->o->journals && g->logdir_fd >= 0)
		rc = remove_journals(g, r, err);
	if (!rc && !g->o->dry_run)
		rc = purge_run_rows(g, r, false, err);
	if (!rc)
		g->sum.runs++;
	return rc;
}

/* 1: the next run after *at; 0: none. */
static int next_deleted_run(struct store_gc *g, bool gone, struct gc_run *at, struct err *err)
{
	struct db_rows *q;
	int64_t points = 0;
	struct db *d;
	int rc = readers_take(g->s, &d, err);

	if (rc)
		return rc;
	rc = gone ? db_start(d, &q, DB_gone_next, err, "i", at->id)
		  : db_start(d, &q, DB_deleted_next, err, "iii", g->before_ms, at->deleted_ms, at->id);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		snprintf(at->uuid, sizeof(at->uuid), "%s", db_str(q, COL_deleted_next_uuid));
		at->id = db_i64(q, COL_deleted_next_id);
		at->experiment_id = db_i64(q, COL_deleted_next_experiment_id);
		at->deleted_ms = db_i64(q, COL_deleted_next_deleted_ms);
		db_stop(q);
		if (db_int(d, &points, DB_points_of_run, err, "i", at->id) < 0)
			rc = ERR_IO;
		g->sum.points += (uint64_t)points;
	}
	readers_give(g->s, d);
	return rc;
}

static int remove_runs(struct store_gc *g, bool gone, struct err *err)
{
	struct gc_run r = { .deleted_ms = INT64_MIN };
	int rc;

	while ((rc = next_deleted_run(g, gone, &r, err)) > 0) {
		rc = remove_run(g, &r, gone, err);
		if (rc)
			break;
	}
	return rc;
}

static int submit_purge(struct store_gc *g, const struct change_ops *kind, const char *name, struct ingest_result *res,
			struct err *err)
{
	int rc = check_gc_stop(g, err);

	if (rc)
		return rc;
	return ingest_submit(
		g->s,
		&(struct ingest_op){ .kind = kind, .name = name, .before_ms = g->before_ms, .author = g->o->author },
		NULL, res, err);
}

/* Makes the deletion final, then removes files, then rows. */
static int remove_model(struct store_gc *g, int64_t experiment, const char *uuid, struct err *err)
{
	struct ingest_result res = { .more = true };
	struct files_sum sum = { 0 };
	char folder[128];
	int fd, rc = g->o->dry_run ? 0 : submit_purge(g, &change_purge_model, uuid, &res, err);

	/* Its experiment was restored in the meantime. */
	if (rc == ERR_EXISTS)
		return 0;
	snprintf(folder, sizeof(folder), "%lld/models/%s", (long long)experiment, uuid);
	rc = rc ? rc : count_objects(g, folder, err);
	snprintf(folder, sizeof(folder), "%lld/models", (long long)experiment);
	fd = rc || g->artifacts_fd < 0 ? -1
		: openat(g->artifacts_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		rc = files_remove(fd, uuid, g->o->dry_run, &sum);
		close(fd);
		rc = rc ? err_set_errno(err, rc, "cannot remove artifacts of model %s", uuid) : 0;
		g->sum.artifacts += sum.files;
		g->sum.artifact_bytes += sum.bytes;
	}
	while (!rc && !g->o->dry_run && res.more)
		rc = submit_purge(g, &change_purge_model, uuid, &res, err);
	g->sum.models += !rc;
	return rc;
}

/* Removes empty artifact folders; other content is not the store's. */
static void remove_empty_folders(struct store_gc *g, int64_t experiment)
{
	char folder[64];

	if (g->artifacts_fd < 0 || g->o->dry_run)
		return;
	snprintf(folder, sizeof(folder), "%lld/models", (long long)experiment);
	unlinkat(g->artifacts_fd, folder, AT_REMOVEDIR);
	snprintf(folder, sizeof(folder), "%lld", (long long)experiment);
	unlinkat(g->artifacts_fd, folder, AT_REMOVEDIR);
}

static int remove_experiment(struct store_gc *g, int64_t id, struct err *err)
{
	struct ingest_result res = { .more = true };
	char name[24];
	int rc = 0;

	snprintf(name, sizeof(name), "%lld", (long long)id);
	while (!rc && !g->o->dry_run && res.more)
		rc = submit_purge(g, &change_purge_experiment, name, &res, err);
	if (rc == ERR_EXISTS)
		return 0;
	g->sum.experiments += !rc;
	if (!rc)
		remove_empty_folders(g, id);
	return rc;
}

struct gc_next {
	int64_t id, experiment;
	char uuid[64];
};

/* 1: the next row after *at; 0: none. */
static int next_gc_row(struct store_gc *g, enum db_query which, struct gc_next *at, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(g->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, which, err, "ii", g->before_ms, at->id);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		at->id = db_i64(q, COL_models_to_purge_id);
		snprintf(at->uuid, sizeof(at->uuid), "%s", db_str(q, COL_models_to_purge_uuid));
		at->experiment = db_i64(q, COL_models_to_purge_experiment_id);
		db_stop(q);
	}
	readers_give(g->s, d);
	return rc;
}

static int remove_models_and_experiments(struct store_gc *g, struct err *err)
{
	struct gc_next at = { .id = 0 };
	int rc;

	while ((rc = next_gc_row(g, DB_models_to_purge, &at, err)) > 0) {
		rc = remove_model(g, at.experiment, at.uuid, err);
		if (rc)
			return rc;
	}
	at.id = 0;
	while (!rc && (rc = next_gc_row(g, DB_experiments_to_purge, &at, err)) > 0)
		rc = remove_experiment(g, at.id, err);
	return rc;
}

/* Stops at the number of pages that were free at the start: folding frees and uses pages all the time. */
static int shrink_database(struct store_gc *g, struct err *err)
{
	struct ingest_result res = { .more = true };
	uint64_t pages = 0, target = UINT64_MAX;
	int rc = 0;

	while (res.more && pages < target && !rc) {
		rc = check_gc_stop(g, err);
		if (rc)
			return rc;
		rc = ingest_submit(g->s, &(struct ingest_op){ .kind = &change_purge_pages }, NULL, &res, err);
		if (target == UINT64_MAX)
			target = res.removed + res.durable;
		pages += res.removed;
	}
	g->sum.freed_bytes = pages * DB_PAGE_BYTES;
	return rc;
}

static int open_gc_folder(const char *path)
{
	return *path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

int store_gc(struct store *s, const struct store_gc_opts *o, struct store_gc_result *ret, struct err *err)
{
	struct store_gc g = { .s = s,
			      .o = o,
			      .before_ms = clock_wall_ms() - o->older_than_ms,
			      .logdir_fd = open_gc_folder(s->logdir),
			      .artifacts_fd = open_gc_folder(s->artifacts) };
	int rc;

	lease_init(&g.lease, s, "gc");
	rc = check_gc_stop(&g, err);
	if (!rc && !o->dry_run)
		rc = artifact_leave(s, "", err);
	if (!rc && !o->dry_run)
		rc = remove_runs(&g, true, err);
	if (!rc)
		rc = remove_runs(&g, false, err);
	if (!rc)
		rc = remove_models_and_experiments(&g, err);
	if (!rc)
		rc = artifact_sweep(s, clock_wall_ms() - o->keep_objects_ms, o->dry_run, &g.sum.objects, err);
	if (!rc && !o->dry_run)
		rc = shrink_database(&g, err);
	lease_give(&g.lease);
	if (g.logdir_fd >= 0)
		close(g.logdir_fd);
	if (g.artifacts_fd >= 0)
		close(g.artifacts_fd);
	*ret = g.sum;
	return rc;
}
