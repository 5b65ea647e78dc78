/* SPDX-License-Identifier: Apache-2.0 */
/* order.c: the sequence of series, predicted from the sequence so far. */
#include "web/store/points/order.h"

#include <stdlib.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/little.h"
#include "tracker/mem/mem.h"
#include "web/store/points/chunk.h"

#define FORMAT 1
#define HEAD_BYTES 8

/* Initially each series is predicted to be followed by the next new one, the last by the first. */
static uint32_t *first_guesses(size_t n)
{
	uint32_t *after = mem_array(n + 1, sizeof(*after)), i;

	for (i = 0; i < n; i++)
		after[i] = i + 1 < n ? i + 1 : 0;
	return after;
}

struct order_guess {
	const uint32_t *place; /* per series; UINT32_MAX: left out */
	uint32_t *after;       /* per place, the predicted next one */
	size_t kept;
};

/* Writes counts of correct predictions, each followed by the place of the series that was mispredicted. */
static void put_order_sequence(struct buf *b, const struct order_guess *g, const uint32_t *series, size_t count)
{
	uint32_t before = g->kept ? (uint32_t)g->kept - 1 : 0, now;
	uint64_t hits = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		now = g->place[series[i]];
		if (now == UINT32_MAX)
			continue;
		if (g->after[before] == now) {
			hits++;
		} else {
			chunk_add_varint(b, hits);
			chunk_add_varint(b, now);
			hits = 0;
		}
		g->after[before] = now;
		before = now;
	}
	if (hits)
		chunk_add_varint(b, hits);
}

void order_encode(struct buf *b, const int64_t *ids, size_t id_count, const uint32_t *series, size_t count)
{
	uint32_t *place = mem_array(id_count + 1, sizeof(*place)), *after, crc;
	size_t i, kept = 0, points = 0;

	for (i = 0; i < id_count; i++)
		place[i] = ids[i] ? (uint32_t)kept++ : UINT32_MAX;
	after = first_guesses(kept);
	for (i = 0; i < count; i++)
		points += place[series[i]] != UINT32_MAX;
	buf_add_u64le(b, FORMAT);
	chunk_add_varint(b, kept);
	for (i = 0; i < id_count; i++)
		if (ids[i])
			chunk_add_varint(b, (uint64_t)ids[i]);
	chunk_add_varint(b, points);
	put_order_sequence(b, &(struct order_guess){ place, after, kept }, series, count);
	free(place);
	free(after);
	crc = htole32(crc32c(0, b->data + HEAD_BYTES, b->len - HEAD_BYTES));
	memcpy(b->data + 4, &crc, 4);
}

struct series_order {
	unsigned char *bytes;
	const unsigned char *at, *end;
	int64_t *ids;
	uint32_t *after;
	size_t kept;
	uint64_t left, hits; /* left: points; hits: correct predictions before the next explicit place */
	uint32_t before;
	bool counted; /* hits was read */
};

/* Checks the checksum and reads ids and number of points. */
static int open_order_head(struct series_order *o)
{
	uint64_t n, id;
	uint32_t crc;
	size_t i;

	if (o->end - o->at < HEAD_BYTES || o->at[0] != FORMAT)
		return ERR_CORRUPT;
	memcpy(&crc, o->at + 4, 4);
	o->at += HEAD_BYTES;
	if (le32toh(crc) != crc32c(0, o->at, (size_t)(o->end - o->at)) || !little_get_varint(&o->at, o->end, &n) ||
	    n > (size_t)(o->end - o->at))
		return ERR_CORRUPT;
	o->kept = (size_t)n;
	o->ids = mem_array(o->kept + 1, sizeof(*o->ids));
	o->after = first_guesses(o->kept);
	for (i = 0; i < o->kept; i++) {
		if (!little_get_varint(&o->at, o->end, &id))
			return ERR_CORRUPT;
		o->ids[i] = (int64_t)id;
	}
	o->before = o->kept ? (uint32_t)o->kept - 1 : 0;
	return little_get_varint(&o->at, o->end, &o->left) && (o->kept || !o->left) ? 0 : ERR_CORRUPT;
}

int order_open(struct series_order **ret, const void *bytes, size_t len)
{
	struct series_order *o = mem_zalloc(sizeof(*o));
	int rc;

	o->bytes = mem_dup(bytes, len);
	o->at = o->bytes;
	o->end = o->bytes + len;
	rc = open_order_head(o);
	if (rc) {
		order_close(o);
		return rc;
	}
	*ret = o;
	return 0;
}

int order_next(struct series_order *o, int64_t *ret_id)
{
	uint32_t now;
	uint64_t place;

	if (!o->left)
		return 0;
	if (!o->counted && !little_get_varint(&o->at, o->end, &o->hits))
		return ERR_CORRUPT;
	o->counted = o->hits > 0;
	now = o->after[o->before];
	if (o->hits) {
		o->hits--;
		o->counted = true;
	} else {
		if (!little_get_varint(&o->at, o->end, &place) || place >= o->kept)
			return ERR_CORRUPT;
		now = (uint32_t)place;
	}
	o->left--;
	o->after[o->before] = now;
	o->before = now;
	*ret_id = o->ids[now];
	return 1;
}

void order_close(struct series_order *o)
{
	if (!o)
		return;
	free(o->ids);
	free(o->after);
	free(o->bytes);
	free(o);
}
