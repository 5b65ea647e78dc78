/* backup_rows.c: copies rows of a database to a file. The file gets its final name only when it is complete. One
 * process at a time makes a backup. */
#include "web/store/maintenance/backup_rows.h"

#include "web/store/base/parts.h"
#include "web/store/base/background_job.h"
#include "web/store/db/readers.h"
#include "web/store/db/tables.h"
#include "web/store/write/lease.h"

struct copying {
	struct store *s;
	struct db *to;
	struct lease lease;
};

static int copy_row(void *arg, const struct db_row *r, struct err *err)
{
	struct copying *c = arg;
	int rc = lease_need(&c->lease, err);

	if (background_job_canceled(c->s->work))
		return err_set(err, ERR_CANCELED, "the store is closing: there is no backup");
	return rc ? rc : tables_put(c->to, r, err);
}

/* Data of the place: files of the backup are next to it, or the same objects. */
static int copy_files(struct copying *c, struct db *from, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(from, &q, DB_artifacts_place, err, "");

	if (!rc && (rc = db_next(from, q, err)) > 0) {
		rc = db_run(c->to, DB_artifacts_place_put, err, "t", db_str(q, COL_artifacts_place_value));
		db_stop(q);
	}
	if (!rc)
		rc = db_start(from, &q, DB_artifact_all, err, "");
	while (!rc && (rc = db_next(from, q, err)) > 0)
		rc = db_run(c->to, DB_artifact_put, err, "tiitt", db_str(q, COL_artifact_all_path),
			    db_i64(q, COL_artifact_all_bytes), db_i64(q, COL_artifact_all_time_ns),
			    db_str(q, COL_artifact_all_sha256), db_str(q, COL_artifact_all_object));
	if (!rc)
		rc = db_start(from, &q, DB_archive_all, err, "");
	while (!rc && (rc = db_next(from, q, err)) > 0)
		rc = db_run(c->to, DB_archive_put, err, "itit", db_i64(q, COL_archive_all_run_id),
			    db_str(q, COL_archive_all_object), db_i64(q, COL_archive_all_bytes),
			    db_str(q, COL_archive_all_sha256));
	return rc;
}

/* In a transaction of the file. */
static int copy_all(struct copying *c, struct db *from, struct err *err)
{
	int rc = db_run(c->to, DB_meta_forget, err, "t", "store_id");

	if (!rc)
		rc = db_run(c->to, DB_store_id_put, err, "t", c->s->id);
	if (!rc)
		rc = db_run(c->to, DB_experiments_forget, err, "");
	if (!rc)
		rc = tables_walk(from, copy_row, c, err);
	return rc ? rc : copy_files(c, from, err);
}

int backup_rows(struct store *s, const char *path, struct err *err)
{
	struct copying c = { .s = s };
	struct db *from;
	int rc;

	lease_init(&c.lease, s, "backup");
	rc = lease_need(&c.lease, err);
	if (!rc)
		rc = db_open_writer(&c.to, path, err);
	if (!rc)
		rc = readers_take(s, &from, err);
	if (!rc) {
		rc = db_run(c.to, DB_begin_long, err, "");
		if (!rc)
			rc = copy_all(&c, from, err);
		if (!rc)
			rc = db_run(c.to, DB_commit, err, "");
		readers_give(s, from);
	}
	if (!rc)
		db_checkpoint(c.to, true);
	db_close(c.to);
	lease_give(&c.lease);
	return rc;
}
