/* SPDX-License-Identifier: Apache-2.0 */
/* move.c: opens both ends of a move, then moves rows and files in steps: mark the target as incomplete, copy files
 * (each confirmed by its row, so that a retry keeps it), copy all rows in one transaction, whose rows are read back
 * before the commit. */
#include "web/store/move/move.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/terminal.h"
#include "web/store/files/artifacts.h"
#include "web/store/move/move_inside.h"
#include "web/store/points/archive.h"
#include "web/store/store.h"

/* --- the two ends --------------------------------------------------------------------------------------------- */

/* Opens the two ends of a move. An incomplete target has no store_id, so it cannot be opened; instead it has
 * the id of the source. */

#define OTHERS_S 5.0

/* Finds the places of a store's parts, without accessing them. */
static int locate_move_end(struct move_end *e, const struct move_place *p, struct err *err)
{
	const char *slash = strrchr(p->store, '/');
	size_t n = strlen(p->store);
	bool file = n > 3 && !strcmp(p->store + n - 3, ".db");
	struct store_paths paths;
	char folder[PATH_MAX];
	int rc;

	if (n >= sizeof(folder) - 32)
		return err_set(err, ERR_USAGE, "the path %.100s… is too long", p->store);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - p->store) + 1 : 1, slash ? p->store : ".");
	if (db_is_address(p->store))
		rc = store_locate(&paths, NULL, p->store, err);
	else
		rc = store_locate(&paths, file ? folder : p->store, file ? p->store : NULL, err);
	if (rc)
		return rc;
	snprintf(e->db, sizeof(e->db), "%s", paths.db);
	db_shown(e->shown, sizeof(e->shown), e->db);
	if (snprintf(e->files, sizeof(e->files), "%s", p->files ? p->files : paths.artifacts) >= (int)sizeof(e->files))
		return err_set(err, ERR_USAGE, "the path of the files is too long");
	n = strlen(e->files);
	if (n > 1 && e->files[n - 1] == '/' && e->files[n - 2] != '/')
		e->files[n - 1] = '\0';
	return 0;
}

/* Reads a text of meta: 1, 0 if there is none. */
static int read_end_text(struct move_end *e, enum db_query query, char *ret, size_t room, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(e->d, &q, query, err, "");

	if (!rc && (rc = db_next(e->d, q, err)) > 0) {
		snprintf(ret, room, "%s", db_str(q, (enum db_column)0));
		db_stop(q);
	}
	return rc;
}

static int open_objects(struct move_end *e, struct err *err)
{
	char bucket[OBJECT_BUCKET_BYTES];
	int rc;

	if (!object_is_address(e->files))
		return 0;
	rc = object_split(e->files, bucket, &e->prefix, err);
	return rc ? rc
		  : object_open(&e->objects, bucket,
				&(struct object_opts){ .scheme = object_scheme(e->files), .timeout_s = 60 }, err);
}

/* Upgrades tables of an older version. */
static int open_source_db(struct move_end *e, struct err *err)
{
	int rc, from;

	if (db_is_address(e->db)) {
		rc = db_address_upgrade(e->db, &from, err);
	} else if (access(e->db, F_OK)) {
		rc = err_set(err, ERR_NOENT, "there is no store %s", e->db);
	} else {
		rc = store_lock(&e->lock, e->db, err);
		if (!rc)
			rc = db_open_writer(&e->d, e->db, err);
		db_close(e->d);
		e->d = NULL;
	}
	if (!rc)
		rc = db_open_reader(&e->d, e->db, err);
	return rc ? rc : db_run(e->d, DB_begin_read, err, "");
}

int move_open_from(struct move_end *e, const struct move_place *p, struct err *err)
{
	char known[PATH_MAX];
	struct stat sb;
	int rc;

	if (!db_is_address(p->store) && stat(p->store, &sb))
		return err_set_errno(err, ENOENT, "%s", p->store);
	rc = locate_move_end(e, p, err);
	if (!rc)
		rc = open_source_db(e, err);
	if (!rc && (rc = read_end_text(e, DB_store_id, e->id, sizeof(e->id), err)) == 0)
		rc = err_set(err, ERR_USAGE,
			     "%s is an incomplete copy of a store: finish the dptrack migrate that was writing it",
			     e->shown);
	if (rc > 0)
		rc = read_end_text(e, DB_artifacts_place, known, sizeof(known), err);
	if (rc == 0 && !p->files)
		rc = artifacts_recorded(e->d, e->db, known, err);
	if (rc > 0 && !p->files)
		snprintf(e->files, sizeof(e->files), "%s", known);
	return rc < 0 ? rc : open_objects(e, err);
}

/* --- the target --------------------------------------------------------------------------------------------- */

static int fail_in_use(struct move_end *e, struct err *err)
{
	return err_set(err, ERR_EXISTS, "%s already has a store: choose a new path", e->shown);
}

