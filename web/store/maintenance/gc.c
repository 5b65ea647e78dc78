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
#include "web/store/maintenance/retention.h"
#include "web/store/write/lease.h"

struct store_gc {
	struct store *s;
	const struct store_gc_opts *o;
	int64_t before_ms;
	int logdir_fd; /* -1: none */
	struct store_gc_result sum;
	struct lease lease;
	struct map *registered; /* ids that versions of registered models name */
	int64_t experiment;	/* -1: all */
	struct retention_rules rules;
};

/* Between two steps. */
static int check_gc_stop(struct store_gc *g, struct err *err)
{
	if (background_job_canceled(g->s->work) || (g->o->stop && g->o->stop(g->o->arg)))
		return err_set(err, ERR_CANCELED, "the store is closing: the next gc continues");
	return g->o->dry_run ? 0 : lease_need(&g->lease, err);
}

struct gc_run {
	char uuid[33];
	int64_t id, experiment_id, deleted_ms;
	int64_t before_ms; /* it must have been deleted before */
	uint64_t points;
};

static bool is_registered(const struct store_gc *g, const char *uuid)
{
	return map_get(g->registered, uuid + (*uuid == 'm' ? 2 : 0), 32);
}

/* Whether a deleted run or model stays, because a version of a registered model names it; counts it. */
static bool stays_registered(struct store_gc *g, const char *uuid)
{
	const bool named = is_registered(g, uuid);

	g->sum.kept += named;
	return named;
}

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

/* Removes the files of a run or model that is gone. */
static int remove_artifacts(struct store_gc *g, const char *path, struct err *err)
{
	struct files_sum sum = { 0 };
	int rc = artifact_remove(g->s, path, g->o->dry_run, &sum, err);

	g->sum.artifacts += sum.files;
	g->sum.artifact_bytes += sum.bytes;
	return rc;
}

