/* scan.c: chunks, then log rows. */
#include "web/store/scan.h"

#include <stdlib.h>

#include "web/store/chunk.h"
#include "web/store/pack.h"

static int damaged(struct err *err, const char *what, int64_t id)
{
	return err_set(err, ERR_CORRUPT, "store: %s %lld is damaged; `dptrack doctor` says more", what, (long long)id);
}

static int scan_chunks(struct db *d, int64_t series, size_t at, scan_fn *fn, void *arg, struct sum_point *room,
		       struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_chunk_range, err, "ii", SCAN_CHUNK_ID(series, 0), SCAN_CHUNK_ID(series + 1, 0) - 1);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		struct chunk c;

		if (chunk_open(&c, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)) ||
		    chunk_points(&c, room))
			rc = damaged(err, "chunk", sqlite3_column_int64(q, 0));
		else
			rc = fn(arg, at, room, c.points, err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static size_t find_id(const int64_t *ids, size_t count, int64_t id)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (ids[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < count && ids[lo] == id ? lo : SIZE_MAX;
}

static int scan_row(const void *bytes, size_t len, const int64_t *ids, size_t count, scan_fn *fn, void *arg,
		    struct sum_point *room, struct err *err)
{
	struct pack_reader r;
	int64_t id;
	uint64_t points;
	size_t at, n;
	int rc;

	if (pack_open(&r, bytes, len))
		return ERR_CORRUPT;
	while ((rc = pack_next_series(&r, &id, &points)) > 0) {
		at = find_id(ids, count, id);
		while (at != SIZE_MAX && rc > 0) {
			for (n = 0; n < CHUNK_POINTS && (rc = pack_next_point(&r, &room[n])) > 0; n++)
				;
			if (rc < 0)
				return rc;
			if (!n)
				break;
			rc = fn(arg, at, room, n, err);
			if (rc)
				return rc;
			rc = 1;
		}
	}
	return rc;
}

static int scan_log_room(struct db *d, int64_t run_id, const int64_t *ids, size_t count, scan_fn *fn, void *arg,
			 struct sum_point *room, struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_log_of_run, err, "i", run_id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		if (err)
			err->code = 0;
		rc = scan_row(sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1), ids, count, fn, arg, room, err);
		if (rc == ERR_CORRUPT && !(err && err->code))
			rc = damaged(err, "log row", sqlite3_column_int64(q, 0));
		if (rc)
			db_stop(q);
	}
	return rc;
}

int scan_log(struct db *d, int64_t run_id, const int64_t *ids, size_t count, scan_fn *fn, void *arg, struct err *err)
{
	struct sum_point *room = malloc(CHUNK_POINTS * sizeof *room);
	int rc = room ? scan_log_room(d, run_id, ids, count, fn, arg, room, err)
		      : err_set(err, ERR_NOMEM, "store: out of memory");

	free(room);
	return rc;
}

int scan_points(struct db *d, int64_t run_id, const int64_t *ids, size_t count, scan_fn *fn, void *arg, struct err *err)
{
	struct sum_point *room = malloc(CHUNK_POINTS * sizeof *room);
	size_t i;
	int rc = 0;

	if (!room)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	for (i = 0; i < count && !rc; i++)
		rc = scan_chunks(d, ids[i], i, fn, arg, room, err);
	if (!rc && count)
		rc = scan_log_room(d, run_id, ids, count, fn, arg, room, err);
	free(room);
	return rc;
}
