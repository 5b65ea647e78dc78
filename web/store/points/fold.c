/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c: moves log rows to chunks. */
#include "tracker/mem/mem.h"
#include "web/store/points/fold.h"

#include <stdlib.h>

#include "web/store/points/scan.h"

/* A series costs a transaction about as much as a few hundred points, and commits wait for it. */
#define FOLD_SERIES 4000

struct fold {
	struct db *db;
	struct map *series; /* id -> struct point_tail of new points */
	struct fold_rows *rows;
	struct buf read; /* ids of the log rows read, an array (db.h) */
	bool pieces;	 /* a series may end with several pieces: a new row is cheaper than a rewritten one */
	struct fold_result *res;
	struct err *err;
};

/* Adds the points of a log row to the tails of their series. */
static int gather_fold_row(struct fold *f, const void *bytes, size_t len)
{
	struct pack_reader r;
	struct sum_point p;
	int64_t id;
	uint64_t n;
	int rc;

	if (pack_open(&r, bytes, len))
		return ERR_CORRUPT;
	while ((rc = pack_next_series(&r, &id, &n)) > 0) {
		struct point_tail *tail = map_put(f->series, &id, sizeof(id));

		while ((rc = pack_next_point(&r, &p)) > 0)
			tail_add(tail, &p, 1);
		if (rc < 0)
			break;
	}
	return rc;
}

/* Reads log rows, of each run from its oldest on, until the bound is reached. */
static int gather_fold_rows(struct fold *f, const struct fold_bound *bound)
{
	struct db_rows *q;
	struct buf runs;
	int64_t id;
	int rc = db_start(f->db, &q, DB_log_due, f->err, "it", bound->last_row,
			  array_of(&runs, bound->runs, bound->run_count));

	while (!rc && (rc = db_next(f->db, q, f->err)) > 0) {
		id = db_i64(q, COL_log_due_id);
		f->res->rows++;
		f->res->points += (uint64_t)db_i64(q, COL_log_due_points);
		array_int(&f->read, id);
		rc = gather_fold_row(f, db_blob(q, COL_log_due_data), db_bytes(q, COL_log_due_data));
		if (rc)
			rc = scan_damaged(f->err, "log row", id);
		if (rc || f->res->points >= bound->points || map_count(f->series) >= FOLD_SERIES) {
			db_stop(q);
			break;
		}
	}
	buf_done(&runs);
	return rc < 0 ? rc : 0;
}

static int store_new_spike(struct fold *f, const struct fold_series *s, const struct sum_point *p, size_t n)
{
	double weight;
	long at = spike_find(p, n, &weight);
	int rc;

	if (at < 0)
		return 0;
	rc = db_run(f->db, DB_alert_put, f->err, "iitidd", s->run_id, s->key_id, "spike", p[at].step, p[at].value,
		    weight);
	if (rc)
		return rc;
	f->res->alerted = mem_realloc(f->res->alerted, (f->res->alerted_count + 1) * sizeof(*f->res->alerted));
	f->res->alerted[f->res->alerted_count++] = s->run_id;
	return 0;
}

static void add_to_summary(struct fold_series *s, const struct point_tail *fresh)
{
	size_t i;

	for (i = 0; i < fresh->count; i++) {
		if (s->sum.count && fresh->points[i].step < s->sum.last.step)
			s->ordered = false;
		sum_add(&s->sum, &fresh->points[i]);
	}
}

/* The chunks of a series to read, from `load` on, and those of them to rewrite. */
struct fold_plan {
	int64_t load, rewrite; /* chunk numbers */
	size_t before;	       /* points of chunks that are only read */
	size_t kept;	       /* points of chunks that are rewritten */
};

/* Returns how many pieces stay unchanged. None if the new points fill a chunk or a row is cheap. Else those at least
 * twice as large as what follows them, so that a point is rewritten only a few times. */
static unsigned pieces_to_keep(const struct fold *f, const struct fold_series *s, size_t fresh)
{
	size_t take = fresh, all = fresh + (size_t)(s->sum.count % CHUNK_POINTS);
	unsigned keep = s->pieces;

	if (!f->pieces || all >= CHUNK_POINTS)
		return 0;
	while (keep > 0 && (s->piece_points[keep - 1] < 2 * take || keep >= FOLD_PIECES))
		take += s->piece_points[--keep];
	return keep;
}

static struct fold_plan plan_series_fold(const struct fold *f, const struct fold_series *s, size_t fresh)
{
	unsigned at = pieces_to_keep(f, s, fresh), i;
	int64_t full = s->chunks - s->pieces;
	struct fold_plan p = { .rewrite = full + at };

	for (i = at; i < s->pieces; i++)
		p.kept += s->piece_points[i];
	/* A spike may cross chunks: the search needs some points before the new ones. */
	while (s->watched && at > 0 && p.before + p.kept < SPIKE_CONTEXT)
		p.before += s->piece_points[--at];
	p.load = full + at;
	if (s->watched && full > 0 && p.before + p.kept < SPIKE_CONTEXT) {
		p.load--;
		p.before += CHUNK_POINTS;
	}
	return p;
}

