/* fold.c: log rows to chunks. */
#include "web/store/points/fold.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "web/store/base/map.h"
#include "web/store/db/array.h"
#include "web/store/points/chunk.h"
#include "web/store/points/pack.h"
#include "web/store/points/scan.h"
#include "web/store/points/spike.h"
#include "web/store/points/sum_row.h"
#include "web/store/points/tail.h"

/* A series costs a transaction about as much as a few hundred points; commits wait for it. */
#define FOLD_SERIES 4000
#define FOLD_AHEAD 256 /* series whose rows and open chunks are read at once, where the database is elsewhere */

/* All log rows from one to the other. */
struct row_range {
	int64_t first, last;
};

struct fold {
	struct db *db;
	struct map *series; /* id -> struct tail of new points */
	struct map *rows;   /* id -> struct series_row, read ahead */
	struct map *chunks; /* id -> struct tail, read ahead */
	struct buf blob;
	struct row_range *read; /* the log rows that were gathered */
	size_t read_count;
	struct fold_result *res;
	struct err *err;
};

struct series_row {
	int64_t id, run_id, key_id, chunks;
	int rank;
	bool ordered, watched;
	struct sum sum;
};

static int no_memory(struct err *err)
{
	return err_set(err, ERR_NOMEM, "store: out of memory");
}

static int gather_row(struct fold *f, const void *bytes, size_t len)
{
	struct pack_reader r;
	struct sum_point p;
	struct tail *v;
	int64_t id;
	uint64_t n;
	int rc;

	if (pack_open(&r, bytes, len))
		return ERR_CORRUPT;
	while ((rc = pack_next_series(&r, &id, &n)) > 0) {
		v = map_put(f->series, &id, sizeof id);
		if (!v)
			return ERR_NOMEM;
		while ((rc = pack_next_point(&r, &p)) > 0)
			if (tail_add(v, &p, 1))
				return ERR_NOMEM;
		if (rc < 0)
			break;
	}
	return rc;
}

static int note_row(struct fold *f, int64_t id)
{
	struct row_range *grown = f->read_count ? &f->read[f->read_count - 1] : NULL;

	if (grown && grown->last + 1 == id) {
		grown->last = id;
		return 0;
	}
	grown = realloc(f->read, (f->read_count + 1) * sizeof *grown);
	if (!grown)
		return ERR_NOMEM;
	f->read = grown;
	f->read[f->read_count++] = (struct row_range){ id, id };
	return 0;
}

/* Those alone: what came into the log meanwhile is folded later. */
static int delete_rows(struct fold *f)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < f->read_count && !rc; i++)
		rc = db_run(f->db, DB_log_delete, f->err, "ii", f->read[i].first, f->read[i].last);
	return rc;
}

static int gather(struct fold *f, uint64_t max_points)
{
	struct db_rows *q;
	int64_t id;
	int rc = db_start(f->db, &q, DB_log_oldest, f->err, "");

	while (!rc && (rc = db_next(f->db, q, f->err)) > 0) {
		id = db_i64(q, COL_log_oldest_id);
		f->res->rows++;
		f->res->points += (uint64_t)db_i64(q, COL_log_oldest_points);
		rc = note_row(f, id);
		if (!rc)
			rc = gather_row(f, db_blob(q, COL_log_oldest_data), db_bytes(q, COL_log_oldest_data));
		if (rc == ERR_CORRUPT)
			rc = err_set(f->err, rc,
				     "store: log row %lld is damaged; check the disk and put back a copy of the file",
				     (long long)id);
		else if (rc)
			no_memory(f->err);
		if (rc || f->res->points >= max_points || map_count(f->series) >= FOLD_SERIES) {
			db_stop(q);
			break;
		}
	}
	return rc < 0 ? rc : 0;
}

static void read_series(struct db_rows *q, struct series_row *ret)
{
	ret->id = db_i64(q, COL_series_get_id);
	ret->run_id = db_i64(q, COL_series_get_run_id);
	ret->key_id = db_i64(q, COL_series_get_key_id);
	ret->rank = db_i32(q, COL_series_get_rank);
	ret->ordered = db_i32(q, COL_series_get_ordered);
	ret->chunks = db_i64(q, COL_series_get_chunks);
	ret->watched = ret->rank < 0 && spike_watches(db_str(q, COL_series_get_name));
	sum_row_read(q, COL_series_get_count, &ret->sum);
	if (!ret->sum.count)
		sum_init(&ret->sum);
}

