/* SPDX-License-Identifier: Apache-2.0 */
/* document_pack.c: best-fit decreasing. Pieces are sorted by length with a counting sort. Samples with free room are in
 * lists by room, and a bit tree finds the smallest room that suffices. */
#include "trainer/data/formats/document_pack.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"

#define NONE UINT32_MAX
#define WORD 64
#define LEVELS 4 /* levels of 64 bits: lengths up to 64^4 */

struct pack_piece {
	int64_t begin; /* token offset in the sequence */
	uint32_t n;    /* tokens */
	bool ends;     /* the piece ends its document */
};

struct document_pack {
	const struct token_set *set;
	int64_t seq_len;
	struct pack_piece *piece; /* by sample */
	int64_t n;
	int64_t *first; /* [sample]: its first piece; the last entry is n */
	int64_t samples;
};

/* Index of the rooms: bit i of level 0 is set if a sample has room for i tokens; a bit of the next level is set if a
 * word of the level below is not 0. */
struct room_index {
	uint64_t *level[LEVELS];
	uint32_t *head; /* [room]: first sample with it */
	uint32_t *next; /* [sample] */
};

struct pack_builder {
	struct document_pack *p;
	uint32_t *sample; /* [piece] */
	struct room_index rooms;
};

static void mark_room(struct room_index *r, size_t room, bool on)
{
	for (int k = 0; k < LEVELS; k++, room /= WORD) {
		uint64_t *w = &r->level[k][room / WORD], bit = (uint64_t)1 << room % WORD;

		*w = on ? *w | bit : *w & ~bit;
		on = *w != 0;
	}
}

/* Returns the smallest room of at least n; SIZE_MAX: none. */
static size_t find_smallest_room(const struct room_index *r, size_t n, size_t words)
{
	size_t at = n;

	for (int k = 0; k < LEVELS; k++, words = words / WORD + 1) {
		uint64_t w = at / WORD < words ? r->level[k][at / WORD] >> at % WORD : 0;

		if (!w) { /* continue with the next words, in the level above */
			at = at / WORD + 1;
			continue;
		}
		at += (size_t)__builtin_ctzll(w);
		while (k-- > 0)
			at = at * WORD + (size_t)__builtin_ctzll(r->level[k][at]);
		return at;
	}
	return SIZE_MAX;
}

static void push_sample_room(struct room_index *r, uint32_t sample, size_t room)
{
	r->next[sample] = r->head[room];
	r->head[room] = sample;
	if (r->next[sample] == NONE)
		mark_room(r, room, true);
}

static uint32_t pop_sample_room(struct room_index *r, size_t room)
{
	uint32_t sample = r->head[room];

	r->head[room] = r->next[sample];
	if (r->head[room] == NONE)
		mark_room(r, room, false);
	return sample;
}

static void room_index_init(struct room_index *r, int64_t seq_len, int64_t pieces)
{
	size_t words = (size_t)seq_len / WORD + 1;

	for (int k = 0; k < LEVELS; k++, words = words / WORD + 1)
		r->level[k] = mem_array(words + 1, sizeof(uint64_t));
	r->head = mem_alloc(((size_t)seq_len + 1) * sizeof(*r->head));
	r->next = mem_alloc((size_t)pieces * sizeof(*r->next));
	for (int64_t i = 0; i <= seq_len; i++)
		r->head[i] = NONE;
}

/* The first pass (at NULL) counts pieces by length. The second writes them, the longest first, at at[length]. */
static int cut_documents(struct document_pack *p, int64_t *count, int64_t *at, const char *path, struct err *err)
{
	const struct token_set *s = p->set;

	for (int64_t i = 0; i < s->documents; i++) {
		int64_t begin, rest, pieces, end = token_set_document(s, i, &begin);

		if (end < 0)
			return err_set(err, ERR_USAGE, "%.300s: is damaged: document %lld has an invalid end", path,
				       (long long)i);
		rest = (end - begin) % p->seq_len;
		/* a single last token without a target is dropped */
		pieces = (end - begin) / p->seq_len + (rest > 1 || (rest && s->separator >= 0));
		for (int64_t k = 0; k < pieces; k++) {
			int64_t from = begin + k * p->seq_len, left = end - from;
			uint32_t length = (uint32_t)(left < p->seq_len ? left : p->seq_len);

			if (at)
				p->piece[at[length]++] = (struct pack_piece){ from, length, length == left };
			else
				count[length]++;
		}
		p->n += at ? 0 : pieces;
	}
	return 0;
}

