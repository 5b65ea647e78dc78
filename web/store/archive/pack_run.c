/* SPDX-License-Identifier: Apache-2.0 */
/* pack_run.c: writes the chunks of a run to an object, some rows at a time, then names the object and deletes the
 * rows, or makes them rows again. No snapshot is held: changes in the meantime are detected when the object is
 * named. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "web/store/archive/archiver.h"
#include "web/store/base/parts.h"
#include "web/store/points/scan.h"
#include "web/store/write/change.h"

#define POINTS_MAX (INT64_C(64) << 20) /* restored in one transaction */

struct archive_packing {
	struct store *s;
	struct archive *a;
	struct orphan_blobs *to;
	struct archive_entry *entries;
	size_t n, cap;
	uint64_t at; /* bytes so far */
	int64_t *series;
	size_t series_count;
	bool (*goes_on)(void *arg);
	void *arg;
};

int archive_read_totals(struct db *d, int64_t run_id, struct archive_totals *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_archive_totals, err, "i", run_id);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	*ret = (struct archive_totals){ db_i64(q, COL_archive_totals_chunks), db_i64(q, COL_archive_totals_points),
					db_i64(q, COL_archive_totals_logged), 0 };
	db_stop(q);
	return 0;
}

static int read_totals(struct archive_packing *p, struct err *err)
{
	struct archive_totals *t = &p->a->totals;
	struct db *d;
	int rc = readers_take(p->s, &d, err);

	if (rc)
		return rc;
	rc = archive_read_totals(d, p->a->run_id, t, err);
	readers_give(p->s, d);
	if (rc)
		return rc;
	if (t->logged)
		return err_set(err, ERR_EXISTS, "run %s is being written to", p->a->run);
	if (t->points > POINTS_MAX || t->chunks > (int64_t)ARCHIVE_CHUNKS_MAX)
		return err_set(err, ERR_LIMIT, "run %s has too many points for an archive", p->a->run);
	p->cap = (size_t)t->chunks;
	p->entries = mem_array(p->cap + 1, sizeof(*p->entries));
	return 0;
}

static int pack_chunk_row(struct archive_packing *p, struct db_rows *q, struct err *err)
{
	struct archive_entry *e = &p->entries[p->n];

	if (p->n == p->cap)
		return err_set(err, ERR_EXISTS, "run %s is being written to", p->a->run);
	*e = (struct archive_entry){
		.id = db_i64(q, COL_archive_chunks_id), .points = (uint32_t)db_i64(q, COL_archive_chunks_points),
		.bytes = (uint32_t)db_bytes(q, COL_archive_chunks_data), .offset = p->at,
		.min_step = db_i64(q, COL_archive_chunks_min_step), .max_step = db_i64(q, COL_archive_chunks_max_step),
		.min_time = db_f64(q, COL_archive_chunks_min_time), .max_time = db_f64(q, COL_archive_chunks_max_time),
	};
	p->n++;
	p->at += e->bytes;
	return orphan_blobs_add(p->to, db_blob(q, COL_archive_chunks_data), e->bytes, err);
}

/* Packs some rows of a series, from *io_first on: 1 if there may be more. */
static int pack_chunk_rows(struct archive_packing *p, int64_t *io_first, int64_t series, struct err *err)
{
	size_t before = p->n;
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(p->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_archive_chunks, err, "ii", *io_first, SCAN_CHUNK_ID(series + 1, 0) - 1);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = pack_chunk_row(p, q, err);
		if (rc)
			db_stop(q);
	}
	readers_give(p->s, d);
	if (p->n > before)
		*io_first = p->entries[p->n - 1].id + 1;
	return rc ? rc : p->n > before;
}

static int pack_archive_series(struct archive_packing *p, int64_t series, struct err *err)
{
	int64_t first = SCAN_CHUNK_ID(series, 0);
	int rc;

	while ((rc = pack_chunk_rows(p, &first, series, err)) > 0)
		if (p->goes_on && !p->goes_on(p->arg))
			return err_set(err, ERR_CANCELED, "the store is closing");
	return rc;
}

#define SERIES_AHEAD 1000 /* LIMIT of archive_series */

/* Reads the next series after `after`: their number, or negative. */
static int next_packed_series(struct archive_packing *p, int64_t after, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take(p->s, &d, err);

	p->series_count = 0;
	if (rc)
		return rc;
	rc = db_start(d, &q, DB_archive_series, err, "ii", p->a->run_id, after);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		if (p->series_count < SERIES_AHEAD)
			p->series[p->series_count++] = db_i64(q, COL_archive_series_id);
		rc = 0;
	}
	readers_give(p->s, d);
	return rc ? rc : (int)p->series_count;
}

static int pack_all_series(struct archive_packing *p, struct err *err)
{
	int64_t after = 0;
	size_t i;
	int rc;

	while ((rc = next_packed_series(p, after, err)) > 0) {
		p->a->totals.series += rc;
		rc = 0;
		for (i = 0; i < p->series_count && !rc; i++)
			rc = pack_archive_series(p, p->series[i], err);
		if (rc)
			return rc;
		after = p->series[p->series_count - 1];
	}
	if (!rc && p->n != p->cap)
		return err_set(err, ERR_EXISTS, "run %s is being written to", p->a->run);
	return rc;
}

static int pack_index(struct archive_packing *p, struct err *err)
{
	struct buf index;
	int rc;

	buf_init(&index, SIZE_MAX);
	archive_add_index(&index, &(struct archive_list){ p->entries, p->n }, p->at);
	rc = orphan_blobs_add(p->to, index.data, index.len, err);
	buf_done(&index);
	return rc;
}

int archive_pack(struct archive *a, struct store *s, bool (*goes_on)(void *arg), void *arg, struct err *err)
{
	struct archive_packing p = {
		.s = s, .a = a, .goes_on = goes_on, .arg = arg, .series = mem_array(SERIES_AHEAD, sizeof(*p.series))
	};
	int rc = read_totals(&p, err);

	if (!rc)
		rc = orphan_blobs_begin(&p.to, s->files, err);
	if (!rc)
		rc = pack_all_series(&p, err);
	if (!rc)
		rc = pack_index(&p, err);
	if (!rc)
		rc = orphan_blobs_end(p.to, &a->object, err);
	orphan_blobs_free(p.to);
	free(p.entries);
	free(p.series);
	return rc;
}

/* --- changes -------------------------------------------------------------------------------------------------- */

#define CHUNK_FMT "iiiiddb"
#define BATCH_BYTES ((size_t)8 << 20)

static void copy_archive(struct change *c, const struct ingest_op *op)
{
	c->op = (struct ingest_op){ .kind = op->kind, .more = op->more };
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

/* Inserts the chunks of an archive as rows. */
static int put_archive_entries(struct db *d, const struct archive *a, struct err *err)
{
	struct db_batch batch;
	size_t i, held = 0;
	int rc = 0;

	db_batch_init(&batch, d, DB_chunks_put, CHUNK_FMT);
	for (i = 0; i < a->list.n && !rc; i++) {
		const struct archive_entry *e = &a->list.entry[i];

		rc = db_batch_add(&batch, err, e->id, (int64_t)e->points, e->min_step, e->max_step, e->min_time,
				  e->max_time, a->bytes + e->offset, (size_t)e->bytes);
		held += e->bytes;
		if (!rc && held >= BATCH_BYTES) {
			rc = db_batch_run(&batch, err);
			held = 0;
		}
	}
	if (!rc)
		rc = db_batch_run(&batch, err);
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