static int load_series(struct fold *f, int64_t id, struct series_row *ret)
{
	const struct series_row *known = map_get(f->rows, &id, sizeof id);
	struct db_rows *q;
	int rc;

	if (known) {
		*ret = *known;
		return 0;
	}
	rc = db_start(f->db, &q, DB_series_get, f->err, "i", id);
	if (rc || (rc = db_next(f->db, q, f->err)) <= 0)
		return rc < 0 ? rc : err_set(f->err, ERR_CORRUPT, "store: series %lld is missing", (long long)id);
	read_series(q, ret);
	db_stop(q);
	return 0;
}

static int add_chunk(struct fold *f, int64_t id, const void *bytes, size_t n, struct tail *v)
{
	struct sum_point room[CHUNK_POINTS];
	struct chunk c;

	if (chunk_open(&c, bytes, n) || chunk_points(&c, room))
		return err_set(f->err, ERR_CORRUPT,
			       "store: chunk %lld is damaged; check the disk and put back a copy of the file",
			       (long long)id);
	return tail_add(v, room, c.points) ? no_memory(f->err) : 0;
}

/* Appends the points of a stored chunk to v. */
static int load_chunk(struct fold *f, int64_t id, struct tail *v)
{
	const struct tail *known = map_get(f->chunks, &id, sizeof id);
	struct db_rows *q;
	int rc;

	if (known)
		return tail_add(v, known->points, known->count) ? no_memory(f->err) : 0;
	rc = db_start(f->db, &q, DB_chunk_get, f->err, "i", id);
	if (rc || (rc = db_next(f->db, q, f->err)) < 0)
		return rc;
	rc = add_chunk(f, id, rc ? db_blob(q, COL_chunk_get_data) : "", rc ? db_bytes(q, COL_chunk_get_data) : 0, v);
	db_stop(q);
	return rc;
}

static int put_chunk(struct fold *f, int64_t id, const struct sum_point *p, unsigned n)
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
	if (buf_failed(&f->blob))
		return no_memory(f->err);
	return db_run(f->db, DB_chunk_put, f->err, "iiiiddb", id, (int64_t)n, low, high, early, late, f->blob.data,
		      f->blob.len);
}

static int watch(struct fold *f, const struct series_row *s, const struct sum_point *p, size_t n)
{
	double weight;
	long at = spike_find(p, n, &weight);
	int64_t *grown;
	int rc;

	if (at < 0)
		return 0;
	rc = db_run(f->db, DB_alert_put, f->err, "iitidd", s->run_id, s->key_id, "spike", p[at].step, p[at].value,
		    weight);
	if (rc)
		return rc;
	grown = realloc(f->res->alerted, (f->res->alerted_count + 1) * sizeof *grown);
	if (!grown)
		return no_memory(f->err);
	grown[f->res->alerted_count++] = s->run_id;
	f->res->alerted = grown;
	return 0;
}

static void account(struct series_row *s, const struct tail *fresh)
{
	size_t i;

	for (i = 0; i < fresh->count; i++) {
		if (s->sum.count && fresh->points[i].step < s->sum.last.step)
			s->ordered = false;
		sum_add(&s->sum, &fresh->points[i]);
	}
}

/* all: what the last chunk held (when it was not full) and then the new points. */
static int write_chunks(struct fold *f, struct series_row *s, int64_t number, const struct tail *all, size_t from)
{
	int rc = 0;

	while (from < all->count && !rc) {
		size_t n = all->count - from < CHUNK_POINTS ? all->count - from : CHUNK_POINTS;

		rc = put_chunk(f, SCAN_CHUNK_ID(s->id, number), all->points + from, (unsigned)n);
		from += n;
		number++;
	}
	s->chunks = number;
	return rc;
}

/* Points of the chunk that is not full; *ret_number: of the chunk that is written next. */
static size_t points_kept(const struct series_row *s, int64_t *ret_number)
{
	size_t keep = (size_t)(s->sum.count % CHUNK_POINTS);

	*ret_number = keep ? s->chunks - 1 : s->chunks;
	return keep;
}

/* A spike may straddle two chunks: its search wants some points of the full one before. */
static bool wants_before(const struct series_row *s, size_t keep, int64_t number)
{
	return s->watched && keep < SPIKE_CONTEXT && number > 0;
}

static int fold_series(struct fold *f, int64_t id, const struct tail *fresh)
{
	struct series_row s;
	struct tail all = { 0 };
	size_t keep, skip = 0, context;
	int64_t number;
	int rc = load_series(f, id, &s);

	if (rc)
		return rc;
	keep = points_kept(&s, &number);
	if (wants_before(&s, keep, number)) {
		rc = load_chunk(f, SCAN_CHUNK_ID(id, number - 1), &all);
		skip = all.count;
	}
	if (!rc && keep)
		rc = load_chunk(f, SCAN_CHUNK_ID(id, number), &all);
	if (!rc && all.count - skip != keep)
		rc = err_set(f->err, ERR_CORRUPT, "store: series %lld has lost points", (long long)id);
	context = all.count > SPIKE_CONTEXT ? all.count - SPIKE_CONTEXT : 0;
	if (!rc && tail_add(&all, fresh->points, fresh->count))
		rc = no_memory(f->err);
	if (!rc) {
		account(&s, fresh);
		rc = write_chunks(f, &s, number, &all, skip);
	}
	if (!rc)
		rc = db_run(f->db, DB_series_put, f->err, "iii" SUM_ROW_FMT, id, (int64_t)s.ordered, s.chunks,
			    SUM_ROW_ARGS(&s.sum));
	if (!rc && s.watched)
		rc = watch(f, &s, all.points + context, all.count - context);
	tail_done(&all);
	return rc;
}

