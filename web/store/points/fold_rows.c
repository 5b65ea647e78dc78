/* SPDX-License-Identifier: Apache-2.0 */
/* fold_rows.c: maps of rows read ahead, and batches of rows to write. */
#include "tracker/mem/mem.h"
#include "web/store/points/fold.h"

#include <stdlib.h>

#include "web/store/points/scan.h"

#define CHUNK_FMT "iiiiddb"
#define SERIES_FMT "iii" SUM_ROW_FMT

struct fold_rows {
	struct db *db;
	struct map *series; /* id -> struct fold_series, read ahead */
	struct map *chunks; /* id -> struct point_tail, read ahead */
	struct buf blob;    /* encoded form of one chunk */
	struct buf dropped; /* ids of chunks, an array (db.h) */
	struct db_batch fresh_chunks, changed_series;
};

struct fold_rows *fold_rows_new(struct db *d)
{
	struct fold_rows *f = mem_zalloc(sizeof(*f));

	f->db = d;
	f->series = map_new(sizeof(struct fold_series));
	f->chunks = map_new(sizeof(struct point_tail));
	buf_init(&f->blob, SIZE_MAX);
	array_begin(&f->dropped);
	db_batch_init(&f->fresh_chunks, d, DB_chunks_put, CHUNK_FMT);
	db_batch_init(&f->changed_series, d, DB_series_put, SERIES_FMT);
	return f;
}

static void forget_rows_ahead(struct fold_rows *f)
{
	size_t i;

	for (i = 0; i < map_count(f->chunks); i++)
		tail_done(map_at(f->chunks, i));
	map_clear(f->chunks);
	map_clear(f->series);
}

void fold_rows_free(struct fold_rows *f)
{
	forget_rows_ahead(f);
	map_free(f->series);
	map_free(f->chunks);
	buf_done(&f->blob);
	buf_done(&f->dropped);
	db_batch_drop(&f->fresh_chunks);
	db_batch_drop(&f->changed_series);
	free(f);
}

/* --- reading ------------------------------------------------------------------------------------------------ */

static int64_t full_chunks(const struct fold_series *s)
{
	return (int64_t)(s->sum.count / CHUNK_POINTS);
}

static int fail_lost_points(const struct fold_series *s, struct err *err)
{
	return err_set(err, ERR_DAMAGED, "store: series %lld lacks points: run dptrack doctor", (long long)s->id);
}

static int read_fold_series(struct db_rows *q, struct fold_series *ret, struct err *err)
{
	int64_t pieces;

	*ret = (struct fold_series){ .id = db_i64(q, COL_series_get_id) };
	ret->run_id = db_i64(q, COL_series_get_run_id);
	ret->key_id = db_i64(q, COL_series_get_key_id);
	ret->rank = db_i32(q, COL_series_get_rank);
	ret->ordered = db_i32(q, COL_series_get_ordered);
	ret->chunks = db_i64(q, COL_series_get_chunks);
	ret->watched = ret->rank < 0 && spike_watches(db_str(q, COL_series_get_name));
	sum_row_read(q, COL_series_get_count, &ret->sum);
	if (!ret->sum.count)
		sum_init(&ret->sum);
	pieces = ret->chunks - full_chunks(ret);
	if (pieces < 0 || pieces > FOLD_PIECES)
		return fail_lost_points(ret, err);
	ret->pieces = (unsigned)pieces;
	if (pieces == 1)
		ret->piece_points[0] = (unsigned)(ret->sum.count % CHUNK_POINTS);
	return 0;
}

int fold_rows_series(struct fold_rows *f, int64_t id, struct fold_series *ret, struct err *err)
{
	const struct fold_series *known = map_get(f->series, &id, sizeof(id));

	if (!known)
		return err_set(err, ERR_DAMAGED, "store: series %lld is missing: run dptrack doctor", (long long)id);
	*ret = *known;
	return 0;
}

static int add_tail_chunk(int64_t id, const void *bytes, size_t n, struct point_tail *to, struct err *err)
{
	struct sum_point room[CHUNK_POINTS];
	struct chunk c;

	if (chunk_open(&c, bytes, n) || chunk_points(&c, room))
		return scan_damaged(err, "chunk", id);
	tail_add(to, room, c.points);
	return 0;
}

void fold_rows_chunk(struct fold_rows *f, int64_t id, struct point_tail *to)
{
	const struct point_tail *known = map_get(f->chunks, &id, sizeof(id));

	if (known)
		tail_add(to, known->points, known->count);
}