static int sort_pieces(struct document_pack *p, const char *path, struct err *err)
{
	int64_t *count = mem_array((size_t)p->seq_len + 2, sizeof(*count)), sum = 0;
	int rc = cut_documents(p, count, NULL, path, err);

	if (!rc && p->n >= (int64_t)NONE)
		rc = err_set(err, ERR_USAGE, "%.300s: has %lld pieces of documents, more than can be packed", path,
			     (long long)p->n);
	if (!rc)
		p->piece = mem_alloc((size_t)p->n * sizeof(*p->piece));
	for (int64_t length = p->seq_len; !rc && length >= 0; length--) {
		sum += count[length];
		count[length] = sum - count[length];
	}
	if (!rc)
		rc = cut_documents(p, count, count, path, err);
	free(count);
	return rc;
}

static void fit_pieces(struct pack_builder *k)
{
	struct document_pack *p = k->p;
	size_t words = (size_t)p->seq_len / WORD + 1;

	for (int64_t i = 0; i < p->n; i++) {
		size_t room = find_smallest_room(&k->rooms, p->piece[i].n, words);
		uint32_t sample;

		if (room == SIZE_MAX) {
			room = (size_t)p->seq_len;
			sample = (uint32_t)p->samples++;
		} else {
			sample = pop_sample_room(&k->rooms, room);
		}
		k->sample[i] = sample;
		if (room > p->piece[i].n)
			push_sample_room(&k->rooms, sample, room - p->piece[i].n);
	}
}

/* Groups pieces by sample, in a stable order. */
static void group_pieces_by_sample(struct pack_builder *k)
{
	struct document_pack *p = k->p;
	struct pack_piece *by = mem_alloc((size_t)p->n * sizeof(*by));

	p->first = mem_array((size_t)p->samples + 2, sizeof(*p->first));
	for (int64_t i = 0; i < p->n; i++)
		p->first[k->sample[i] + 2]++;
	for (int64_t s = 2; s <= p->samples; s++)
		p->first[s] += p->first[s - 1];
	for (int64_t i = 0; i < p->n; i++)
		by[p->first[k->sample[i] + 1]++] = p->piece[i];
	free(p->piece);
	p->piece = by;
}

int document_pack_new(struct document_pack **ret, const struct token_set *s, int64_t seq_len, const char *path,
		      struct err *err)
{
	struct pack_builder k = { .p = NULL };
	struct document_pack *p;
	int rc;

	if (!s->documents)
		return err_set(err, ERR_USAGE,
			       "%.300s: has no document ends: recreate it with dptrain tokenize, or "
			       "omit --pack documents",
			       path);
	p = mem_zalloc(sizeof(*p));
	p->set = s;
	p->seq_len = seq_len;
	rc = sort_pieces(p, path, err);
	if (rc) {
		document_pack_free(p);
		return rc;
	}
	k.p = p;
	k.sample = mem_alloc((size_t)p->n * sizeof(*k.sample));
	room_index_init(&k.rooms, seq_len, p->n);
	fit_pieces(&k);
	group_pieces_by_sample(&k);
	for (int i = 0; i < LEVELS; i++)
		free(k.rooms.level[i]);
	free(k.rooms.head);
	free(k.rooms.next);
	free(k.sample);
	*ret = p;
	return 0;
}

void document_pack_free(struct document_pack *p)
{
	if (!p)
		return;
	free(p->piece);
	free(p->first);
	free(p);
}

int64_t document_pack_samples(const struct document_pack *p)
{
	return p->samples;
}

int64_t document_pack_weight(const struct document_pack *p, int64_t sample)
{
	int64_t sum = 0;

	for (int64_t i = p->first[sample]; i < p->first[sample + 1]; i++)
		sum += p->piece[i].n - (p->piece[i].ends && p->set->separator < 0);
	return sum;
}

static void read_packed_piece(const struct document_pack *p, const struct pack_piece *piece, int32_t *tokens,
			      int32_t *targets)
{
	const struct token_set *s = p->set;

	token_set_read(s, piece->begin, piece->n, tokens);
	for (uint32_t i = 1; i < piece->n; i++)
		targets[i - 1] = tokens[i];
	if (piece->ends)
		targets[piece->n - 1] = s->separator;
	else
		token_set_read(s, piece->begin + piece->n, 1, &targets[piece->n - 1]);
}

void document_pack_read(const struct document_pack *p, int64_t sample, int32_t *tokens, int32_t *targets)
{
	int64_t at = 0;

	for (int64_t i = p->first[sample]; i < p->first[sample + 1]; at += p->piece[i++].n)
		read_packed_piece(p, &p->piece[i], tokens + at, targets + at);
	for (; at < p->seq_len; at++) {
		tokens[at] = 0;
		targets[at] = -1;
	}
}