static int has_any_row(void *arg, const struct db_row *r, struct err *err)
{
	bool first = !strcmp(r->table->name, "experiment") && !r->values[0].i; /* every store begins with it */

	return first ? 0 : fail_in_use(arg, err);
}

/* The folder for the files must not have any. */
static int check_folder(const struct move_end *from, const struct move_end *to, struct err *err)
{
	if (!strcmp(from->files, to->files))
		return !from->objects ? 0 :
		       err_set(err, ERR_USAGE, "the files of both would be objects of %s, which one's gc would take "
			       "from the other: use another prefix with --artifacts", to->files);
	if (to->objects || rmdir(to->files) == 0 || access(to->files, F_OK))
		return 0;
	return err_set(err, ERR_EXISTS, "%s already exists: choose a new path for the files with --artifacts",
		       to->files);
}

/* Marks an empty store as an incomplete copy of the source. */
static int mark_move_target(struct move_end *e, const struct move_end *from, struct err *err)
{
	char record[2 * PATH_MAX + 2];
	int rc = db_run(e->d, DB_begin_long, err, "");

	if (!rc)
		rc = tables_walk(e->d, has_any_row, e, err);
	if (!rc)
		rc = check_folder(from, e, err);
	if (!rc)
		rc = db_run(e->d, DB_meta_forget, err, "t", "store_id");
	if (!rc)
		rc = db_run(e->d, DB_experiments_forget, err, "");
	if (!rc)
		rc = db_run(e->d, DB_moving_put, err, "t", from->id);
	if (!rc && e->objects)
		rc = db_run(e->d, DB_artifacts_place_put, err, "t", e->files);
	else if (!rc && !(rc = artifacts_record(record, sizeof(record), e->db, e->files, err)))
		rc = db_run(e->d, DB_files_place_put, err, "t", record);
	return db_end(e->d, rc, err);
}

/* Closed connections still count for a moment. */
static int wait_for_other_writers(struct move_end *e, struct err *err)
{
	double until_s = clock_mono_s() + OTHERS_S;
	int64_t n = 0;
	int rc;

	while ((rc = db_int(e->d, &n, DB_move_others, err, "")) > 0 && n && clock_mono_s() < until_s)
		clock_sleep_s(0.05);
	if (rc > 0 && n)
		rc = err_set(err, ERR_BUSY, "%s: another dptrack is using it: stop it first", e->shown);
	return rc;
}

static int guard_move_target(struct move_end *e, struct err *err)
{
	int64_t n = 0;
	int rc;

	if (!db_is_address(e->db))
		return 0;
	rc = wait_for_other_writers(e, err);
	if (rc > 0)
		rc = db_open_reader(&e->guard, e->db, err);
	if (rc >= 0)
		rc = db_run(e->guard, DB_begin_read, err, "");
	if (!rc && (rc = db_int(e->guard, &n, DB_move_mine, err, "")) > 0 && !n)
		rc = err_set(err, ERR_BUSY, "%s: another dptrack migrate is writing it", e->shown);
	return rc < 0 ? rc : 0;
}

static int open_target_db(struct move_end *e, struct err *err)
{
	int version = 0, rc;

	if (!db_is_address(e->db)) {
		rc = store_lock(&e->lock, e->db, err);
	} else {
		rc = db_address_version(e->db, &version, err);
		if (!rc && !version)
			rc = db_address_init(e->db, err);
	}
	if (!rc)
		rc = db_open_writer(&e->d, e->db, err);
	return rc ? rc : guard_move_target(e, err);
}

int move_open_to(struct move_end *e, const struct move_place *p, const struct move_end *from, struct err *err)
{
	char source[40] = "";
	int rc = locate_move_end(e, p, err);

	if (!rc && !strcmp(e->db, from->db))
		rc = err_set(err, ERR_USAGE, "%s: source and target are the same store", e->shown);
	if (!rc)
		rc = open_objects(e, err);
	if (!rc)
		rc = open_target_db(e, err);
	if (!rc && (rc = read_end_text(e, DB_moving_get, source, sizeof(source), err)) > 0) {
		e->begun = true;
		rc = !strcmp(source, from->id) ? 0 :
		     err_set(err, ERR_EXISTS,
			     "%s is an incomplete copy of another store: remove it, or choose a new path", e->shown);
	} else if (!rc) {
		rc = mark_move_target(e, from, err);
	}
	return rc;
}

void move_close(struct move_end *e)
{
	if (e->d && db_in_transaction(e->d))
		db_run(e->d, DB_rollback, NULL, "");
	db_close(e->d);
	db_close(e->guard);
	archives_free(e->archives);
	object_close(e->objects);
	store_close(e->lock);
}