static int read_series_ahead(struct fold_rows *f, const char *ids, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(f->db, &q, DB_series_get_all, err, "t", ids);

	while (!rc && (rc = db_next(f->db, q, err)) > 0) {
		int64_t id = db_i64(q, COL_series_get_id);

		rc = read_fold_series(q, map_put(f->series, &id, sizeof(id)), err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static int note_piece_size(struct fold_rows *f, int64_t chunk, int64_t points)
{
	int64_t id = SCAN_CHUNK_SERIES(chunk);
	struct fold_series *s = map_get(f->series, &id, sizeof(id));
	int64_t at = s ? chunk - SCAN_CHUNK_ID(id, full_chunks(s)) : -1;

	if (at < 0 || at >= FOLD_PIECES)
		return ERR_CORRUPT;
	s->piece_points[at] = (unsigned)points;
	return 0;
}

static int read_pieces_ahead(struct fold_rows *f, const char *first, const char *last, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(f->db, &q, DB_chunk_sizes, err, "tt", first, last);

	while (!rc && (rc = db_next(f->db, q, err)) > 0) {
		int64_t id = db_i64(q, COL_chunk_sizes_id);

		rc = note_piece_size(f, id, db_i64(q, COL_chunk_sizes_points)) ? scan_damaged(err, "chunk", id) : 0;
		if (rc)
			db_stop(q);
	}
	return rc;
}

int fold_rows_ahead(struct fold_rows *f, const int64_t *series, size_t n, struct err *err)
{
	struct buf first, last;
	size_t i;
	int rc;

	forget_rows_ahead(f);
	rc = read_series_ahead(f, array_of(&first, series, n), err);
	buf_done(&first);
	array_begin(&first);
	array_begin(&last);
	for (i = 0; i < map_count(f->series) && !rc; i++) {
		const struct fold_series *s = map_at(f->series, i);

		if (s->pieces < 2)
			continue;
		array_int(&first, SCAN_CHUNK_ID(s->id, full_chunks(s)));
		array_int(&last, SCAN_CHUNK_ID(s->id, s->chunks) - 1);
	}
	if (!rc && first.len > 1)
		rc = read_pieces_ahead(f, array_end(&first), array_end(&last), err);
	buf_done(&first);
	buf_done(&last);
	return rc;
}

int fold_rows_chunks_ahead(struct fold_rows *f, const int64_t *chunks, size_t n, struct err *err)
{
	struct db_rows *q;
	struct buf ids;
	int rc;

	if (!n)
		return 0;
	rc = db_start(f->db, &q, DB_chunk_get_all, err, "t", array_of(&ids, chunks, n));
	while (!rc && (rc = db_next(f->db, q, err)) > 0) {
		int64_t id = db_i64(q, COL_chunk_range_id);

		rc = add_tail_chunk(id, db_blob(q, COL_chunk_range_data), db_bytes(q, COL_chunk_range_data),
				    map_put(f->chunks, &id, sizeof(id)), err);
		if (rc)
			db_stop(q);
	}
	buf_done(&ids);
	return rc;
}

/* --- writing ------------------------------------------------------------------------------------------------ */

void fold_rows_drop(struct fold_rows *f, const struct fold_series *s, int64_t number)
{
	for (; number < s->chunks; number++)
		array_int(&f->dropped, SCAN_CHUNK_ID(s->id, number));
}

int fold_rows_put_chunk(struct fold_rows *f, int64_t id, const struct sum_point *p, unsigned n, struct err *err)
{
	int64_t low = p[0].step, high = p[0].step;
	double early = p[0].time, late = p[0].time;
	unsigned i;

	for (i = 1; i < n; i++) {
		low = p[i].step < low ? p[i].step : low;
		high = p[i].step > high ? p[i].step : high;
		early = p[i].time < early ? p[i].time : early;
		late = p[i].time > late ? p[i].time : late;
	}
	buf_reset(&f->blob);
	chunk_encode(&f->blob, p, n);
	return db_batch_add(&f->fresh_chunks, err, id, (int64_t)n, low, high, early, late, f->blob.data, f->blob.len);
}

int fold_rows_put_series(struct fold_rows *f, const struct fold_series *s, struct err *err)
{
	return db_batch_add(&f->changed_series, err, s->id, (int64_t)s->ordered, s->chunks, SUM_ROW_ARGS(&s->sum));
}

int fold_rows_flush(struct fold_rows *f, struct err *err)
{
	int rc = 0;

	if (f->dropped.len > 1)
		rc = db_run(f->db, DB_chunks_drop, err, "t", array_end(&f->dropped));
	buf_done(&f->dropped);
	array_begin(&f->dropped);
	if (!rc)
		rc = db_batch_run(&f->fresh_chunks, err);
	return rc ? rc : db_batch_run(&f->changed_series, err);
}
