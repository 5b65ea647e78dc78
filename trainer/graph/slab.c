/* SPDX-License-Identifier: Apache-2.0 */
/* slab.c: assigns offsets to ranges with a first and a last moment. Finding the smallest slab is NP-hard. Two ways are
 * tried, and the best result is kept:
 * - a few greedy orders, each range in the first gap that wastes almost nothing between the ranges that are live
 *   together with it, or else in the tightest, or in the first one. Placed ranges are in a tree by offset; a search
 *   skips a node of which all or none conflicts. They get within a few percent of the lower bound on small networks.
 * - a sweep through the moments, forward or backward: a range takes a tight gap when it begins, and frees it when it
 *   ends. This needs no search for conflicts, and is near the bound for deep networks and pipelines, where it comes
 *   first. */
#include "trainer/graph/slab.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"

#include <stdlib.h>
#include <string.h>

#define FANOUT 16
#define CLASSES 1024
#define LOOK 32 /* gaps of a class that a sweep looks at */
#define MANY 4000		/* ranges: a network with some dozen layers */
#define MOST_WORK 50000000	/* ranges that searches may look at in all: about a quarter of a second */
#define ENOUGH 1000		/* fraction 1/N above the bound that is good enough for many ranges */
#define NEXT_TO_NOTHING 10000	/* fraction 1/N of the bound that a gap may waste */
#define FIRST_FIT 100		/* the same where the first gap that fits is good */

enum order { ORDER_SIZE, ORDER_AREA, ORDER_LENGTH, ORDER_START, ORDER_PEAK, ORDER_COUNT };

struct slab_entry {
	int first, last;
	size_t bytes; /* rounded up */
	size_t offset;
	int index, block;
	double key;
};

struct slab_piece {
	int first, last;
	size_t offset, end;
};

/* What a search needs to know of neighbours by offset. All are live from moment latest_first to earliest_last. */
struct node_summary {
	int earliest_first, latest_first, earliest_last, latest_last;
	size_t start, end; /* lowest offset; highest end */
	size_t gap;	   /* no gap is wider while all are live */
};

/* Of a tree of pieces in the order of their offsets. */
struct slab_node {
	struct node_summary sum;
	int n, height; /* 0: a leaf */
	union {
		struct slab_piece piece[FANOUT];
		struct slab_node *child[FANOUT];
	};
};

/* A range or a gap of a sweep. Blocks are numbered; -1: no block. */
struct slab_block {
	size_t start, end;
	int below, above;   /* neighbours by offset */
	int earlier, later; /* gaps of one class */
	bool is_free;
};

struct slab_sweep {
	struct slab_entry **by_end; /* by last moment */
	struct slab_block *blocks;  /* each range makes at most one */
	int n_blocks;
	int newest[CLASSES]; /* gap of each class of sizes; the gap at the top has no end */
};

struct placer {
	struct slab_entry *entries;
	int n;
	struct slab_node *nodes, *root;
	int n_nodes;
	struct slab_sweep sweep;
	int peak;     /* the moment with the most live bytes */
	size_t waste; /* waste of a gap that is still accepted at once */
	size_t best;  /* size of the best placement so far */
	uint64_t work;
};

/* The tightest gap found so far that fits some entry. */
struct gap_search {
	const struct slab_entry *e;
	size_t waste; /* a gap that wastes no more ends the search */
	size_t end;   /* highest end of the conflicting pieces below */
	size_t gap, offset;
	uint64_t work;
};

/* ---- placed pieces ---- */

static struct node_summary summarise_piece(const struct slab_piece *e)
{
	return (struct node_summary){ e->first, e->first, e->last, e->last, e->offset, e->end, 0 };
}

/* b is of the pieces that follow. */
static void append_summary(struct node_summary *a, const struct node_summary *b)
{
	a->earliest_first = b->earliest_first < a->earliest_first ? b->earliest_first : a->earliest_first;
	a->latest_first = b->latest_first > a->latest_first ? b->latest_first : a->latest_first;
	a->earliest_last = b->earliest_last < a->earliest_last ? b->earliest_last : a->earliest_last;
	a->latest_last = b->latest_last > a->latest_last ? b->latest_last : a->latest_last;
	a->gap = b->gap > a->gap ? b->gap : a->gap;
	if (b->start > a->end && b->start - a->end > a->gap)
		a->gap = b->start - a->end;
	a->end = b->end > a->end ? b->end : a->end;
}

static void summarise_node(struct slab_node *node)
{
	for (int i = 0; i < node->n; i++) {
		struct node_summary one = node->height ? node->child[i]->sum : summarise_piece(&node->piece[i]);

		if (i)
			append_summary(&node->sum, &one);
		else
			node->sum = one;
	}
}

