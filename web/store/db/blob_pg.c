/* SPDX-License-Identifier: Apache-2.0 */
/* blob_pg.c: reads bytes of PostgreSQL rows. A row costs a round trip, so rows are read ahead: first one, then twice
 * as many each time the next id follows closely. */
#include "config.h"

#ifdef HAVE_LIBPQ

#include "web/store/db/pg_inside.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/mem/mem.h"

#define AHEAD_MAX 64

struct ahead_row {
	int64_t id;
	size_t from, n; /* in bytes: where, how long */
};

struct pg_blob {
	struct blob blob; /* first member: a blob is cast back to this */
	struct buf bytes;
	struct ahead_row row[AHEAD_MAX];
	int count, now; /* rows read; the current one */
	int64_t first;	/* requested ids: first to first + asked - 1 */
	int asked;
};

static struct pg_blob *pg_blob(struct blob *b)
{
	return (struct pg_blob *)(void *)b;
}

static bool find_kept_blob(struct pg_blob *b, int64_t id)
{
	for (int i = 0; i < b->count; i++) {
		if (b->row[i].id == id) {
			b->now = i;
			return true;
		}
	}
	return false;
}

static void keep_blob_row(struct pg_blob *b, struct db_rows *q)
{
	struct ahead_row *r = &b->row[b->count];

	r->id = db_i64(q, 0);
	r->from = b->bytes.len;
	r->n = db_bytes(q, 1);
	if (r->n)
		buf_add(&b->bytes, db_blob(q, 1), r->n);
	b->count++;
}

/* How many rows to request next. */
static int rows_from(const struct pg_blob *b, int64_t id)
{
	int64_t gap = id - (b->first + b->asked);

	if (!b->asked || gap < 0 || gap > b->asked)
		return 1;
	return b->asked < AHEAD_MAX ? b->asked * 2 : AHEAD_MAX;
}

static int read_blobs_ahead(struct pg_blob *b, struct db *d, enum db_query rows, int64_t id, struct err *err)
{
	int n = rows_from(b, id), rc;
	struct db_rows *q;

	b->first = id;
	b->asked = n;
	b->count = 0;
	buf_reset(&b->bytes);
	rc = db_start(d, &q, rows, err, "ii", id, id + n - 1);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = 0;
		if (b->count < n)
			keep_blob_row(b, q);
	}
	return rc;
}

int pg_blob_open(struct blob **io, struct db *d, const struct blob_column *of, int64_t id, struct err *err)
{
	struct pg_blob *b = *io ? pg_blob(*io) : mem_zalloc(sizeof(*b));
	int rc;

	if (!*io) {
		b->blob.engine = d->engine;
		buf_init(&b->bytes, SIZE_MAX);
		*io = &b->blob;
	}
	if (find_kept_blob(b, id))
		return 0;
	rc = read_blobs_ahead(b, d, of->rows, id, err);
	if (!rc && !find_kept_blob(b, id))
		rc = err_set(err, ERR_DAMAGED, "store: row %lld of %s is missing: run dptrack doctor", (long long)id,
			     of->table);
	return rc;
}

void pg_blob_close(struct blob *blob)
{
	struct pg_blob *b = pg_blob(blob);

	buf_done(&b->bytes);
	free(b);
}

size_t pg_blob_bytes(const struct blob *blob)
{
	const struct pg_blob *b = (const struct pg_blob *)(const void *)blob;

	return b->row[b->now].n;
}

int pg_blob_read(struct blob *blob, void *to, size_t from, size_t n, struct err *err)
{
	const struct pg_blob *b = pg_blob(blob);
	const struct ahead_row *r = &b->row[b->now];

	if (from > r->n || n > r->n - from)
		return err_set(err, ERR_DAMAGED, "store: a row is too short: run dptrack doctor");
	if (n)
		memcpy(to, b->bytes.data + r->from + from, n);
	return 0;
}

#endif