struct move_filling {
	struct move_end *to;
	struct dump dump; /* dump of the source */
	uint64_t rows;
	struct terminal_progress progress;
};

static int copy_moved_row(void *arg, const struct db_row *r, struct err *err)
{
	struct move_filling *f = arg;
	int rc = dump_row(&f->dump, r, err);

	f->rows++;
	terminal_progress_show(&f->progress, f->rows);
	return rc ? rc : tables_put(f->to->d, r, err);
}

static int dump_files(struct dump *d, const struct move_files *f, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < f->n && !rc; i++)
		rc = dump_file(d, f->list[i].path, f->list[i].bytes, f->list[i].sha256, err);
	return rc;
}

/* Reads the target's rows in the transaction that wrote them, and its files by their rows. */
static int digest_target(struct move_end *to, char ret[65], struct err *err)
{
	struct db_rows *q;
	struct dump d;
	int rc;

	dump_init(&d);
	rc = tables_walk(to->d, dump_row, &d, err);
	if (!rc)
		rc = db_start(to->d, &q, DB_artifact_all, err, "");
	while (!rc && (rc = db_next(to->d, q, err)) > 0)
		rc = dump_file(&d, db_str(q, COL_artifact_all_path), (uint64_t)db_i64(q, COL_artifact_all_bytes),
			       db_str(q, COL_artifact_all_sha256), err);
	if (!rc)
		rc = dump_end(&d, ret, err);
	dump_done(&d);
	return rc;
}

/* Inside the target's transaction. */
static int fill_move_target(struct move_filling *f, struct move_end *from, const struct move_files *files,
			    char ret_sha256[65], struct err *err)
{
	char arrived[65];
	int rc = move_walk(from, copy_moved_row, f, err);

	if (!rc)
		rc = tables_put_end(f->to->d, err);
	if (!rc)
		rc = dump_files(&f->dump, files, err);
	if (!rc)
		rc = dump_end(&f->dump, ret_sha256, err);
	if (!rc)
		rc = digest_target(f->to, arrived, err);
	if (!rc && strcmp(arrived, ret_sha256))
		rc = err_set(err, ERR_CORRUPT, "%s: the copy differs from the source: empty it and start again",
			     f->to->shown);
	if (!rc)
		rc = db_run(f->to->d, DB_meta_forget, err, "t", "moving");
	return rc ? rc : db_run(f->to->d, DB_store_id_put, err, "t", from->id);
}

static int move_rows(struct move_end *from, struct move_end *to, const struct move_files *files,
		     struct move_result *ret, struct err *err)
{
	struct move_filling f = { .to = to };
	int rc = db_run(to->d, DB_begin_long, err, "");

	dump_init(&f.dump);
	terminal_progress_begin(&f.progress, "rows copied", 0);
	if (!rc)
		rc = fill_move_target(&f, from, files, ret->sha256, err);
	terminal_progress_clear(&f.progress);
	rc = db_end(to->d, rc, err);
	dump_done(&f.dump);
	ret->rows = f.rows;
	if (!rc) {
		db_run(to->d, DB_statistics, NULL, "");
		db_checkpoint(to->d, true);
	}
	return rc;
}

int move_store(const struct move_place *from, const struct move_place *to, struct move_result *ret, struct err *err)
{
	struct move_result res = { .rows = 0 };
	struct move_end a = { .begun = false }, b = { .begun = false };
	struct move_files files = { .n = 0 };
	double began_s = clock_mono_s();
	int rc = move_open_from(&a, from, err);

	if (!rc)
		rc = move_open_to(&b, to, &a, err);
	if (!rc)
		rc = move_files_list(&files, &a, err);
	if (!rc)
		rc = move_files_copy(&files, &a, &b, &res, err);
	if (!rc)
		rc = move_rows(&a, &b, &files, &res, err);
	move_files_done(&files);
	move_close(&b);
	move_close(&a);
	if (rc)
		return rc;
	res.seconds = clock_mono_s() - began_s;
	*ret = res;
	return 0;
}

int move_dump(const struct move_place *place, int (*sink)(void *arg, const char *text, size_t n, struct err *err),
	      void *arg, char ret_sha256[65], struct err *err)
{
	struct move_end e = { .begun = false };
	struct move_files files = { .n = 0 };
	struct dump d;
	int rc = move_open_from(&e, place, err);

	dump_init(&d);
	d.sink = sink;
	d.arg = arg;
	if (!rc)
		rc = move_files_list(&files, &e, err);
	if (!rc)
		rc = move_files_read(&files, &e, err);
	if (!rc)
		rc = move_walk(&e, dump_row, &d, err);
	if (!rc)
		rc = dump_files(&d, &files, err);
	if (!rc)
		rc = dump_end(&d, ret_sha256, err);
	dump_done(&d);
	move_files_done(&files);
	move_close(&e);
	return rc;
}