static int purge_run_rows(struct store_gc *g, const struct gc_run *r, bool once, struct err *err)
{
	struct ingest_op op = {
		.kind = &change_purge_run, .run = r->uuid, .before_ms = r->before_ms, .author = g->o->author
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
	char path[64];

	snprintf(path, sizeof(path), "%lld/%s", (long long)r->experiment_id, r->uuid);
	/* The run was restored in the meantime. */
	if (rc == ERR_EXISTS)
		return 0;
	if (!rc)
		rc = remove_artifacts(g, path, err);
	if (!rc && g->o->journals && g->logdir_fd >= 0)
		rc = remove_journals(g, r, err);
	if (!rc && !g->o->dry_run)
		rc = purge_run_rows(g, r, false, err);
	if (!rc) {
		g->sum.runs++;
		g->sum.points += r->points;
	}
	return rc;
}

/* Reads the run of a query's first row: 1, 0 no row, or negative. */
static int read_gc_run(struct db *d, struct db_rows *q, struct gc_run *at, struct err *err)
{
	int64_t points = 0;
	int rc = db_next(d, q, err);

	if (rc > 0) {
		snprintf(at->uuid, sizeof(at->uuid), "%s", db_str(q, COL_deleted_next_uuid));
		at->id = db_i64(q, COL_deleted_next_id);
		at->experiment_id = db_i64(q, COL_deleted_next_experiment_id);
		at->deleted_ms = db_time(q, COL_deleted_next_deleted_ms);
		db_stop(q);
		if (db_int(d, &points, DB_points_of_run, err, "i", at->id) < 0)
			rc = ERR_IO;
		at->points = (uint64_t)points;
	}
	return rc;
}

/* 1: the next run after *at; 0: none. */
static int next_deleted_run(struct store_gc *g, bool gone, struct gc_run *at, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(g->s, &d, err);

	if (rc)
		return rc;
	rc = gone ? db_start(d, &q, DB_gone_next, err, "i", at->id)
		  : db_start(d, &q, DB_deleted_next, err, "iii", g->before_ms, at->deleted_ms, at->id);
	rc = rc ? rc : read_gc_run(d, q, at, err);
	readers_give(g->s, d);
	return rc;
}

static int remove_runs(struct store_gc *g, bool gone, struct err *err)
{
	struct gc_run r = { .deleted_ms = INT64_MIN, .before_ms = g->before_ms };
	int rc;

	while ((rc = next_deleted_run(g, gone, &r, err)) > 0) {
		if (!gone && ((g->experiment >= 0 && r.experiment_id != g->experiment) || stays_registered(g, r.uuid)))
			continue;
		rc = remove_run(g, &r, gone, err);
		if (rc)
			break;
	}
	return rc;
}

/* One run by its id. ERR_NOENT, ERR_GONE. */
static int find_gc_run(struct store_gc *g, const char *uuid, struct gc_run *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(g->s, &d, err);

	if (rc)
		return rc;
	*ret = (struct gc_run){ .before_ms = g->before_ms };
	rc = db_start(d, &q, DB_deleted_one, err, "t", uuid);
	rc = rc ? rc : read_gc_run(d, q, ret, err);
	rc = rc ? rc : readers_missing(d, uuid, err);
	readers_give(g->s, d);
	return rc < 0 ? rc : 0;
}

/* Whether the caller administers the experiment: ERR_NOENT as of an unknown run. */
static int judge_gc_run(struct store *caller, const struct gc_run *r, const char *uuid, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(caller, &d, err);

	if (rc)
		return rc;
	rc = permitted(d, r->experiment_id) ? db_start(d, &q, DB_experiment_name, err, "i", r->experiment_id) : 1;
	if (rc > 0)
		rc = err_set(err, ERR_NOENT, "there is no run %s", uuid);
	else if (!rc && (rc = db_next(d, q, err)) > 0) {
		const char *name = db_str(q, COL_experiment_name_name);

		rc = permitted_level(d, name) >= GRANT_ADMIN
			     ? 0
			     : err_set(err, ERR_DENIED, "this token is not an admin of '%.100s'", name);
		db_stop(q);
	}
	readers_give(caller, d);
	return rc;
}

/* Removes the runs that were named, if all may be removed. */
static int remove_named_runs(struct store_gc *g, struct store *caller, struct err *err)
{
	struct gc_run r;
	int rc = 0;

	for (size_t i = 0; i < g->o->run_count && !rc; i++) {
		const char *uuid = g->o->runs[i];

		rc = find_gc_run(g, uuid, &r, err);
		if (caller->restriction && (rc == ERR_NOENT || rc == ERR_GONE)) /* maybe of a hidden experiment */
			return err_set(err, ERR_NOENT, "there is no run %s", uuid);
		rc = rc ? rc : judge_gc_run(caller, &r, uuid, err);
		if (!rc && (r.deleted_ms == INT64_MIN || r.deleted_ms > g->before_ms))
			rc = err_set(err, ERR_EXISTS, "run %s is not in the trash: delete it first", uuid);
		if (!rc && is_registered(g, uuid))
			rc = err_set(err, ERR_EXISTS,
				     "a version of a registered model has files of run %s: delete that "
				     "version first",
				     uuid);
	}
	for (size_t i = 0; i < g->o->run_count && !rc; i++) {
		rc = find_gc_run(g, g->o->runs[i], &r, err);
		rc = rc == ERR_GONE ? 0 : rc ? rc : remove_run(g, &r, false, err);
	}
	return rc;
}

/* Submits a change that removes a model or an experiment that was deleted before then. */
static int submit_purge(struct store_gc *g, const struct ingest_op *what, struct ingest_result *res, struct err *err)
{
	struct ingest_op op = *what;
	int rc = check_gc_stop(g, err);

	op.author = g->o->author;
	return rc ? rc : ingest_submit(g->s, &op, NULL, res, err);
}

/* Makes the deletion final, then removes files, then rows. */
static int remove_model(struct store_gc *g, int64_t experiment, const struct ingest_op *op, struct err *err)
{
	struct ingest_result res = { .more = true };
	char folder[128];
	int rc = g->o->dry_run ? 0 : submit_purge(g, op, &res, err);

	/* Its experiment was restored in the meantime. */
	if (rc == ERR_EXISTS)
		return 0;
	snprintf(folder, sizeof(folder), "%lld/models/%s", (long long)experiment, op->name);
	rc = rc ? rc : remove_artifacts(g, folder, err);
	while (!rc && !g->o->dry_run && res.more)
		rc = submit_purge(g, op, &res, err);
	g->sum.models += !rc;
	return rc;
}

static int remove_experiment(struct store_gc *g, int64_t id, int64_t before_ms, struct err *err)
{
	struct ingest_result res = { .more = true };
	char name[24];
	const struct ingest_op op = { .kind = &change_purge_experiment, .name = name, .before_ms = before_ms };
	int rc = 0;

	snprintf(name, sizeof(name), "%lld", (long long)id);
	while (!rc && !g->o->dry_run && res.more)
		rc = submit_purge(g, &op, &res, err);
	if (rc == ERR_EXISTS)
		return 0;
	g->sum.experiments += !rc;
	return rc;
}

struct gc_next {
	int64_t id, experiment;
	char uuid[64];
};

/* 1: the next row after *at, deleted before then; 0: none. */
static int next_gc_row(struct store_gc *g, enum db_query which, int64_t before_ms, struct gc_next *at, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(g->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, which, err, "ii", before_ms, at->id);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		at->id = db_i64(q, COL_models_to_purge_id);
		snprintf(at->uuid, sizeof(at->uuid), "%s", db_str(q, COL_models_to_purge_uuid));
		at->experiment = db_i64(q, COL_models_to_purge_experiment_id);
		db_stop(q);
	}
	readers_give(g->s, d);
	return rc;
}

