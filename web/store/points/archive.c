/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c: format of archives, and an LRU cache of pieces and indexes. */
#include "web/store/points/archive.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/little.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "web/store/points/scan.h"

#define ENTRY_BYTES 56
#define TAIL_BYTES 24
#define VERSION 1
#define MAGIC "DPTRARCH"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECES 64
#define INDEXES 64
#define INDEX_IDLE_BYTES ((size_t)64 << 20)
#define KEY_BYTES 1025 /* longest key of an object store */
#define DAMAGED "the object %.400s, which has points of a run, is damaged: restore it from a copy"

/* --- form --------------------------------------------------------------------------------------------------- */

static uint64_t bits_of_double(double v)
{
	uint64_t u;

	memcpy(&u, &v, sizeof(u));
	return u;
}

static double double_of(uint64_t u)
{
	double v;

	memcpy(&v, &u, sizeof(v));
	return v;
}

static void put_archive_index_entry(unsigned char *at, const struct archive_entry *e)
{
	little_put_u64(at, (uint64_t)e->id);
	little_put_u32(at + 8, e->points);
	little_put_u32(at + 12, e->bytes);
	little_put_u64(at + 16, e->offset);
	little_put_u64(at + 24, (uint64_t)e->min_step);
	little_put_u64(at + 32, (uint64_t)e->max_step);
	little_put_u64(at + 40, bits_of_double(e->min_time));
	little_put_u64(at + 48, bits_of_double(e->max_time));
}

static struct archive_entry get_archive_index_entry(const unsigned char *at)
{
	return (struct archive_entry){
		.id = (int64_t)little_get_u64(at), .points = little_get_u32(at + 8), .bytes = little_get_u32(at + 12),
		.offset = little_get_u64(at + 16), .min_step = (int64_t)little_get_u64(at + 24),
		.max_step = (int64_t)little_get_u64(at + 32), .min_time = double_of(little_get_u64(at + 40)),
		.max_time = double_of(little_get_u64(at + 48)),
	};
}

void archive_add_index(struct buf *to, const struct archive_list *l, uint64_t chunk_bytes)
{
	unsigned char bytes[ENTRY_BYTES];
	uint32_t crc = 0;
	size_t i;

	for (i = 0; i < l->n; i++) {
		put_archive_index_entry(bytes, &l->entry[i]);
		crc = crc32c(crc, bytes, ENTRY_BYTES);
		buf_add(to, bytes, ENTRY_BYTES);
	}
	little_put_u64(bytes, chunk_bytes);
	little_put_u32(bytes + 8, crc);
	little_put_u32(bytes + 12, VERSION);
	memcpy(bytes + 16, MAGIC, 8);
	buf_add(to, bytes, TAIL_BYTES);
}

/* Checks that chunks are ordered by id and lie before the index. */
static bool is_list_ordered(const struct archive_list *l, uint64_t chunk_bytes)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct archive_entry *e = &l->entry[i];

		if (e->offset > chunk_bytes || e->bytes > chunk_bytes - e->offset || (i && e->id <= l->entry[i - 1].id))
			return false;
	}
	return true;
}

/* --- in memory ---------------------------------------------------------------------------------------------- */

struct archives_index {
	char object[ARCHIVE_NAME_BYTES];
	uint64_t bytes; /* size of the object */
	struct archive_list list;
	struct archive_entry *entries;
	unsigned users;
	uint64_t used; /* clock of the last use */
};

struct archive_piece {
	char object[ARCHIVE_NAME_BYTES];
	uint64_t from;
	size_t n;
	unsigned char *bytes; /* NULL: empty slot */
	uint64_t used;
};

struct archives {
	struct archives_source from;
	pthread_mutex_t lock;	       /* guards all below */
	char said[ARCHIVE_NAME_BYTES]; /* the damaged object last reported in the log */
	uint64_t now;
	struct archive_piece piece[PIECES];
	struct archives_index *index[INDEXES];
};

struct archives *archives_new(const struct archives_source *from)
{
	struct archives *s = mem_zalloc(sizeof(*s));

