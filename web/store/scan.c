/* scan.c: chunks, then log rows. */
#include "web/store/scan.h"

#include <stdlib.h>

#include "web/store/pack.h"

int scan_damaged(struct err *err, const char *what, int64_t id)
{
	return err_set(err, ERR_CORRUPT, "store: %s %lld is damaged; check the disk and put back a copy of the file", what, (long long)id);
}

int scan_series_chunks(struct db *d, int64_t series, scan_chunk_fn *fn, void *arg, struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_chunk_range, err, "ii", SCAN_CHUNK_ID(series, 0), SCAN_CHUNK_ID(series + 1, 0) - 1);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		struct chunk c;

		if (chunk_open(&c, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)))
			rc = scan_damaged(err, "chunk", sqlite3_column_int64(q, 0));
		else
			rc = fn(arg, &c, err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static int give_chunk(struct db *d, int64_t id, scan_chunk_fn *fn, void *arg, struct err *err)
{
	struct chunk c;
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_chunk_get, err, "i", id);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	if (chunk_open(&c, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0)))
		rc = scan_damaged(err, "chunk", id);
	else
		rc = fn(arg, &c, err);
	db_stop(q);
	return rc;
}

int scan_series_window(struct db *d, int64_t series, const struct scan_window *w, scan_chunk_fn *fn, void *arg,
		       struct err *err)
{
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_chunk_heads, err, "ii", SCAN_CHUNK_ID(series, 0), SCAN_CHUNK_ID(series + 1, 0) - 1);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		double early = db_real(q, 4), late = db_real(q, 5);

		/* unknown times overlap everything */
		if (sqlite3_column_int64(q, 2) > w->max_step || sqlite3_column_int64(q, 3) < w->min_step ||
		    early > w->max_time || late < w->min_time) {
			rc = 0;
			continue;
		}
		rc = give_chunk(d, sqlite3_column_int64(q, 0), fn, arg, err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

/* A chunk of which only what is looked at is read. */
struct partly {
	struct db *d;
	int64_t id;
	bool open; /* blob is that of id */
	sqlite3_blob *blob;
	unsigned char *bytes;
	size_t cap;
};

static int open_blob(struct partly *p)
{
	int rc;

	if (p->open)
		return 0;
	rc = p->blob ? sqlite3_blob_reopen(p->blob, p->id)
		     : sqlite3_blob_open(db_handle(p->d), "main", "chunk", "data", p->id, 0, &p->blob);
	p->open = rc == SQLITE_OK;
	return p->open ? 0 : ERR_IO;
}

static int load_part(void *arg, size_t from, size_t n)
{
	struct partly *p = arg;

	if (open_blob(p))
		return ERR_IO;
	return sqlite3_blob_read(p->blob, p->bytes + from, (int)n, (int)from) == SQLITE_OK ? 0 : ERR_IO;
}

static int make_room(struct partly *p, size_t len, struct err *err)
{
	unsigned char *grown;

	if (len <= p->cap)
		return 0;
	grown = realloc(p->bytes, len + 4096);
	if (!grown)
		return err_set(err, ERR_NOMEM, "store: out of memory");
	p->bytes = grown;
	p->cap = len + 4096;
	return 0;
}

/* full: the chunk will not change any more. */
static int open_part(struct partly *p, bool full, const struct scan_parts *o, struct chunk *ret, struct err *err)
{
	const struct heads_key key = { o->heads_rev, p->id };
	bool known;
	size_t len;
	int rc = make_room(p, CHUNK_HEAD_MAX, err);

	if (rc)
		return rc;
	p->open = false;
	known = full && o->heads && heads_get(o->heads, &key, p->bytes, &len);
	if (!known) {
		if (open_blob(p))
			return db_failed(p->d, err, "opening a chunk");
		len = (size_t)sqlite3_blob_bytes(p->blob);
	}
	rc = make_room(p, len, err);
	if (rc)
		return rc;
	if ((!known && load_part(p, 0, len < CHUNK_HEAD_MAX ? len : CHUNK_HEAD_MAX)) || chunk_open(ret, p->bytes, len))
		return scan_damaged(err, "chunk", p->id);
	if (!known && full && o->heads)
		heads_put(o->heads, &key, p->bytes, len);
	ret->load = load_part;
	ret->load_arg = p;
	return 0;
}

int scan_series_parts(struct db *d, int64_t series, const struct scan_parts *o, struct err *err)
{
	struct partly p = { .d = d };
	struct chunk c;
	sqlite3_stmt *q;
	int rc = db_start(d, &q, DB_chunk_heads, err, "ii", SCAN_CHUNK_ID(series, 0), SCAN_CHUNK_ID(series + 1, 0) - 1);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		struct sum_point low = { sqlite3_column_int64(q, 2), db_real(q, 4), 0 };
		struct sum_point high = { sqlite3_column_int64(q, 3), db_real(q, 5), 0 };

		rc = 0;
		if (!o->want(o->arg, &low, &high))
			continue;
		p.id = sqlite3_column_int64(q, 0);
		rc = open_part(&p, sqlite3_column_int64(q, 1) == CHUNK_POINTS, o, &c, err);
		if (!rc)
			rc = o->fn(o->arg, &c, err);
		if (rc)
			db_stop(q);
	}
	sqlite3_blob_close(p.blob);
	free(p.bytes);
	return rc;
}

/* From chunks to points of the series at one position of the list. */
struct decode {
	scan_fn *fn;
	void *arg;
	size_t at;
	struct sum_point *room;
};

static int decode_chunk(void *arg, const struct chunk *c, struct err *err)
{
	struct decode *to = arg;

	if (chunk_points(c, to->room))
		return err_set(err, ERR_CORRUPT, "store: a chunk is damaged; check the disk and put back a copy of the file");
	return to->fn(to->arg, to->at, to->room, c->points, err);
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
			rc = scan_damaged(err, "log row", sqlite3_column_int64(q, 0));
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
		rc = scan_series_chunks(d, ids[i], decode_chunk, &(struct decode){ fn, arg, i, room }, err);
	if (!rc && count)
		rc = scan_log_room(d, run_id, ids, count, fn, arg, room, err);
	free(room);
	return rc;
}