static int remove_models(struct store_gc *g, struct err *err)
{
	struct ingest_op op = { .kind = &change_purge_model, .before_ms = g->before_ms };
	struct gc_next at = { .id = 0 };
	int rc;

	while ((rc = next_gc_row(g, DB_models_to_purge, g->before_ms, &at, err)) > 0) {
		op.name = at.uuid;
		if ((g->experiment >= 0 && at.experiment != g->experiment) || stays_registered(g, at.uuid))
			continue;
		rc = remove_model(g, at.experiment, &op, err);
		if (rc)
			return rc;
	}
	return rc;
}

/* The time before which a thing of the experiment must have been deleted. */
static int64_t trash_before_ms(const struct store_gc *g, int64_t experiment)
{
	const struct retention_rule *own = retention_own_rule(&g->rules, experiment), *r = own ? own : &g->rules.all;
	int64_t by_rule_ms =
		r->trash_ms == RETENTION_OFF || g->o->what == GC_TRASH ? INT64_MIN : clock_wall_ms() - r->trash_ms;

	return g->o->what == GC_RULES || by_rule_ms > g->before_ms ? by_rule_ms : g->before_ms;
}

static int remove_experiments(struct store_gc *g, struct err *err)
{
	struct gc_next at = { .id = 0 };
	int rc;

	while ((rc = next_gc_row(g, DB_experiments_to_purge, INT64_MAX, &at, err)) > 0) {
		if (g->experiment >= 0 && at.id != g->experiment)
			continue;
		rc = remove_experiment(g, at.id, trash_before_ms(g, at.id), err);
		if (rc)
			return rc;
	}
	return rc;
}

/* --- what the rules say ----------------------------------------------------------------------------------------- */

/* Records that files go, then removes them. */
static int remove_step(struct store_gc *g, struct retention_step *step, const char *folder, struct err *err)
{
	const struct ingest_op op = { .kind = &retention_change_purge, .author = g->o->author, .more = step };
	struct ingest_result res = { .removed = step->files.count };
	int rc = step->files.count ? check_gc_stop(g, err) : 0;

	for (size_t i = 0; i < step->files.count && g->o->dry_run; i++)
		res.durable += (uint64_t)step->files.items[i].bytes;
	if (!rc && step->files.count && !g->o->dry_run) {
		rc = ingest_submit(g->s, &op, NULL, &res, err);
		rc = rc ? rc : artifact_leave(g->s, folder, err);
	}
	g->sum.artifacts += rc ? 0 : res.removed;
	g->sum.artifact_bytes += rc ? 0 : res.durable;
	step->files.count = 0;
	return rc;
}

/* Removes the files of a run or model that go, some at a time. */
static int remove_unit_files(struct store_gc *g, const struct retention_plan *p, const struct retention_unit *u,
			     struct err *err)
{
	const struct retention_experiment *e = &p->experiments[u->experiment];
	struct artifact_item items[RETENTION_STEP];
	struct retention_step step = {
		.uuid = u->uuid, .experiment = e->name, .model = u->model, .files.items = items
	};
	char folder[96], age[64];
	int rc = 0;

	snprintf(folder, sizeof(folder), "%lld/%s%s", (long long)e->id, u->model ? "models/" : "", u->uuid);
	snprintf(age, sizeof(age), "retention: older than %.6g days", (double)e->rule.artifact_ms / 86400e3);
	for (size_t i = u->first; i < u->first + u->count && !rc; i++) {
		const struct retention_file *f = &p->files[i];
		const char *why = f->over_quota ? "retention: over the quota" : age;

		if (!f->doomed)
			continue;
		if (step.files.count == RETENTION_STEP ||
		    (step.files.count && (step.version != f->version || strcmp(step.why, why) != 0)))
			rc = remove_step(g, &step, folder, err);
		step.version = f->version;
		step.why = why;
		items[step.files.count++] = f->of;
	}
	return rc ? rc : remove_step(g, &step, folder, err);
}

