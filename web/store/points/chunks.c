/* chunks.c: rows first; where a series has none, it may be archived. */
#include "web/store/points/chunks.h"

#include <stdlib.h>

#include "web/store/points/scan.h"

int chunks_start(struct chunks *c, struct db *d, enum chunks_what what, int64_t series, int64_t first, int64_t last,
		 struct err *err)
{
	*c = (struct chunks){ .d = d, .what = what, .series = series, .first = SCAN_CHUNK_ID(series, first),
			      .last = SCAN_CHUNK_ID(series, last) };
	return db_start(d, &c->rows, what == CHUNKS_HEADS ? DB_chunk_heads : DB_chunk_range, err, "ii", c->first,
			c->last);
}

static int next_row(struct chunks *c, struct err *err)
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

static int read_data(struct chunks *c, const struct archive_entry *e, struct err *err)
{
	free(c->room);
	c->room = malloc((size_t)e->bytes + 1);
	c->data = c->room;
	c->bytes = e->bytes;
	return c->room ? archived_read(&c->archived, e, 0, e->bytes, c->room, err)
		       : err_set(err, ERR_NOMEM, "store: out of memory");
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
	rc = c->what == CHUNKS_DATA ? read_data(c, e, err) : 0;
	return rc ? rc : 1;
}

int chunks_next(struct chunks *c, struct err *err)
{
	int rc = c->rows ? next_row(c, err) : 0;

	if (rc || c->any)
		return rc;
	if (!c->archived.index) {
		rc = archived_series(&c->archived, c->d, c->series, err);
		c->any = !rc; /* nowhere: it is not looked for again */
		if (rc <= 0)
			return rc;
		c->at = archived_find(&c->archived, c->first);
	}
	return next_archived(c, err);
}

void chunks_stop(struct chunks *c)
{
	if (c->rows)
		db_stop(c->rows);
	archived_done(&c->archived);
	free(c->room);
	c->rows = NULL;
	c->room = NULL;
}
