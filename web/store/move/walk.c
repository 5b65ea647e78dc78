/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c: visits all rows of a store, and archived chunks as the rows they were, in one order, and prints them. So
 * the text of a store, and its copy, do not depend on where its points are. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/store/move/move_inside.h"
#include "web/store/points/archive.h"
#include "web/store/points/chunk.h"

/* A chunk of an archive. */
struct archived_chunk {
	const struct archive_entry *entry;
	size_t archive;
};

struct move_walk {
	int (*row)(void *arg, const struct db_row *r, struct err *err);
	void *arg;
	const struct db_table *chunks;
	struct archived *archives;
	size_t archive_count, archive_cap;
	struct archived_chunk *away; /* by id */
	size_t n, at;
	unsigned char *bytes; /* bytes of one chunk */
	size_t room;
	struct sum_point points[CHUNK_POINTS]; /* points of the same chunk */
};

struct fetching {
	unsigned char *to;
	size_t n, got;
};

static int take_archive_bytes(void *user, const void *bytes, size_t n)
{
	struct fetching *f = user;

	if (n > f->n - f->got)
		return -1;
	memcpy(f->to + f->got, bytes, n);
	f->got += n;
	return 0;
}

static int fetch_source_archive(void *arg, const struct archive_range *r, void *to, struct err *err)
{
	const struct move_end *e = arg;
	struct fetching f = { .to = to, .n = r->n };
	char key[OBJECT_KEY_MAX + 1];
	struct object_facts facts;
	int rc;

	move_key_of(e, r->object, key);
	rc = object_get(e->objects,
			&(struct object_get){ .key = key, .begin = r->from, .n = r->n, .piece = take_archive_bytes,
					      .user = &f },
			&facts, err);
	return rc || f.got == r->n ? rc : err_set(err, ERR_IO, "%s is shorter than expected", key);
}

static void find_source_key(void *arg, const char *object, char *ret, size_t room)
{
	char key[OBJECT_KEY_MAX + 1];

	move_key_of(arg, object, key);
	snprintf(ret, room, "%s", key);
}

static int open_archive(struct move_walk *w, struct move_end *e, struct db_rows *q, struct err *err)
{
	const struct archives_source source = { .fetch = fetch_source_archive, .key = find_source_key, .arg = e };
	struct archived a;
	int rc;

	if (!e->objects)
		return err_set(err, ERR_USAGE, "points of runs are in an object store: name it (s3://BUCKET/PREFIX)");
	if (!e->archives)
		e->archives = archives_new(&source);
	rc = archived_object(&a, e->archives, db_str(q, COL_archive_all_object),
			     (uint64_t)db_i64(q, COL_archive_all_bytes), err);
	if (rc)
		return rc;
	w->n += a.list.n;
	mem_push(&w->archives, &w->archive_count, &w->archive_cap, a);
	return 0;
}

