/* SPDX-License-Identifier: Apache-2.0 */
/* chunks.c: reads rows first; a series without rows may be archived. */
#include "tracker/mem/mem.h"
#include "web/store/points/chunks.h"

#include <stdlib.h>

#include "web/store/points/scan.h"

int chunks_start(struct chunks *c, struct db *d, const struct chunks_range *r, struct err *err)
{
	*c = (struct chunks){ .d = d, .what = r->what, .series = r->series,
			      .first = SCAN_CHUNK_ID(r->series, r->first), .last = SCAN_CHUNK_ID(r->series, r->last) };
	return db_start(d, &c->rows, r->what == CHUNKS_HEADS ? DB_chunk_heads : DB_chunk_range, err, "ii", c->first,
			c->last);
}

static int fail_missing_chunk(int64_t series, struct err *err)
{
	return err_set(err, ERR_DAMAGED, "store: a chunk of series %lld is missing: run dptrack doctor",
		       (long long)series);
}

/* Reads the next row: 1, 0 at the end, negative: failed. */
static int next_chunk_row(struct chunks *c, struct err *err)
{
	int rc = db_next(c->d, c->rows, err);

	if (rc <= 0) {
		c->rows = NULL;
		return rc;
	}
	c->any = true;
	if (c->what == CHUNKS_DATA) {
		c->id = db_i64(c->rows, COL_chunk_range_id);
		c->data = db_blob(c->rows, COL_chunk_range_data);
		c->bytes = db_bytes(c->rows, COL_chunk_range_data);
		return 1;
	}
	c->id = db_i64(c->rows, COL_chunk_heads_id);
	c->points = db_i64(c->rows, COL_chunk_heads_points);
	c->min_step = db_i64(c->rows, COL_chunk_heads_min_step);
	c->max_step = db_i64(c->rows, COL_chunk_heads_max_step);
	c->min_time = db_f64(c->rows, COL_chunk_heads_min_time);
	c->max_time = db_f64(c->rows, COL_chunk_heads_max_time);
	return 1;
}

/* Reads the highest step of a chunk from its row: 1, 0 if there is no row. */
static int read_row_end(struct db *d, int64_t id, int64_t *ret, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_chunk_heads, err, "ii", id, id);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	*ret = db_i64(q, COL_chunk_heads_max_step);
	db_stop(q);
	return 1;
}

static size_t find_archived_step(const struct archive_list *l, int64_t step)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->entry[mid].max_step < step)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int start_archived(struct chunks *c, struct db *d, int64_t series, int64_t step, struct err *err)
{
	int rc;

	*c = (struct chunks){ .d = d, .what = CHUNKS_DATA, .series = series,
			      .last = SCAN_CHUNK_ID(series, CHUNKS_LAST) };
	rc = archived_series(&c->archived, d, series, err);
	if (rc <= 0)
		return rc ? rc : fail_missing_chunk(series, err);
	c->at = find_archived_step(&c->archived.list, step);
	return 0;
}

int chunks_start_step(struct chunks *c, struct db *d, const struct chunks_step *from, struct err *err)
{
	int64_t lo = 0, hi = from->n, end = 0;

	while (lo < hi) {
		int64_t mid = (lo + hi) / 2;
		int rc = read_row_end(d, SCAN_CHUNK_ID(from->series, mid), &end, err);

		if (rc <= 0)
			return rc ? rc : start_archived(c, d, from->series, from->step, err);
		if (end < from->step)
			lo = mid + 1;
		else
			hi = mid;
	}
	return chunks_start(c, d, &(struct chunks_range){ CHUNKS_DATA, from->series, lo, CHUNKS_LAST }, err);
}

static int read_archived_data(struct chunks *c, const struct archive_entry *e, struct err *err)
{
	free(c->room);
	c->room = mem_alloc((size_t)e->bytes + 1);
	c->data = c->room;
	c->bytes = e->bytes;
	return archived_read(&c->archived, &(struct archive_part){ e, 0, e->bytes }, c->room, err);
}

static int next_archived(struct chunks *c, struct err *err)
{
	const struct archive_entry *e = c->archived.list.entry + c->at;
	int rc;

	if (c->at >= c->archived.list.n || e->id > c->last)
		return 0;
	c->at++;
	c->id = e->id;
	c->points = e->points;
	c->min_step = e->min_step;
	c->max_step = e->max_step;
	c->min_time = e->min_time;
	c->max_time = e->max_time;
	rc = c->what == CHUNKS_DATA ? read_archived_data(c, e, err) : 0;
	return rc ? rc : 1;
}

static void stop_body(struct chunks *c)
{
	if (c->body)
		db_stop(c->body);
	c->body = NULL;
}

static int load_chunk_row(struct chunks *c, struct err *err)
{
	int rc = db_start(c->d, &c->body, DB_chunk_range, err, "ii", c->id, c->id);

	rc = rc ? rc : db_next(c->d, c->body, err);
	if (rc <= 0) {
		c->body = NULL;
		return rc ? rc : fail_missing_chunk(c->series, err);
	}
	c->data = db_blob(c->body, COL_chunk_range_data);
	c->bytes = db_bytes(c->body, COL_chunk_range_data);
	return 0;
}

int chunks_load(struct chunks *c, struct err *err)
{
	stop_body(c);
	return c->archived.index ? read_archived_data(c, c->archived.list.entry + c->at - 1, err)
				 : load_chunk_row(c, err);
}

int chunks_next(struct chunks *c, struct err *err)
{
	int rc;

	stop_body(c);
	rc = c->rows ? next_chunk_row(c, err) : 0;
	if (rc || c->any)
		return rc;
	if (!c->archived.index) {
		rc = archived_series(&c->archived, c->d, c->series, err);
		c->any = !rc; /* not archived either: do not look again */
		if (rc <= 0)
			return rc;
		c->at = archived_find(&c->archived, c->first);
	}
	return next_archived(c, err);
}

void chunks_stop(struct chunks *c, int rc, struct err *err)
{
	stop_body(c);
	archived_outcome(&c->archived, rc, err);
	if (c->rows)
		db_stop(c->rows);
	archived_done(&c->archived);
	free(c->room);
	c->rows = NULL;
	c->room = NULL;
}