static int remove_unit_of_trash(struct store_gc *g, const struct retention_plan *p, const struct retention_unit *u,
				struct err *err)
{
	const int64_t id = p->experiments[u->experiment].id;
	struct gc_run r;
	int rc;

	if (u->model)
		return remove_model(g, id,
				    &(struct ingest_op){ .kind = &change_purge_model,
							 .name = u->uuid,
							 .before_ms = trash_before_ms(g, id) },
				    err);
	rc = find_gc_run(g, u->uuid, &r, err);
	r.before_ms = trash_before_ms(g, id);
	return rc == ERR_GONE || rc == ERR_NOENT ? 0 : rc ? rc : remove_run(g, &r, false, err);
}

static bool stop_plan(void *arg)
{
	return check_gc_stop(arg, NULL) == ERR_CANCELED;
}

static int apply_rules(struct store_gc *g, struct err *err)
{
	const struct retention_plan_opts o = {
		.rules = g->rules, .only = g->experiment >= 0 ? &g->experiment : NULL, .stop = stop_plan, .arg = g
	};
	struct arena *a = arena_new();
	struct retention_plan p;
	int rc = retention_plan(g->s, &o, a, &p, err);

	for (size_t i = 0; i < p.unit_count && !rc; i++) {
		const struct retention_unit *u = &p.units[i];

		if (g->experiment >= 0 && p.experiments[u->experiment].id != g->experiment)
			continue;
		if (g->o->what == GC_ALL && u->deleted_ms != INT64_MIN && u->deleted_ms <= g->before_ms &&
		    !is_registered(g, u->uuid))
			continue; /* removed as trash, or counted */
		rc = u->trash ? remove_unit_of_trash(g, &p, u, err) : remove_unit_files(g, &p, u, err);
	}
	arena_free(a);
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

/* Removes the trash, whole or of one experiment. */
static int remove_trash(struct store_gc *g, struct err *err)
{
	int rc = remove_runs(g, false, err);

	return rc ? rc : remove_models(g, err);
}

/* Finishes what a killed process began, and returns what it freed. */
static int finish_interrupted(struct store_gc *g, struct err *err)
{
	int rc = artifact_leave(g->s, "", err);

	return rc ? rc : remove_runs(g, true, err);
}

/* Removes what the options ask for, in the order that store_gc promises. */
static int run_collection(struct store_gc *g, struct store *caller, struct arena *a, struct err *err)
{
	const struct store_gc_opts *o = g->o;
	const bool whole = !o->experiment && !o->runs;
	int rc = check_gc_stop(g, err);

	if (!rc && caller->restriction && whole)
		rc = err_set(err, ERR_DENIED, "an admin of all experiments is needed here");
	if (!rc && o->experiment)
		rc = retention_experiment_id(caller, o->experiment, &g->experiment, err);
	rc = rc ? rc : retention_rules(g->s, a, &g->rules, err);
	rc = rc ? rc : retention_registered(g->s, g->registered, err);
	if (!rc && !o->dry_run && whole)
		rc = finish_interrupted(g, err);
	if (!rc && o->runs)
		rc = remove_named_runs(g, caller, err);
	else if (!rc && o->what != GC_RULES)
		rc = remove_trash(g, err);
	if (!rc && !o->runs && o->what != GC_TRASH)
		rc = apply_rules(g, err);
	if (!rc && !o->runs)
		rc = remove_experiments(g, err);
	if (!rc && whole)
		rc = artifact_sweep(g->s, clock_wall_ms() - o->keep_objects_ms, o->dry_run, &g->sum.objects, err);
	return rc || o->dry_run ? rc : shrink_database(g, err);
}

int store_gc(struct store *s, const struct store_gc_opts *o, struct store_gc_result *ret, struct err *err)
{
	struct store_gc g = { .s = store_whole(s),
			      .o = o,
			      .before_ms = clock_wall_ms() - o->older_than_ms,
			      .logdir_fd = *s->logdir ? open(s->logdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1,
			      .registered = map_new(1),
			      .experiment = -1,
			      .sum.reused = db_is_address(s->path) };
	struct arena *a = arena_new();
	int rc;

	lease_init(&g.lease, g.s, "gc");
	rc = run_collection(&g, s, a, err);
	lease_give(&g.lease);
	if (g.logdir_fd >= 0)
		close(g.logdir_fd);
	map_free(g.registered);
	arena_free(a);
	*ret = g.sum;
	return rc;
}
