/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: visits chunks, then log rows. */
#include "tracker/mem/mem.h"
#include "web/store/points/scan.h"

#include <stdlib.h>

#include "web/store/points/chunks.h"

int scan_damaged(struct err *err, const char *what, int64_t id)
{
	return err_set(err, ERR_DAMAGED, "store: %s %lld is damaged: check the disk and restore a backup", what,
		       (long long)id);
}

/* Passes the current chunk to fn. */
static int pass_chunk(const struct chunks *w, scan_chunk_fn *fn, void *arg, struct err *err)
{
	struct chunk c;

	return chunk_open(&c, w->data, w->bytes) ? scan_damaged(err, "chunk", w->id) : fn(arg, &c, err);
}

int scan_series_chunks(struct db *d, int64_t series, scan_chunk_fn *fn, void *arg, struct err *err)
{
	struct chunks w;
	int rc = chunks_start(&w, d, &(struct chunks_range){ CHUNKS_DATA, series, 0, CHUNKS_LAST }, err);

	if (rc)
		return rc;
	while (!rc && (rc = chunks_next(&w, err)) > 0)
		rc = pass_chunk(&w, fn, arg, err);
	chunks_stop(&w, rc, err);
	return rc;
}

/* Unknown (NaN) times overlap every window. */
static bool chunk_overlaps(const struct chunks *c, const struct scan_window *w)
{
	return c->min_step <= w->max_step && c->max_step >= w->min_step && !(c->min_time > w->max_time) &&
	       !(c->max_time < w->min_time);
}

static int load_and_pass(struct chunks *w, scan_chunk_fn *fn, void *arg, struct err *err)
{
	int rc = chunks_load(w, err);

	return rc ? rc : pass_chunk(w, fn, arg, err);
}

int scan_series_window(struct db *d, const struct scan_window *w, scan_chunk_fn *fn, void *arg, struct err *err)
{
	struct chunks head;
	int rc = chunks_start(&head, d, &(struct chunks_range){ CHUNKS_HEADS, w->series, 0, CHUNKS_LAST }, err);

	if (rc)
		return rc;
	while (!rc && (rc = chunks_next(&head, err)) > 0)
		rc = chunk_overlaps(&head, w) ? load_and_pass(&head, fn, arg, err) : 0;
	chunks_stop(&head, rc, err);
	return rc;
}

/* Access to the bytes of one chunk, whole or in parts. */
struct scan_group_source {
	struct db *d;
	int64_t id;
	struct blob *blob;
	bool open;		    /* blob, or entry, belongs to id */
	const unsigned char *whole; /* all bytes; NULL: not read, or only a part */
	size_t len;		    /* length of `whole` */
	bool wants_whole;	    /* bytes of chunks are cached */
	unsigned char *bytes;
	size_t cap;
	struct archived archived; /* archive of the series, once it is known to be archived */
	const struct archive_entry *entry;
};

static int find_archive_entry(struct scan_group_source *p, struct err *err)
{
	size_t at = archived_find(&p->archived, p->id);

	if (at == p->archived.list.n || p->archived.list.entry[at].id != p->id)
		return scan_damaged(err, "chunk", p->id);
	p->entry = &p->archived.list.entry[at];
	return 0;
}

/* A chunk without a row may be archived. */
static int open_archived_chunk(struct scan_group_source *p, int rc, struct err *err)
{
	struct err why = ERR_INIT;
	int found = archived_series(&p->archived, p->d, SCAN_CHUNK_SERIES(p->id), &why);

	if (!found)
		return rc;
	if (found < 0 && err)
		*err = why;
	blob_close(p->blob);
	p->blob = NULL;
	return found < 0 ? found : find_archive_entry(p, err);
}

static int open_chunk_bytes(struct scan_group_source *p, struct err *err)
{
	static const struct blob_column data = { "chunk", "data", DB_chunk_ahead };
	int rc = 0;

	if (!p->open && p->archived.index)
		rc = find_archive_entry(p, err);
	else if (!p->open && (rc = blob_open(&p->blob, p->d, &data, p->id, err)))
		rc = open_archived_chunk(p, rc, err);
	p->open = !rc;
	return rc;
}

static size_t count_group_bytes(const struct scan_group_source *p)
{
	return p->entry ? p->entry->bytes : blob_bytes(p->blob);
}

static int read_group_bytes(struct scan_group_source *p, size_t from, size_t n, struct err *err)
{
	mem_reserve(&p->bytes, &p->cap, n);
	return p->entry ? archived_read(&p->archived, &(struct archive_part){ p->entry, from, n }, p->bytes, err)
			: blob_read(p->blob, p->bytes, from, n, err);
}

static void next_scan_chunk(struct scan_group_source *p, int64_t id)
{
	p->id = id;
	p->open = false;
	p->whole = NULL;
}

static int read_whole_chunk(struct scan_group_source *p, struct err *err)
{
	int rc = open_chunk_bytes(p, err);
	size_t len;

	if (rc)
		return rc;
	len = count_group_bytes(p);
	rc = read_group_bytes(p, 0, len, err);
	if (rc)
		return rc;
	p->whole = p->bytes;
	p->len = len;
	return 0;
}