	s->from = *from;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void free_archive_index(struct archives_index *x)
{
	if (x)
		free(x->entries);
	free(x);
}

void archives_free(struct archives *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < PIECES; i++)
		free(s->piece[i].bytes);
	for (i = 0; i < INDEXES; i++)
		free_archive_index(s->index[i]);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Under the lock: copies the start of [from, from + n) from a cached piece; returns the number of bytes. */
static size_t copy_known_piece(struct archives *s, const char *object, uint64_t from, size_t n, unsigned char *to)
{
	size_t i, skip, most;

	for (i = 0; i < PIECES; i++) {
		struct archive_piece *p = &s->piece[i];

		if (!p->bytes || from < p->from || from >= p->from + p->n || strcmp(p->object, object))
			continue;
		p->used = ++s->now;
		skip = (size_t)(from - p->from);
		most = p->n - skip < n ? p->n - skip : n;
		memcpy(to, p->bytes + skip, most);
		return most;
	}
	return 0;
}

/* Takes ownership of bytes (from malloc). */
static void keep_archive_piece(struct archives *s, const char *object, uint64_t from, size_t n, unsigned char *bytes)
{
	struct archive_piece *oldest = &s->piece[0];
	size_t i;

	for (i = 1; i < PIECES; i++)
		if (s->piece[i].used < oldest->used)
			oldest = &s->piece[i];
	free(oldest->bytes);
	*oldest = (struct archive_piece){ .from = from, .n = n, .bytes = bytes, .used = ++s->now };
	snprintf(oldest->object, sizeof(oldest->object), "%s", object);
}

/* Under the lock; the object may be repaired before the next read. */
static void forget_pieces(struct archives *s, const char *object)
{
	size_t i;

	for (i = 0; i < PIECES; i++)
		if (s->piece[i].bytes && !strcmp(s->piece[i].object, object)) {
			free(s->piece[i].bytes);
			s->piece[i] = (struct archive_piece){ .bytes = NULL };
		}
}

int archives_damaged(struct archives *s, const char *object, struct err *err)
{
	char key[KEY_BYTES];
	bool said;

	s->from.key(s->from.arg, object, key, sizeof(key));
	pthread_mutex_lock(&s->lock);
	forget_pieces(s, object);
	said = !strcmp(s->said, object);
	snprintf(s->said, sizeof(s->said), "%s", object);
	pthread_mutex_unlock(&s->lock);
	if (!said)
		log_error(DAMAGED, key);
	return err_set(err, ERR_DAMAGED, "store: " DAMAGED, key);
}

void archived_outcome(const struct archived *a, int rc, struct err *err)
{
	if (rc == ERR_DAMAGED && a->index)
		archives_damaged(a->of, a->index->object, err);
}

/* Fetches the piece that contains `at`. */
static int fetch_archive_piece(struct archives *s, const struct archives_index *x, uint64_t at, struct err *err)
{
	uint64_t from = at - at % PIECE_BYTES;
	size_t n = x->bytes - from < PIECE_BYTES ? (size_t)(x->bytes - from) : PIECE_BYTES;
	unsigned char *bytes = mem_alloc(n);
	struct archive_range r = { x->object, from, n };
	int rc = s->from.fetch(s->from.arg, &r, bytes, err);

	if (rc) {
		free(bytes);
		return rc;
	}
	pthread_mutex_lock(&s->lock);
	keep_archive_piece(s, x->object, from, n, bytes);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* Reads r->n bytes of the object of x. */
static int read_archive_object(struct archives *s, const struct archives_index *x, const struct archive_range *r,
			       void *to, struct err *err)
{
	unsigned char *at = to;
	uint64_t from = r->from;
	size_t n = r->n, got;
	int rc = 0;

	if (from > x->bytes || n > x->bytes - from)
		return archives_damaged(s, x->object, err);
	while (n && !rc) {
		pthread_mutex_lock(&s->lock);
		got = copy_known_piece(s, x->object, from, n, at);
		pthread_mutex_unlock(&s->lock);
		if (!got)
			rc = fetch_archive_piece(s, x, from, err);
		from += got;
		at += got;
		n -= got;
	}
	return rc;
}

static void parse_archive_index(struct archives_index *x, const unsigned char *bytes, size_t n)
{
	size_t i;

	x->entries = mem_array(n / ENTRY_BYTES + 1, sizeof(*x->entries));
	for (i = 0; i < n / ENTRY_BYTES; i++)
		x->entries[i] = get_archive_index_entry(bytes + i * ENTRY_BYTES);
	x->list = (struct archive_list){ x->entries, n / ENTRY_BYTES };
}

/* Reads tail and index of an object and checks them. */
static int load_archive_index(struct archives *s, struct archives_index *x, struct err *err)
{
	unsigned char tail[TAIL_BYTES], *bytes;
	struct archive_range r = { x->object, x->bytes - TAIL_BYTES, TAIL_BYTES };
	uint64_t at, n;
	int rc = x->bytes < TAIL_BYTES ? archives_damaged(s, x->object, err) : read_archive_object(s, x, &r, tail, err);

	if (rc)
		return rc;
	at = little_get_u64(tail);
	n = x->bytes - TAIL_BYTES - at;
	if (memcmp(tail + 16, MAGIC, 8) || little_get_u32(tail + 12) != VERSION || at > x->bytes - TAIL_BYTES ||
	    n % ENTRY_BYTES || n / ENTRY_BYTES > ARCHIVE_CHUNKS_MAX)
		return archives_damaged(s, x->object, err);
	bytes = mem_alloc((size_t)n + 1);
	r.from = at;
	r.n = (size_t)n;
	rc = read_archive_object(s, x, &r, bytes, err);
	if (!rc && crc32c(0, bytes, (size_t)n) != little_get_u32(tail + 8))
		rc = archives_damaged(s, x->object, err);
	if (!rc)
		parse_archive_index(x, bytes, (size_t)n);
	if (!rc && !is_list_ordered(&x->list, at))
		rc = archives_damaged(s, x->object, err);
	free(bytes);
	return rc;
}

/* Under the lock: evicts unused indexes, least recently used first, until there is a free slot. */
static struct archives_index **make_index_room(struct archives *s)
{
	struct archives_index **oldest, **empty;
	size_t i, idle;

	do {
		oldest = empty = NULL;
		idle = 0;
		for (i = 0; i < INDEXES; i++) {
			struct archives_index *x = s->index[i];

			empty = x ? empty : &s->index[i];
			if (!x || x->users)
				continue;
			idle += x->list.n * sizeof(*x->entries);
			if (!oldest || x->used < (*oldest)->used)
				oldest = &s->index[i];
		}
		if (!oldest || (empty && idle <= INDEX_IDLE_BYTES))
			return empty;
		free_archive_index(*oldest);
		*oldest = NULL;
	} while (true);
}

static struct archives_index *find_archive_index(struct archives *s, const char *object)
{
	size_t i;

	for (i = 0; i < INDEXES; i++)
		if (s->index[i] && !strcmp(s->index[i]->object, object)) {
			s->index[i]->users++;
			s->index[i]->used = ++s->now;
			return s->index[i];
		}
	return NULL;
}

/* Caches x with one user; without a free slot that user frees it. */
static void keep_archive_index(struct archives *s, struct archives_index *x)
{
	struct archives_index **at;

	pthread_mutex_lock(&s->lock);
	at = make_index_room(s);
	x->users = 1;
	x->used = at ? ++s->now : 0;
	if (at)
		*at = x;
	pthread_mutex_unlock(&s->lock);
}

int archived_object(struct archived *ret, struct archives *s, const char *object, uint64_t bytes, struct err *err)
{
	struct archives_index *x;
	int rc;

	pthread_mutex_lock(&s->lock);
	x = find_archive_index(s, object);
	pthread_mutex_unlock(&s->lock);
	if (!x) {
		x = mem_zalloc(sizeof(*x));
		snprintf(x->object, sizeof(x->object), "%s", object);
		x->bytes = bytes;
		rc = load_archive_index(s, x, err);
		if (rc) {
			free_archive_index(x);
			return rc;
		}
		keep_archive_index(s, x);
	}
	*ret = (struct archived){ .of = s, .list = x->list, .index = x };
	return 0;
}

void archived_done(struct archived *a)
{
	bool last;

	if (!a->index)
		return;
	pthread_mutex_lock(&a->of->lock);
	last = !--a->index->users && !a->index->used;
	pthread_mutex_unlock(&a->of->lock);
	if (last)
		free_archive_index(a->index);
	*a = (struct archived){ .of = NULL };
}

size_t archived_find(const struct archived *a, int64_t id)
{
	size_t lo = 0, hi = a->list.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (a->list.entry[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int archived_series(struct archived *ret, struct db *d, int64_t series, struct err *err)
{
	char object[ARCHIVE_NAME_BYTES];
	struct db_rows *q;
	size_t from, to;
	uint64_t bytes;
	int rc = db_start(d, &q, DB_archive_of_series, err, "i", series);

	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	snprintf(object, sizeof(object), "%s", db_str(q, COL_archive_of_series_object));
	bytes = (uint64_t)db_i64(q, COL_archive_of_series_bytes);
	db_stop(q);
	if (!db_attached(d))
		return err_set(err, ERR_BUSY, "the points of this run are in an archive, which cannot be read here");
	rc = archived_object(ret, db_attached(d), object, bytes, err);
	if (rc)
		return rc;
	from = archived_find(ret, SCAN_CHUNK_ID(series, 0));
	to = archived_find(ret, SCAN_CHUNK_ID(series + 1, 0));
	ret->list = (struct archive_list){ ret->list.entry + from, to - from };
	return 1;
}

int archived_read(const struct archived *a, const struct archive_part *part, void *to, struct err *err)
{
	const struct archive_entry *e = part->chunk;

	if (part->from > e->bytes || part->n > e->bytes - part->from)
		return archives_damaged(a->of, a->index->object, err);
	return read_archive_object(a->of, a->index,
				   &(struct archive_range){ a->index->object, e->offset + part->from, part->n }, to,
				   err);
}