static int read_rows_ahead(struct fold *f, const char *ids)
{
	struct db_rows *q;
	int rc = ids ? db_start(f->db, &q, DB_series_get_all, f->err, "t", ids) : no_memory(f->err);

	while (!rc && (rc = db_next(f->db, q, f->err)) > 0) {
		int64_t id = db_i64(q, COL_series_get_id);
		struct series_row *s = map_put(f->rows, &id, sizeof id);

		if (!s)
			return db_no_memory(q, f->err);
		read_series(q, s);
		rc = 0;
	}
	return rc;
}

static int read_chunks_ahead(struct fold *f, const char *ids)
{
	struct db_rows *q;
	int rc = ids ? db_start(f->db, &q, DB_chunk_get_all, f->err, "t", ids) : no_memory(f->err);

	while (!rc && (rc = db_next(f->db, q, f->err)) > 0) {
		int64_t id = db_i64(q, COL_chunk_range_id);
		struct tail *v = map_put(f->chunks, &id, sizeof id);

		rc = v ? add_chunk(f, id, db_blob(q, COL_chunk_range_data), db_bytes(q, COL_chunk_range_data), v)
		       : no_memory(f->err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static void forget_ahead(struct fold *f)
{
	size_t i;

	for (i = 0; i < map_count(f->chunks); i++)
		tail_done(map_at(f->chunks, i));
	map_clear(f->chunks);
	map_clear(f->rows);
}

/* What the series from `at` on will ask for, in two round trips. */
static int read_ahead(struct fold *f, size_t at)
{
	struct buf ids;
	size_t i, keep, len;
	int64_t number;
	int rc;

	forget_ahead(f);
	array_begin(&ids);
	for (i = at; i < map_count(f->series) && i < at + FOLD_AHEAD; i++) {
		memcpy(&number, map_key_at(f->series, i, &len), sizeof number);
		array_int(&ids, number);
	}
	rc = read_rows_ahead(f, array_end(&ids));
	buf_done(&ids);
	array_begin(&ids);
	for (i = 0; i < map_count(f->rows); i++) {
		const struct series_row *s = map_at(f->rows, i);

		keep = points_kept(s, &number);
		if (wants_before(s, keep, number))
			array_int(&ids, SCAN_CHUNK_ID(s->id, number - 1));
		if (keep)
			array_int(&ids, SCAN_CHUNK_ID(s->id, number));
	}
	if (!rc && ids.len > 1)
		rc = read_chunks_ahead(f, array_end(&ids));
	buf_done(&ids);
	return rc;
}

static int fold_all_series(struct fold *f)
{
	size_t i, len;
	int64_t id;
	int rc = 0;

	for (i = 0; i < map_count(f->series) && !rc; i++) {
		if (i % FOLD_AHEAD == 0 && db_shared(f->db))
			rc = read_ahead(f, i);
		memcpy(&id, map_key_at(f->series, i, &len), sizeof id);
		if (!rc)
			rc = fold_series(f, id, map_at(f->series, i));
	}
	return rc;
}

static void fold_done(struct fold *f)
{
	size_t i;

	if (f->chunks && f->rows)
		forget_ahead(f);
	map_free(f->chunks);
	map_free(f->rows);
	for (i = 0; f->series && i < map_count(f->series); i++)
		tail_done(map_at(f->series, i));
	map_free(f->series);
	free(f->read);
	buf_done(&f->blob);
}

int fold_some(struct db *d, uint64_t max_points, struct fold_result *ret, struct err *err)
{
	struct fold f = { .db = d, .res = ret, .err = err, .series = map_new(sizeof(struct tail)),
			  .rows = map_new(sizeof(struct series_row)), .chunks = map_new(sizeof(struct tail)) };
	int rc;

	memset(ret, 0, sizeof *ret);
	buf_init(&f.blob, (size_t)1 << 20);
	rc = f.series && f.rows && f.chunks ? gather(&f, max_points) : no_memory(err);
	if (!rc)
		rc = fold_all_series(&f);
	if (!rc)
		rc = delete_rows(&f);
	fold_done(&f);
	return rc;
}