static int read_span(struct scan_group_source *p, const struct chunk_span *at, struct err *err)
{
	int rc = open_chunk_bytes(p, err);

	if (!rc && count_group_bytes(p) < (size_t)at->offset + at->len + CHUNK_PAD)
		rc = scan_damaged(err, "chunk", p->id);
	return rc ? rc : read_group_bytes(p, at->offset, at->len + CHUNK_PAD, err);
}

int scan_group(struct scan_group_source *from, const struct outline *o, unsigned group, struct sum_point *ret,
	       struct err *err)
{
	const struct chunk_span *at = &o->span[group];
	const unsigned char *bytes;
	int rc = 0;

	if (!from->whole)
		rc = from->wants_whole ? read_whole_chunk(from, err) : read_span(from, at, err);
	if (rc)
		return rc;
	if (from->whole && from->len < (size_t)at->offset + at->len + CHUNK_PAD)
		return scan_damaged(err, "chunk", from->id);
	bytes = from->whole ? from->whole + at->offset : from->bytes;
	return chunk_span_points(at, bytes, ret) ? scan_damaged(err, "chunk", from->id) : 0;
}

static int read_scan_chunk(struct scan_group_source *p, struct chunk *ret, struct sum_point *points, struct err *err)
{
	int rc = read_whole_chunk(p, err);

	if (rc)
		return rc;
	return chunk_open(ret, p->whole, p->len) || chunk_points(ret, points) ? scan_damaged(err, "chunk", p->id) : 0;
}

static struct outline_key scan_outline_key(const struct scan_group_source *p, const struct scan_parts *o)
{
	return (struct outline_key){ o->outlines_generation, p->id };
}

static void keep_whole_outline(const struct scan_group_source *p, const struct scan_parts *o)
{
	const struct outline_key key = scan_outline_key(p, o);

	if (p->wants_whole && p->whole)
		outlines_put_bytes(o->outlines, &key, p->whole, p->len);
}

static int pass_read_chunk(struct scan_group_source *p, bool full, const struct scan_parts *o, struct err *err)
{
	const struct outline_key key = scan_outline_key(p, o);
	struct sum_point points[CHUNK_POINTS];
	struct outline *outline;
	struct chunk c;
	int rc = read_scan_chunk(p, &c, points, err);

	if (rc || !full)
		return rc ? rc : o->points(o->arg, points, c.points, err);
	outline = mem_alloc(sizeof(*outline));
	outline_describe(outline, &c, points);
	rc = o->outline(o->arg, outline, p, err);
	outlines_put(o->outlines, &key, outline);
	keep_whole_outline(p, o);
	return rc;
}

/* 1: passed (or not wanted), 0: its outline is not cached. */
static int pass_known_outline(struct scan_group_source *p, const struct scan_parts *o, struct err *err)
{
	const struct outline_key key = scan_outline_key(p, o);
	struct outline_known k;
	struct sum_point low, high;
	int rc = 0;

	if (!outlines_get(o->outlines, &key, &k))
		return 0;
	p->whole = k.bytes;
	p->len = k.len;
	low = (struct sum_point){ k.outline->all.min_step, k.outline->min_time, 0 };
	high = (struct sum_point){ k.outline->all.max_step, k.outline->max_time, 0 };
	if (o->want(o->arg, &low, &high))
		rc = o->outline(o->arg, k.outline, p, err);
	outlines_release(o->outlines);
	if (!k.bytes)
		keep_whole_outline(p, o);
	p->whole = NULL; /* the cache may evict it */
	return rc ? rc : 1;
}

static int pass_chunk_head(struct scan_group_source *p, const struct chunks *head, const struct scan_parts *o,
			   struct err *err)
{
	struct sum_point low = { head->min_step, head->min_time, 0 }, high = { head->max_step, head->max_time, 0 };
	bool full = head->points == CHUNK_POINTS;
	int rc;

	next_scan_chunk(p, head->id);
	rc = full ? pass_known_outline(p, o, err) : 0;
	if (!rc && o->want(o->arg, &low, &high))
		rc = pass_read_chunk(p, full, o, err);
	return rc < 0 ? rc : 0;
}

static int pass_chunk_heads(struct scan_group_source *p, int64_t series, int64_t number, const struct scan_parts *o,
			    struct err *err)
{
	struct chunks head;
	int rc = chunks_start(&head, p->d, &(struct chunks_range){ CHUNKS_HEADS, series, number, CHUNKS_LAST }, err);

	if (rc)
		return rc;
	while (!rc && (rc = chunks_next(&head, err)) > 0)
		rc = pass_chunk_head(p, &head, o, err);
	chunks_stop(&head, rc, err);
	return rc;
}

