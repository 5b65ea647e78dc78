/* archive_change.c: replaces rows of chunks by an object, and back, as kinds of changes, each in one transaction
 * with the run locked. Makes no request. */
#include <stdio.h>
#include <string.h>

#include "web/store/archive/archive_inside.h"
#include "web/store/db/batch.h"
#include "web/store/write/change.h"

#define CHUNK_FMT "iiiiddb"
#define BATCH_BYTES ((size_t)8 << 20)

static int copy_archive(struct change *c, const struct ingest_op *op, struct err *err)
{
	(void)err;
	c->op = (struct ingest_op){ .kind = op->kind, .more = op->more };
	return 0;
}

/* 1: the run, locked; 0: refused. */
static int find_unarchived_run(struct state *st, struct change *c, struct state_run **ret, struct err *err)
{
	const struct archive *a = c->op.more;
	struct err why = ERR_INIT;
	int rc = state_run(st, a->run, ret, &why);

	if (rc == ERR_NOENT || rc == ERR_GONE)
		return change_refuse(c, rc, "%s", why.text);
	if (rc)
		*err = why;
	return rc ? rc : 1;
}

/* Reads the name of the run's object: 1, 0 if there is none. */
static int read_archive_name(struct db *d, int64_t run_id, char ret[ARCHIVE_NAME_BYTES], struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_archive_get, err, "i", run_id);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	snprintf(ret, ARCHIVE_NAME_BYTES, "%s", db_str(q, COL_archive_get_object));
	db_stop(q);
	return 1;
}

static bool run_has_ended(const struct state_run *r)
{
	return strcmp(r->status, "running") && strcmp(r->status, "scheduled") && r->deleted_ms == INT64_MIN;
}

/* Only folding changes chunks, and it moves points from the log. */
static int is_same_archive(struct db *d, const struct archive *a, struct err *err)
{
	char object[ARCHIVE_NAME_BYTES];
	struct archive_totals t;
	int rc = read_archive_name(d, a->run_id, object, err);

	if (rc)
		return rc < 0 ? rc : 0;
	rc = archive_read_totals(d, a->run_id, &t, err);
	return rc ? rc : !t.logged && t.chunks == a->totals.chunks && t.points == a->totals.points;
}

/* Names the object and deletes the rows of the run's chunks, unless the run changed since it was packed. */
static int put_archive(struct state *st, struct change *c, struct err *err)
{
	const struct archive *a = c->op.more;
	struct db *d = state_db(st);
	struct state_run *r;
	int64_t one;
	int rc = find_unarchived_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	rc = run_has_ended(r) ? is_same_archive(d, a, err) : 0;
	if (rc <= 0)
		return rc ? rc : change_refuse(c, ERR_EXISTS, "run %s has changed", a->run);
	rc = db_int(d, &one, DB_object_named, err, "t", a->object.name);
	if (rc <= 0)
		return rc ? rc : change_refuse(c, ERR_BUSY, "gc removed the archive of run %s", a->run);
	rc = db_run(d, DB_archive_put, err, "itit", a->run_id, a->object.name, (int64_t)a->object.bytes,
		    a->object.sha256);
	if (!rc)
		rc = db_run(d, DB_archive_chunks_drop, err, "i", a->run_id);
	r->archived = true;
	state_mark(st, r, false);
	return rc;
}

static int put_archive_entry(struct db *d, struct db_batch *batch, const struct archive *a,
			     const struct archive_entry *e, struct err *err)
{
	const unsigned char *bytes = a->bytes + e->offset;

	if (!db_shared(d))
		return db_run(d, DB_chunk_put, err, CHUNK_FMT, e->id, (int64_t)e->points, e->min_step, e->max_step,
			      e->min_time, e->max_time, bytes, (size_t)e->bytes);
	db_batch_add(batch, e->id, (int64_t)e->points, e->min_step, e->max_step, e->min_time, e->max_time, bytes,
		     (size_t)e->bytes);
	return 0;
}

static int put_archive_entries(struct db *d, const struct archive *a, struct err *err)
{
	struct db_batch batch;
	size_t i, held = 0;
	int rc = 0;

	db_batch_init(&batch, CHUNK_FMT);
	for (i = 0; i < a->list.n && !rc; i++) {
		rc = put_archive_entry(d, &batch, a, &a->list.entry[i], err);
		held += a->list.entry[i].bytes;
		if (!rc && held >= BATCH_BYTES) {
			rc = db_batch_run(&batch, d, DB_chunks_add, err);
			held = 0;
		}
	}
	if (!rc)
		rc = db_batch_run(&batch, d, DB_chunks_add, err);
	db_batch_drop(&batch);
	return rc;
}

static int undo_archive(struct state *st, struct change *c, struct err *err)
{
	const struct archive *a = c->op.more;
	struct db *d = state_db(st);
	char object[ARCHIVE_NAME_BYTES];
	struct state_run *r;
	int rc = find_unarchived_run(st, c, &r, err);

	if (rc <= 0)
		return rc;
	rc = read_archive_name(d, a->run_id, object, err);
	if (rc < 0)
		return rc;
	if (!rc || strcmp(object, a->object.name)) /* another process was faster */
		return change_refuse(c, ERR_EXISTS, "run %s has another archive, or none", a->run);
	rc = db_run(d, DB_archive_drop, err, "i", a->run_id);
	if (!rc)
		rc = put_archive_entries(d, a, err);
	r->archived = false;
	state_mark(st, r, false);
	return rc;
}

const struct change_ops archive_change_put = {
	.name = "archive_put", .never_waits = true, .copy = copy_archive, .apply = put_archive
};
const struct change_ops archive_change_undo = {
	.name = "archive_undo", .never_waits = true, .copy = copy_archive, .apply = undo_archive
};
