/* SPDX-License-Identifier: Apache-2.0 */
/* slab.c: assigns offsets to ranges with a first and a last moment. Finding the smallest slab is NP-hard. A few
 * greedy orders with best-fit placement get within a few percent of the lower bound on networks; the best result is
 * kept. Each order is tried first with the first gap that wastes almost nothing, then with the tightest gap: for
 * tens of thousands of ranges the first way takes a third of the time and usually reaches the bound. Placed ranges
 * are kept in groups of neighbours, which a search skips as a whole when all or none of a group conflicts, or when
 * it is below what was passed. */
#include "trainer/graph/slab.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 64
#define NEXT_TO_NOTHING 10000 /* fraction 1/N of the bound that a gap may waste */
#define LITTLE_OF_MANY 100 /* the same among many ranges, where the first gap that fits is found much earlier */
#define MANY 30000 /* ranges: a pipeline with many micro-batches */

enum order { ORDER_SIZE, ORDER_AREA, ORDER_LENGTH, ORDER_START, ORDER_COUNT };

struct slab_entry {
	int first, last;
	size_t bytes; /* rounded up */
	size_t offset;
	int index;
	double key;
};

struct slab_piece {
	int first, last;
	size_t offset, end;
};

/* Neighbours by offset. All are live from moment latest_first to earliest_last. */
struct piece_group {
	int n, earliest_first, latest_first, earliest_last, latest_last;
	size_t gap, end; /* while all are live: the widest gap between them and the highest end */
	struct slab_piece *piece; /* [GROUP], sorted by offset */
};

struct placer {
	struct slab_entry *entries;
	int n;
	struct piece_group *groups; /* sorted by offset, none empty */
	int n_groups;
	struct slab_piece *pieces; /* room for all groups */
	size_t waste; /* waste of a gap that is still accepted at once */
	size_t best;  /* size of the best placement so far */
};

/* The tightest gap found so far that fits some entry. */
struct gap_search {
	const struct slab_entry *e;
	size_t end; /* highest end of the conflicting pieces below */
	size_t gap, offset;
};

/* ---- placed pieces ---- */

static void summarise_group(struct piece_group *g)
{
	const struct slab_piece *p = g->piece;

	g->earliest_first = g->latest_first = p->first;
	g->earliest_last = g->latest_last = p->last;
	g->gap = 0;
	g->end = p->end;
	for (int i = 1; i < g->n; i++) {
		p = &g->piece[i];
		g->earliest_first = p->first < g->earliest_first ? p->first : g->earliest_first;
		g->latest_first = p->first > g->latest_first ? p->first : g->latest_first;
		g->earliest_last = p->last < g->earliest_last ? p->last : g->earliest_last;
		g->latest_last = p->last > g->latest_last ? p->last : g->latest_last;
		if (p->offset > g->end && p->offset - g->end > g->gap)
			g->gap = p->offset - g->end;
		g->end = p->end > g->end ? p->end : g->end;
	}
}

/* Moves the upper half of a full group into a new group after it. */
static void split_group(struct placer *p, int at)
{
	struct piece_group *g = &p->groups[at];

	memmove(g + 2, g + 1, (size_t)(p->n_groups - at - 1) * sizeof(*g));
	g[1].piece = p->pieces + (size_t)p->n_groups * GROUP;
	g[1].n = GROUP - GROUP / 2;
	g[0].n = GROUP / 2;
	memcpy(g[1].piece, g[0].piece + g[0].n, (size_t)g[1].n * sizeof(*g[1].piece));
	p->n_groups++;
	summarise_group(&g[0]);
	summarise_group(&g[1]);
}

/* Inserts after pieces with the same offset. */
static void insert_piece(struct placer *p, const struct slab_entry *e)
{
	int at = p->n_groups - 1, i;
	struct piece_group *g;

	while (at > 0 && p->groups[at].piece[0].offset > e->offset)
		at--;
	if (p->groups[at].n == GROUP) {
		split_group(p, at);
		at += p->groups[at + 1].piece[0].offset <= e->offset;
	}
	g = &p->groups[at];
	for (i = g->n++; i > 0 && g->piece[i - 1].offset > e->offset; i--)
		g->piece[i] = g->piece[i - 1];
	g->piece[i] = (struct slab_piece){ e->first, e->last, e->offset, e->offset + e->bytes };
	summarise_group(g);
}

/* ---- search for a gap ---- */

static void pass_slab_piece(struct gap_search *s, size_t offset, size_t end)
{
	if (offset > s->end && offset - s->end >= s->e->bytes && offset - s->end < s->gap) {
		s->gap = offset - s->end;
		s->offset = s->end;
	}
	s->end = end > s->end ? end : s->end;
}

static void pass_slab_group(struct gap_search *s, const struct piece_group *g)
{
	const struct slab_entry *e = s->e;

	if (g->earliest_first > e->last || g->latest_last < e->first || g->end <= s->end)
		return;
	if (g->latest_first <= e->last && g->earliest_last >= e->first && g->gap < e->bytes) {
		pass_slab_piece(s, g->piece[0].offset, g->end);
		return;
	}
	for (int i = 0; i < g->n; i++)
		if (g->piece[i].end > s->end && g->piece[i].first <= e->last && g->piece[i].last >= e->first)
			pass_slab_piece(s, g->piece[i].offset, g->piece[i].end);
}