static int open_archives(struct move_walk *w, struct move_end *e, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(e->d, &q, DB_archive_all, err, "");

	while (!rc && (rc = db_next(e->d, q, err)) > 0) {
		rc = open_archive(w, e, q, err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static int compare_archived_ids(const void *x, const void *y)
{
	int64_t a = ((const struct archived_chunk *)x)->entry->id, b = ((const struct archived_chunk *)y)->entry->id;

	return (a > b) - (a < b);
}

static void list_archived_chunks(struct move_walk *w)
{
	size_t i, k, n = 0;

	w->away = mem_array(w->n + 1, sizeof(*w->away));
	for (i = 0; i < w->archive_count; i++)
		for (k = 0; k < w->archives[i].list.n; k++)
			w->away[n++] = (struct archived_chunk){ &w->archives[i].list.entry[k], i };
	qsort(w->away, w->n, sizeof(*w->away), compare_archived_ids);
}

/* Reads the bytes of a chunk and verifies them, since they become a row. */
static int read_archived_chunk(struct move_walk *w, const struct archived_chunk *a, struct err *err)
{
	const struct archived *archive = &w->archives[a->archive];
	struct chunk c;
	int rc = archived_read(archive, &(struct archive_part){ a->entry, 0, a->entry->bytes }, w->bytes, err);

	if (!rc && (chunk_open(&c, w->bytes, a->entry->bytes) || chunk_points(&c, w->points)))
		rc = err_set(err, ERR_DAMAGED, "chunk %lld is damaged", (long long)a->entry->id);
	archived_outcome(archive, rc, err);
	return rc;
}

static int pass_archived_chunk(struct move_walk *w, const struct archived_chunk *a, struct err *err)
{
	const struct archive_entry *e = a->entry;
	struct db_value v[] = {
		{ .kind = 'i', .i = e->id },	   { .kind = 'i', .i = e->points },   { .kind = 'i', .i = e->min_step },
		{ .kind = 'i', .i = e->max_step }, { .kind = 'd', .d = e->min_time }, { .kind = 'd', .d = e->max_time },
		{ .kind = 'b', .n = e->bytes },
	};
	int rc;

	mem_reserve(&w->bytes, &w->room, (size_t)e->bytes + 1);
	v[6].at = w->bytes;
	rc = read_archived_chunk(w, a, err);
	return rc ? rc : w->row(w->arg, &(struct db_row){ .table = w->chunks, .values = v, .n = 7 }, err);
}

static int pass_archived_below(struct move_walk *w, int64_t id, struct err *err)
{
	int rc = 0;

	while (!rc && w->at < w->n && w->away[w->at].entry->id < id)
		rc = pass_archived_chunk(w, &w->away[w->at++], err);
	return rc;
}

static int on_source_row(void *arg, const struct db_row *r, struct err *err)
{
	struct move_walk *w = arg;
	int rc = r->table < w->chunks ? 0
				      : pass_archived_below(w, r->table == w->chunks ? r->values[0].i : INT64_MAX, err);

	return rc ? rc : w->row(w->arg, r, err);
}

int move_walk(struct move_end *from, int (*row)(void *arg, const struct db_row *r, struct err *err), void *arg,
	      struct err *err)
{
	struct move_walk *w = mem_zalloc(sizeof(*w));
	size_t i;
	int rc;

	w->row = row;
	w->arg = arg;
	w->chunks = tables_named("chunk");
	rc = open_archives(w, from, err);
	if (!rc)
		list_archived_chunks(w);
	if (!rc)
		rc = tables_walk(from->d, on_source_row, w, err);
	if (!rc)
		rc = pass_archived_below(w, INT64_MAX, err);
	for (i = 0; i < w->archive_count; i++)
		archived_done(&w->archives[i]);
	free(w->archives);
	free(w->away);
	free(w->bytes);
	free(w);
	return rc;
}

/* --- a store as text ------------------------------------------------------------------------------------------ */

#define TEXT_BYTES ((size_t)1 << 16) /* buffered before a flush */

void dump_init(struct dump *d)
{
	*d = (struct dump){ .sink = NULL };
	buf_init(&d->text, SIZE_MAX);
	sha256_init(&d->sha);
}

void dump_done(struct dump *d)
{
	buf_done(&d->text);
}

static int flush_dump(struct dump *d, size_t least, struct err *err)
{
	int rc = 0;

	if (d->text.len <= least)
		return 0;
	sha256_add(&d->sha, d->text.data, d->text.len);
	if (d->sink)
		rc = d->sink(d->arg, d->text.data, d->text.len, err);
	buf_reset(&d->text);
	return rc;
}

static void add_escaped_text(struct buf *to, const char *text)
{
	static const char escaped[] = "\\\t\n\r", letter[] = "\\tnr";
	size_t n;

	for (; *text; text += n + (text[n] != '\0')) {
		n = strcspn(text, escaped);
		buf_add(to, text, n);
		if (text[n]) {
			buf_addc(to, '\\');
			buf_addc(to, letter[strchr(escaped, text[n]) - escaped]);
		}
	}
}

static void add_hex_digits(struct buf *to, const unsigned char *bytes, size_t n)
{
	text_hex(buf_reserve(to, 2 * n + 1), bytes, n);
	to->len += 2 * n;
}

static void add_dump_value(struct buf *to, const struct db_value *v)
{
	bool null =
		(v->kind == 'x' && v->i == INT64_MIN) || (v->kind == 'd' && isnan(v->d)) || (v->kind == 't' && !v->at);

	if (null)
		buf_adds(to, "\\N");
	else if (v->kind == 'i' || v->kind == 'x')
		buf_addf(to, "%lld", (long long)v->i);
	else if (v->kind == 'd')
		buf_addf(to, "%.17g", v->d == 0 ? 0.0 : v->d);
	else if (v->kind == 't')
		add_escaped_text(to, v->at);
	else
		add_hex_digits(to, v->at, v->n);
}

int dump_row(void *dump, const struct db_row *r, struct err *err)
{
	struct dump *d = dump;

	if (r->table != d->last)
		buf_addf(&d->text, "table %s\n", r->table->name);
	d->last = r->table;
	for (int i = 0; i < r->n; i++) {
		if (i)
			buf_addc(&d->text, '\t');
		add_dump_value(&d->text, &r->values[i]);
	}
	buf_addc(&d->text, '\n');
	return flush_dump(d, TEXT_BYTES, err);
}

int dump_file(struct dump *d, const char *path, uint64_t bytes, const char *sha256, struct err *err)
{
	buf_adds(&d->text, "file ");
	add_escaped_text(&d->text, path);
	buf_addf(&d->text, "\t%llu\t%s\n", (unsigned long long)bytes, sha256);
	return flush_dump(d, TEXT_BYTES, err);
}

int dump_end(struct dump *d, char ret_sha256[65], struct err *err)
{
	int rc = flush_dump(d, 0, err);

	sha256_end(&d->sha, ret_sha256);
	return rc;
}
