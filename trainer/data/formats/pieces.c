/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c: samples with free room are in lists by room, and a bit tree finds the smallest room that suffices. */
#include "trainer/data/formats/pieces.h"

#include <stdlib.h>

#include "tracker/mem/mem.h"

#define NONE UINT32_MAX
#define WORD 64
#define LEVELS 4 /* levels of 64 bits: lengths up to 64^4 */

/* Index of the rooms: bit i of level 0 is set if a sample has room for i tokens; a bit of the next level is set if a
 * word of the level below is not 0. */
struct room_index {
	uint64_t *level[LEVELS];
	uint32_t *head; /* [room]: first sample with it */
	uint32_t *next; /* [sample] */
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

/* Assigns pieces, the longest first, to samples of seq_len tokens, each where the least room remains that suffices.
 * ret: the sample of each. Returns the number of samples. */
static int64_t fit_pieces(const struct pieces *p, int64_t seq_len, uint32_t *ret)
{
	const size_t words = (size_t)seq_len / WORD + 1;
	struct room_index rooms;
	int64_t samples = 0;

	room_index_init(&rooms, seq_len, p->n);
	for (int64_t i = 0; i < p->n; i++) {
		const uint32_t length = p->piece[i].n;
		size_t room = find_smallest_room(&rooms, length, words);

		if (room == SIZE_MAX) {
			room = (size_t)seq_len;
			ret[i] = (uint32_t)samples++;
		} else {
			ret[i] = pop_sample_room(&rooms, room);
		}
		if (room > length)
			push_sample_room(&rooms, ret[i], room - length);
	}
	for (int k = 0; k < LEVELS; k++)
		free(rooms.level[k]);
	free(rooms.head);
	free(rooms.next);
	return samples;
}

/* Sorts pieces by key[i] < keys, in a stable order. Returns where each key begins; the last entry is n. */
static int64_t *sort_pieces(struct pieces *p, const uint32_t *key, int64_t keys)
{
	struct document_piece *by = mem_array((size_t)p->n + 1, sizeof(*by));
	int64_t *first = mem_array((size_t)keys + 2, sizeof(*first));

	for (int64_t i = 0; i < p->n; i++)
		first[key[i] + 2]++;
	for (int64_t k = 2; k <= keys + 1; k++)
		first[k] += first[k - 1];
	for (int64_t i = 0; i < p->n; i++)
		by[first[key[i] + 1]++] = p->piece[i];
	free(p->piece);
	p->piece = by;
	return first;
}

int pieces_group(struct pieces *p, int64_t seq_len, bool packed, const char *path, struct err *err)
{
	uint32_t *key;

	if (p->n >= (int64_t)UINT32_MAX)
		return err_set(err, ERR_USAGE, "%.300s: has %lld pieces of documents, more than can be packed", path,
			       (long long)p->n);
	key = mem_array((size_t)p->n + 1, sizeof(*key));
	for (int64_t i = 0; i < p->n; i++)
		key[i] = packed ? (uint32_t)(seq_len - p->piece[i].n) : (uint32_t)i;
	if (packed)
		free(sort_pieces(p, key, seq_len));
	p->samples = packed ? fit_pieces(p, seq_len, key) : p->n;
	p->first = sort_pieces(p, key, p->samples);
	free(key);
	return 0;
}

void pieces_done(struct pieces *p)
{
	free(p->piece);
	free(p->first);
}
