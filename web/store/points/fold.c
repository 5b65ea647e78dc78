/* fold.c: log rows to chunks. */
#include "web/store/points/fold.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "web/store/base/map.h"
#include "web/store/points/chunk.h"
#include "web/store/points/pack.h"
#include "web/store/points/scan.h"
#include "web/store/points/spike.h"
#include "web/store/points/sum_row.h"
#include "web/store/points/tail.h"

/* A series costs a transaction about as much as a few hundred points; commits wait for it. */
#define FOLD_SERIES 4000

/* All log rows from one to the other. */
struct row_range {
	int64_t first, last;
};

struct fold {
	struct db *db;
	struct map *series; /* id -> struct tail of new points */
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

static int load_series(struct fold *f, int64_t id, struct series_row *ret)
{
	struct db_rows *q;
	int rc = db_start(f->db, &q, DB_series_get, f->err, "i", id);

	if (rc || (rc = db_next(f->db, q, f->err)) <= 0)
		return rc < 0 ? rc : err_set(f->err, ERR_CORRUPT, "store: series %lld is missing", (long long)id);
	ret->id = id;
	ret->run_id = db_i64(q, COL_series_get_run_id);
	ret->key_id = db_i64(q, COL_series_get_key_id);
	ret->rank = db_i32(q, COL_series_get_rank);
	ret->ordered = db_i32(q, COL_series_get_ordered);
	ret->chunks = db_i64(q, COL_series_get_chunks);
	ret->watched = ret->rank < 0 && spike_watches(db_str(q, COL_series_get_name));
	sum_row_read(q, COL_series_get_count, &ret->sum);
	if (!ret->sum.count)
		sum_init(&ret->sum);
	db_stop(q);
	return 0;
}

/* Appends the points of a stored chunk to v. */
static int load_chunk(struct fold *f, int64_t chunk_id, struct tail *v)
{
	struct sum_point room[CHUNK_POINTS];
	struct db_rows *q;
	struct chunk c;
	int rc = db_start(f->db, &q, DB_chunk_get, f->err, "i", chunk_id);

	if (rc || (rc = db_next(f->db, q, f->err)) < 0)
		return rc;
	if (!rc || chunk_open(&c, db_blob(q, COL_chunk_get_data), db_bytes(q, COL_chunk_get_data)) ||
	    chunk_points(&c, room))
		rc = err_set(f->err, ERR_CORRUPT,
			     "store: chunk %lld is damaged; check the disk and put back a copy of the file",
			     (long long)chunk_id);
	else
		rc = tail_add(v, room, c.points) ? no_memory(f->err) : 0;
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

static int fold_series(struct fold *f, int64_t id, const struct tail *fresh)
{
	struct series_row s;
	struct tail all = { 0 };
	size_t keep, skip = 0, context;
	int64_t number;
	int rc = load_series(f, id, &s);

	if (rc)
		return rc;
	keep = (size_t)(s.sum.count % CHUNK_POINTS);
	number = keep ? s.chunks - 1 : s.chunks;
	/* A spike may straddle two chunks: its search wants some points of the full one before. */
	if (s.watched && keep < SPIKE_CONTEXT && number > 0) {
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

int fold_some(struct db *d, uint64_t max_points, struct fold_result *ret, struct err *err)
{
	struct fold f = { .db = d, .res = ret, .err = err, .series = map_new(sizeof(struct tail)) };
	size_t i, len;
	int64_t id;
	int rc;

	memset(ret, 0, sizeof *ret);
	if (!f.series)
		return no_memory(err);
	buf_init(&f.blob, (size_t)1 << 20);
	rc = gather(&f, max_points);
	for (i = 0; i < map_count(f.series) && !rc; i++) {
		memcpy(&id, map_key_at(f.series, i, &len), sizeof id);
		rc = fold_series(&f, id, map_at(f.series, i));
	}
	if (!rc)
		rc = delete_rows(&f);
	for (i = 0; i < map_count(f.series); i++)
		tail_done(map_at(f.series, i));
	map_free(f.series);
	free(f.read);
	buf_done(&f.blob);
	return rc;
}