static struct slab_node *add_node(struct placer *p, int height)
{
	struct slab_node *node = &p->nodes[p->n_nodes++];

	node->n = 0;
	node->height = height;
	node->sum = (struct node_summary){ 0 };
	return node;
}

/* Moves the upper half of a full child into a new child after it. */
static void split_child(struct placer *p, struct slab_node *node, int at)
{
	struct slab_node *low = node->child[at], *high = add_node(p, low->height);

	memmove(&node->child[at + 2], &node->child[at + 1], (size_t)(node->n++ - at - 1) * sizeof(node->child[0]));
	node->child[at + 1] = high;
	low->n = FANOUT / 2;
	high->n = FANOUT - FANOUT / 2;
	if (low->height)
		memcpy(high->child, low->child + low->n, (size_t)high->n * sizeof(high->child[0]));
	else
		memcpy(high->piece, low->piece + low->n, (size_t)high->n * sizeof(high->piece[0]));
	summarise_node(low);
	summarise_node(high);
}

/* Inserts after pieces with the same offset. The node has room. */
static void insert_piece(struct placer *p, struct slab_node *node, const struct slab_piece *e)
{
	int at = node->n;

	if (!node->height) {
		for (; at > 0 && node->piece[at - 1].offset > e->offset; at--)
			node->piece[at] = node->piece[at - 1];
		node->piece[at] = *e;
		node->n++;
	} else {
		for (at--; at > 0 && node->child[at]->sum.start > e->offset; at--)
			;
		if (node->child[at]->n == FANOUT) {
			split_child(p, node, at);
			at += node->child[at + 1]->sum.start <= e->offset;
		}
		insert_piece(p, node->child[at], e);
	}
	summarise_node(node);
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

static bool shares_moment(const struct slab_entry *e, int first, int last)
{
	return first <= e->last && last >= e->first;
}

static void pass_leaf(struct gap_search *s, const struct slab_node *leaf)
{
	for (int i = 0; i < leaf->n; i++)
		if (leaf->piece[i].end > s->end && shares_moment(s->e, leaf->piece[i].first, leaf->piece[i].last))
			pass_slab_piece(s, leaf->piece[i].offset, leaf->piece[i].end);
	s->work += (uint64_t)leaf->n;
}

/* Looks at a node's pieces in the order of their offsets, as a whole where all or none of them conflict. */
static void pass_slab_node(struct gap_search *s, const struct slab_node *node)
{
	const struct node_summary *u = &node->sum;

	s->work++;
	if (!shares_moment(s->e, u->earliest_first, u->latest_last) || u->end <= s->end)
		return;
	if (shares_moment(s->e, u->latest_first, u->earliest_last) && u->gap < s->e->bytes) {
		pass_slab_piece(s, u->start, u->end);
	} else if (!node->height) {
		pass_leaf(s, node);
	} else {
		for (int i = 0; i < node->n && s->gap > s->e->bytes + s->waste; i++)
			pass_slab_node(s, node->child[i]);
	}
}

/* Places e into the tightest gap between entries that are live together with it. */
static void place_entry(struct placer *p, struct slab_entry *e)
{
	struct gap_search s = { .e = e, .waste = p->waste, .gap = SIZE_MAX };
	struct slab_node *root = p->root;

	pass_slab_node(&s, root);
	p->work += s.work;
	e->offset = s.gap == SIZE_MAX ? s.end : s.offset;
	if (root->n == FANOUT) {
		p->root = add_node(p, root->height + 1);
		p->root->child[p->root->n++] = root;
		split_child(p, p->root, 0);
	}
	insert_piece(p, p->root, &(struct slab_piece){ e->first, e->last, e->offset, e->offset + e->bytes });
}

/* ---- orders ---- */

static double compute_entry_key(const struct placer *p, const struct slab_entry *e, enum order o)
{
	const double length = (double)e->last - e->first + 2; /* up to the moment after its last use */
	const bool at_peak = e->first <= p->peak && p->peak <= e->last;

	switch (o) {
	case ORDER_SIZE:
		return (double)e->bytes;
	case ORDER_AREA:
		return (double)e->bytes * length;
	case ORDER_LENGTH:
		return length;
	case ORDER_PEAK:
		return at_peak ? length : -1 / ((double)e->bytes + 1);
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

/* Returns the slab's size. Stops as soon as it is no better than the best one, or after too much work. */
static size_t place_in_order(struct placer *p, enum order o)
{
	size_t size = 0;

	p->n_nodes = 0;
	p->root = add_node(p, 0);
	for (int i = 0; i < p->n; i++)
		p->entries[i].key = compute_entry_key(p, &p->entries[i], o);
	qsort(p->entries, (size_t)p->n, sizeof(*p->entries), compare_entries);
	for (int i = 0; i < p->n && size < p->best && p->work < MOST_WORK; i++) {
		struct slab_entry *e = &p->entries[i];

		e->offset = 0;
		if (e->bytes)
			place_entry(p, e);
		if (e->offset + e->bytes > size)
			size = e->offset + e->bytes;
	}
	return p->work < MOST_WORK ? size : SIZE_MAX;
}

/* ---- sweeps ---- */

/* Sixteen classes for each power of two, by size. */
static int class_of_size(size_t bytes)
{
	const int power = bytes < 16 ? 4 : 63 - __builtin_clzll(bytes);

	return (power - 4) * 16 + (int)(bytes >> (power - 4));
}

static size_t gap_size(const struct slab_sweep *s, int at)
{
	return s->blocks[at].end - s->blocks[at].start;
}

static void list_gap(struct slab_sweep *s, int at)
{
	struct slab_block *b = &s->blocks[at];
	int *newest = &s->newest[class_of_size(gap_size(s, at))];

	b->is_free = true;
	b->earlier = *newest;
	b->later = -1;
	if (*newest >= 0)
		s->blocks[*newest].later = at;
	*newest = at;
}

static void unlist_gap(struct slab_sweep *s, int at)
{
	const struct slab_block *b = &s->blocks[at];

	if (b->earlier >= 0)
		s->blocks[b->earlier].later = b->later;
	if (b->later >= 0)
		s->blocks[b->later].earlier = b->earlier;
	else
		s->newest[class_of_size(gap_size(s, at))] = b->earlier;
}

/* Takes the lower end of a gap: of the first class of sizes that has one that fits, the tightest of the newest. Returns
 * the block. */
static int take_gap(struct placer *p, size_t bytes)
{
	struct slab_sweep *s = &p->sweep;
	int at = -1;

	for (int class = class_of_size(bytes); at < 0; class++) {
		int i = s->newest[class];

		for (int looked = 0; i >= 0 && looked < LOOK; looked++, p->work++, i = s->blocks[i].earlier)
			if (gap_size(s, i) >= bytes && (at < 0 || gap_size(s, i) < gap_size(s, at)))
				at = i;
	}
	unlist_gap(s, at);
	if (gap_size(s, at) > bytes) {
		struct slab_block *low = &s->blocks[s->n_blocks], *rest = &s->blocks[at];

		*low = (struct slab_block){ rest->start, rest->start + bytes, rest->below, at, -1, -1, false };
		if (low->below >= 0)
			s->blocks[low->below].above = s->n_blocks;
		rest->below = s->n_blocks;
		rest->start += bytes;
		list_gap(s, at);
		at = s->n_blocks++;
	}
	s->blocks[at].is_free = false;
	return at;
}

static void absorb_above(struct slab_sweep *s, int at)
{
	struct slab_block *b = &s->blocks[at];

	b->end = s->blocks[b->above].end;
	b->above = s->blocks[b->above].above;
	if (b->above >= 0)
		s->blocks[b->above].below = at;
}

/* Frees a range, and joins it with the gaps next to it. */
static void give_gap(struct slab_sweep *s, int at)
{
	const int below = s->blocks[at].below, above = s->blocks[at].above;

	if (s->blocks[above].is_free) { /* the top is a gap: there is always a block above a range */
		unlist_gap(s, above);
		absorb_above(s, at);
	}
	if (below >= 0 && s->blocks[below].is_free) {
		unlist_gap(s, below);
		absorb_above(s, below);
		at = below;
	}
	list_gap(s, at);
}

static int compare_ends(const void *a, const void *b)
{
	const struct slab_entry *x = *(struct slab_entry *const *)a, *y = *(struct slab_entry *const *)b;

	return x->last != y->last ? (x->last < y->last ? -1 : 1) : x->index - y->index;
}

/* Places the ranges by their first moments. Returns the slab's size. */
static size_t sweep_moments(struct placer *p)
{
	struct slab_sweep *s = &p->sweep;
	size_t size = 0;
	int over = 0;

	for (int i = 0; i < p->n; i++) {
		p->entries[i].key = compute_entry_key(p, &p->entries[i], ORDER_START);
		s->by_end[i] = &p->entries[i];
	}
	qsort(p->entries, (size_t)p->n, sizeof(*p->entries), compare_entries);
	qsort(s->by_end, (size_t)p->n, sizeof(struct slab_entry *), compare_ends);
	memset(s->newest, -1, sizeof(s->newest));
	s->blocks[0] = (struct slab_block){ 0, SIZE_MAX, -1, -1, -1, -1, true };
	s->n_blocks = 1;
	list_gap(s, 0);
	for (int i = 0; i < p->n && size < p->best; i++) {
		struct slab_entry *e = &p->entries[i];

		for (; s->by_end[over]->last < e->first; over++)
			if (s->by_end[over]->bytes)
				give_gap(s, s->by_end[over]->block);
		e->offset = 0;
		if (e->bytes) {
			e->block = take_gap(p, e->bytes);
			e->offset = s->blocks[e->block].start;
		}
		size = e->offset + e->bytes > size ? e->offset + e->bytes : size;
	}
	return size;
}

/* Exchanges begin and end: the same conflicts, backward. */
static void reverse_moments(struct placer *p)
{
	for (int i = 0; i < p->n; i++) {
		struct slab_entry *e = &p->entries[i];
		const int first = e->first;

		e->first = -e->last;
		e->last = -first;
	}
}

/* ---- all ways ---- */

/* The most bytes live at one moment, the peak: no placement needs less. */
static size_t find_lower_bound(struct placer *p)
{
	size_t *live, now = 0, most = 0;
	int end = 0;

	for (int i = 0; i < p->n; i++)
		end = p->entries[i].last > end ? p->entries[i].last : end;
	live = mem_array((size_t)end + 2, sizeof(*live));
	for (int i = 0; i < p->n; i++) {
		live[p->entries[i].first] += p->entries[i].bytes;
		live[p->entries[i].last + 1] -= p->entries[i].bytes;
	}
	for (int m = 0; m <= end; m++) {
		now += live[m];
		p->peak = now > most ? m : p->peak;
		most = now > most ? now : most;
	}
	free(live);
	return most;
}

static void init_placer(struct placer *p, const struct slab_range *ranges, int n, size_t align)
{
	/* all but the root are at least half full */
	size_t nodes = (size_t)n / (FANOUT / 2 - 1) + 16;

	p->n = n;
	p->best = SIZE_MAX;
	p->entries = mem_array((size_t)n, sizeof(*p->entries));
	p->sweep.by_end = mem_array((size_t)n, sizeof(*p->sweep.by_end));
	p->sweep.blocks = mem_array((size_t)n + 2, sizeof(*p->sweep.blocks));
	p->nodes = mem_array(nodes, sizeof(*p->nodes));
	for (int i = 0; i < n; i++)
		p->entries[i] = (struct slab_entry){ .first = ranges[i].first,
						     .last = ranges[i].last,
						     .bytes = round_up_bytes(ranges[i].bytes, align),
						     .index = i };
}

/* Writes a placement of that size to ranges if it is better than the best one. */
static void keep_placement(struct placer *p, struct slab_range *ranges, size_t size)
{
	if (size >= p->best)
		return;
	p->best = size;
	for (int i = 0; i < p->n; i++)
		ranges[p->entries[i].index].offset = p->entries[i].offset;
}

/* Tries every order until one reaches the bound. */
static void try_orders(struct placer *p, struct slab_range *ranges, size_t bound, size_t waste)
{
	p->waste = waste;
	for (int o = 0; o < ORDER_COUNT && bound < p->best && p->work < MOST_WORK; o++)
		keep_placement(p, ranges, place_in_order(p, (enum order)o));
}

/* Sweeps forward, then backward. */
static void try_sweeps(struct placer *p, struct slab_range *ranges, size_t bound)
{
	for (int way = 0; way < 2 && bound < p->best; way++) {
		keep_placement(p, ranges, sweep_moments(p));
		reverse_moments(p);
	}
}

size_t slab_place(struct slab_range *ranges, int n, size_t align, uint64_t *ret_work)
{
	struct placer p = { NULL };
	size_t bound;

	init_placer(&p, ranges, n, align);
	bound = find_lower_bound(&p);
	if (n > MANY && bound < SIZE_MAX - bound / ENOUGH)
		bound += bound / ENOUGH;
	if (n > MANY)
		try_sweeps(&p, ranges, bound);
	try_orders(&p, ranges, bound, bound / NEXT_TO_NOTHING);
	try_orders(&p, ranges, bound, 0);
	try_orders(&p, ranges, bound, bound / FIRST_FIT);
	if (n <= MANY)
		try_sweeps(&p, ranges, bound);
	if (ret_work)
		*ret_work = p.work;
	free(p.entries);
	free(p.sweep.by_end);
	free(p.sweep.blocks);
	free(p.nodes);
	return p.best;
}