static int load_tail_points(struct fold *f, const struct fold_series *s, const struct fold_plan *p,
			    struct point_tail *all)
{
	for (int64_t number = p->load; number < s->chunks; number++)
		fold_rows_chunk(f->rows, SCAN_CHUNK_ID(s->id, number), all);
	return all->count == p->before + p->kept
		       ? 0
		       : err_set(f->err, ERR_DAMAGED, "store: series %lld lacks points: run dptrack doctor",
				 (long long)s->id);
}

/* all: points of the replaced pieces, then the new points, from `from` on. Pieces are removed before new ones are
 * added: at an address an update leaves as much garbage as that, and costs more. */
static int write_chunks(struct fold *f, struct fold_series *s, const struct fold_plan *p, const struct point_tail *all)
{
	size_t from = p->before, n;
	int64_t number = p->rewrite, end = number + (int64_t)((all->count - from + CHUNK_POINTS - 1) / CHUNK_POINTS);
	int rc = 0;

	fold_rows_drop(f->rows, s, f->pieces ? number : end);
	for (; number < end && !rc; from += n, number++) {
		n = all->count - from < CHUNK_POINTS ? all->count - from : CHUNK_POINTS;
		rc = fold_rows_put_chunk(f->rows, SCAN_CHUNK_ID(s->id, number), all->points + from, (unsigned)n,
					 f->err);
	}
	s->chunks = end;
	return rc;
}

/* Folds the new points of one series: rewrites its last pieces and updates its summary. */
static int fold_series(struct fold *f, int64_t id, const struct point_tail *fresh)
{
	struct fold_series s;
	struct fold_plan p;
	struct point_tail all = { 0 };
	size_t context;
	int rc = fold_rows_series(f->rows, id, &s, f->err);

	if (rc)
		return rc;
	p = plan_series_fold(f, &s, fresh->count);
	rc = load_tail_points(f, &s, &p, &all);
	context = all.count > SPIKE_CONTEXT ? all.count - SPIKE_CONTEXT : 0;
	if (!rc) {
		tail_add(&all, fresh->points, fresh->count);
		add_to_summary(&s, fresh);
		rc = write_chunks(f, &s, &p, &all);
	}
	if (!rc)
		rc = fold_rows_put_series(f->rows, &s, f->err);
	if (!rc && s.watched)
		rc = store_new_spike(f, &s, all.points + context, all.count - context);
	tail_done(&all);
	return rc;
}

static int64_t series_id_at(const struct fold *f, size_t i)
{
	size_t len;
	int64_t id;

	memcpy(&id, map_key_at(f->series, i, &len), sizeof(id));
	return id;
}

/* Reads the chunks that the n series from `at` on need. */
static int read_chunks_ahead(struct fold *f, const int64_t *ids, size_t at, size_t n)
{
	int64_t *chunks = mem_array(n * (FOLD_PIECES + 1) + 1, sizeof(*chunks)), number;
	struct fold_series s;
	size_t count = 0, i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		struct fold_plan p;

		rc = fold_rows_series(f->rows, ids[i], &s, f->err);
		if (rc)
			break;
		p = plan_series_fold(f, &s, ((const struct point_tail *)map_at(f->series, at + i))->count);
		for (number = p.load; number < s.chunks; number++)
			chunks[count++] = SCAN_CHUNK_ID(s.id, number);
	}
	if (!rc)
		rc = fold_rows_chunks_ahead(f->rows, chunks, count, f->err);
	free(chunks);
	return rc;
}

/* Reads all rows that the n series from `at` on need, in three round trips. */
static int read_fold_ahead(struct fold *f, size_t at, size_t n)
{
	int64_t ids[FOLD_AHEAD];
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		ids[i] = series_id_at(f, at + i);
	rc = fold_rows_ahead(f->rows, ids, n, f->err);
	return rc ? rc : read_chunks_ahead(f, ids, at, n);
}

static int fold_all_series(struct fold *f)
{
	size_t count = map_count(f->series), at, i, n;
	int rc = 0;

	for (at = 0; at < count && !rc; at += n) {
		n = count - at < FOLD_AHEAD ? count - at : FOLD_AHEAD;
		rc = read_fold_ahead(f, at, n);
		for (i = at; i < at + n && !rc; i++)
			rc = fold_series(f, series_id_at(f, i), map_at(f->series, i));
		if (!rc)
			rc = fold_rows_flush(f->rows, f->err);
	}
	return rc;
}

static void finish_fold(struct fold *f)
{
	size_t i;

	fold_rows_free(f->rows);
	for (i = 0; i < map_count(f->series); i++)
		tail_done(map_at(f->series, i));
	map_free(f->series);
	buf_done(&f->read);
}

int fold_some(struct db *d, const struct fold_bound *bound, struct fold_result *ret, struct err *err)
{
	struct fold f = { .db = d,
			  .res = ret,
			  .err = err,
			  .series = map_new(sizeof(struct point_tail)),
			  .rows = fold_rows_new(d),
			  .pieces = db_shared(d) };
	int rc;

	memset(ret, 0, sizeof(*ret));
	array_begin(&f.read);
	rc = gather_fold_rows(&f, bound);
	if (!rc)
		rc = fold_all_series(&f);
	if (!rc) /* only the rows read: rows added later are folded later */
		rc = db_run(d, DB_log_delete, err, "t", array_end(&f.read));
	finish_fold(&f);
	return rc;
}