/* Places e into the tightest gap between entries that are live together with it. */
static void place_entry(struct placer *p, struct slab_entry *e)
{
	struct gap_search s = { .e = e, .gap = SIZE_MAX };

	for (int i = 0; i < p->n_groups && s.gap > e->bytes + p->waste; i++)
		pass_slab_group(&s, &p->groups[i]);
	e->offset = s.gap == SIZE_MAX ? s.end : s.offset;
	if (p->n_groups) {
		insert_piece(p, e);
		return;
	}
	p->groups[0] = (struct piece_group){ .n = 1, .piece = p->pieces };
	p->pieces[0] = (struct slab_piece){ e->first, e->last, e->offset, e->offset + e->bytes };
	summarise_group(&p->groups[p->n_groups++]);
}

/* ---- orders ---- */

static double compute_entry_key(const struct slab_entry *e, enum order o)
{
	double length = (double)e->last - e->first + 2; /* up to the moment after its last use */

	switch (o) {
	case ORDER_SIZE:
		return (double)e->bytes;
	case ORDER_AREA:
		return (double)e->bytes * length;
	case ORDER_LENGTH:
		return length;
	default:
		return -(double)e->first;
	}
}

/* Largest key first, then size, then input order, so that equal input gives equal output. */
static int compare_entries(const void *a, const void *b)
{
	const struct slab_entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->index - y->index;
}

/* Returns the slab's size. Stops as soon as it is no better than the best one. */
static size_t place_in_order(struct placer *p, enum order o)
{
	size_t size = 0;

	p->n_groups = 0;
	for (int i = 0; i < p->n; i++)
		p->entries[i].key = compute_entry_key(&p->entries[i], o);
	qsort(p->entries, (size_t)p->n, sizeof(*p->entries), compare_entries);
	for (int i = 0; i < p->n && size < p->best; i++) {
		struct slab_entry *e = &p->entries[i];

		e->offset = 0;
		if (e->bytes)
			place_entry(p, e);
		if (e->offset + e->bytes > size)
			size = e->offset + e->bytes;
	}
	return size;
}

/* The most bytes live at one moment: no placement needs less. SIZE_MAX when out of memory. */
static size_t find_lower_bound(const struct placer *p)
{
	size_t *live, now = 0, most = 0;
	int end = 0;

	for (int i = 0; i < p->n; i++)
		end = p->entries[i].last > end ? p->entries[i].last : end;
	live = calloc((size_t)end + 2, sizeof(*live));
	if (!live)
		return SIZE_MAX;
	for (int i = 0; i < p->n; i++) {
		live[p->entries[i].first] += p->entries[i].bytes;
		live[p->entries[i].last + 1] -= p->entries[i].bytes;
	}
	for (int m = 0; m <= end; m++) {
		now += live[m];
		most = now > most ? now : most;
	}
	free(live);
	return most;
}

static bool init_placer(struct placer *p, const struct slab_range *ranges, int n, size_t align)
{
	size_t groups = (size_t)n / (GROUP / 2) + 2;

	p->n = n;
	p->best = SIZE_MAX;
	p->entries = calloc((size_t)n + 1, sizeof(*p->entries));
	p->groups = calloc(groups, sizeof(*p->groups));
	p->pieces = calloc(groups, GROUP * sizeof(*p->pieces));
	if (!p->entries || !p->groups || !p->pieces)
		return false;
	for (int i = 0; i < n; i++)
		p->entries[i] = (struct slab_entry){ .first = ranges[i].first,
						.last = ranges[i].last,
						.bytes = slab_align(ranges[i].bytes, align),
						.index = i };
	return true;
}

size_t slab_align(size_t bytes, size_t align)
{
	return (bytes + align - 1) / align * align;
}

/* Pipelines usually reach the bound by area, other programs by size. */
static enum order pick_nth_order(const struct placer *p, int i)
{
	return (enum order)(p->n > MANY && i <= ORDER_AREA ? ORDER_AREA - i : i);
}

/* Tries every order until one reaches the bound. Of many ranges, where each order takes seconds, it is enough that
 * almost nothing is wasted. The best offsets are written to ranges. */
static void try_orders(struct placer *p, struct slab_range *ranges, size_t bound)
{
	if (p->n > MANY && bound < SIZE_MAX - bound / NEXT_TO_NOTHING)
		bound += bound / NEXT_TO_NOTHING;
	for (int o = 0; o < ORDER_COUNT && bound < p->best; o++) {
		size_t size = place_in_order(p, pick_nth_order(p, o));

		if (size >= p->best)
			continue;
		p->best = size;
		for (int i = 0; i < p->n; i++)
			ranges[p->entries[i].index].offset = p->entries[i].offset;
	}
}

size_t slab_place(struct slab_range *ranges, int n, size_t align)
{
	struct placer p = { NULL };
	size_t bound = init_placer(&p, ranges, n, align) ? find_lower_bound(&p) : SIZE_MAX;

	p.waste = bound / (n > MANY ? LITTLE_OF_MANY : NEXT_TO_NOTHING);
	try_orders(&p, ranges, bound);
	p.waste = 0;
	try_orders(&p, ranges, bound);
	free(p.entries);
	free(p.groups);
	free(p.pieces);
	return p.best;
}