/* Cached outlines need no access to the database; rows are read from the first chunk that is not cached. */
int scan_series_parts(struct db *d, int64_t series, uint64_t folded, const struct scan_parts *o, struct err *err)
{
	struct scan_group_source p = { .d = d, .wants_whole = outlines_want_bytes(o->outlines) };
	int64_t number = 0, full = (int64_t)(folded / CHUNK_POINTS);
	int rc = 1;

	while (number < full && rc > 0) {
		next_scan_chunk(&p, SCAN_CHUNK_ID(series, number));
		rc = pass_known_outline(&p, o, err);
		number += rc > 0;
	}
	rc = rc > 0 ? 0 : rc;
	if (!rc && number * CHUNK_POINTS < (int64_t)folded)
		rc = pass_chunk_heads(&p, series, number, o, err);
	blob_close(p.blob);
	archived_outcome(&p.archived, rc, err);
	archived_done(&p.archived);
	free(p.bytes);
	return rc;
}

/* Decodes chunks for the series at one position of the list. */
struct decode {
	const struct series_scan *scan;
	size_t at;
	struct sum_point *room;
};

static int pass_decoded_chunk(void *arg, const struct chunk *c, struct err *err)
{
	struct decode *to = arg;

	if (chunk_points(c, to->room))
		return err_set(err, ERR_DAMAGED, "store: a chunk is damaged: check the disk and restore a backup");
	return to->scan->fn(to->scan->arg, to->at, to->room, c->points, err);
}

static size_t find_series_position(const struct series_scan *s, int64_t id)
{
	size_t at = list_find(s->ids, s->count, sizeof(*s->ids), id);

	return at < s->count && s->ids[at] == id ? at : SIZE_MAX;
}

/* Passes the points of one log row that belong to one of the series. */
static int scan_row(const void *bytes, size_t len, const struct series_scan *s, struct sum_point *room, struct err *err)
{
	struct pack_reader r;
	int64_t id;
	uint64_t points;
	size_t at, n;
	int rc;

	if (pack_open(&r, bytes, len))
		return ERR_CORRUPT;
	while ((rc = pack_next_series(&r, &id, &points)) > 0) {
		at = find_series_position(s, id);
		while (at != SIZE_MAX && rc > 0) {
			for (n = 0; n < CHUNK_POINTS && (rc = pack_next_point(&r, &room[n])) > 0; n++)
				;
			if (rc < 0)
				return rc;
			if (!n)
				break;
			rc = s->fn(s->arg, at, room, n, err);
			if (rc)
				return rc;
			rc = 1;
		}
	}
	return rc;
}

static int scan_log_room(struct db *d, enum db_query query, const struct series_scan *s, struct sum_point *room,
			 struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, query, err, "i", s->run_id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		if (err)
			err->code = 0;
		rc = scan_row(db_blob(q, COL_log_of_run_data), db_bytes(q, COL_log_of_run_data), s, room, err);
		if (rc == ERR_CORRUPT && !(err && err->code))
			rc = scan_damaged(err, "log row", db_i64(q, COL_log_of_run_id));
		if (rc)
			db_stop(q);
	}
	return rc;
}

int scan_log(struct db *d, const struct series_scan *s, struct err *err)
{
	struct sum_point *room = mem_alloc(CHUNK_POINTS * sizeof(*room));
	int rc = scan_log_room(d, DB_log_of_run, s, room, err);

	free(room);
	return rc;
}

/* Passes the last chunk of a series, if any. It is a row, since only writers of the run call this. */
static int scan_last_chunk(struct db *d, int64_t series, scan_chunk_fn *fn, void *arg, struct err *err)
{
	struct db_rows *q;
	struct chunk c;
	int rc =
		db_start(d, &q, DB_chunk_newest, err, "ii", SCAN_CHUNK_ID(series, 0), SCAN_CHUNK_ID(series + 1, 0) - 1);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	if (chunk_open(&c, db_blob(q, COL_chunk_newest_data), db_bytes(q, COL_chunk_newest_data)))
		rc = scan_damaged(err, "a chunk of series", series);
	else
		rc = fn(arg, &c, err);
	db_stop(q);
	return rc;
}

int scan_newest(struct db *d, const struct series_scan *s, struct err *err)
{
	struct sum_point *room = mem_alloc(CHUNK_POINTS * sizeof(*room));
	struct decode to = { s, 0, room };
	int rc = scan_last_chunk(d, s->ids[0], pass_decoded_chunk, &to, err);

	if (!rc)
		rc = scan_log_room(d, DB_log_newest, s, room, err);
	free(room);
	return rc;
}

int scan_points(struct db *d, const struct series_scan *s, struct err *err)
{
	struct sum_point *room = mem_alloc(CHUNK_POINTS * sizeof(*room));
	size_t i;
	int rc = 0;

	for (i = 0; i < s->count && !rc; i++)
		rc = scan_series_chunks(d, s->ids[i], pass_decoded_chunk, &(struct decode){ s, i, room }, err);
	if (!rc && s->count)
		rc = scan_log_room(d, DB_log_of_run, s, room, err);
	free(room);
	return rc;
}
