/* SPDX-License-Identifier: Apache-2.0 */
/* slab.c: assigns offsets to ranges with a first and a last moment. Finding the smallest slab is NP-hard. A few
 * greedy orders with best-fit placement get within a few percent of the lower bound on networks; the best result is
 * kept. Each order is tried first with the first gap that wastes almost nothing, then with the tightest gap: the first
 * way takes much less time and usually reaches the bound. Placed ranges are in a tree by offset. A search skips a node
 * of which all or none conflicts, or of which a stack conflicts that leaves no gap. So it looks at some hundred ranges
 * of a network with thousands of layers. One order is another: the ranges that are live at the peak come first, the
 * longest at the bottom, each in the first gap that fits. It reaches the bound where lifetimes are nested, as in deep
 * networks, and not in pipelines.
 * Many ranges are first placed by a sweep through the moments, forward or backward: a range takes a tight gap when it
 * begins, and frees it when it ends. This needs no search for conflicts, and is near the bound for networks and
 * pipelines. */
#include "trainer/graph/slab.h"
#include "tracker/base/round.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FANOUT 16
#define CLASSES 1024
#define LOOK 32 /* gaps of a class that a sweep looks at */
#define STACKS 4
#define TIGHTEST_WORK 300000000 /* ranges that searches for the tightest gap may look at: about a second */
#define NEXT_TO_NOTHING 10000	/* fraction 1/N of the bound that a gap may waste */
#define ENOUGH 200	/* fraction 1/N above the bound that is good enough for many ranges */
#define FIRST_FIT 100 /* the same where the first gap that fits is good: among many ranges it is found much earlier */
#define MANY 30000    /* ranges: a deep network, or a pipeline with many micro-batches */
#define OFF_PEAK 64   /* fraction 1/N above the bound at which the order by the peak is given up */

enum order { ORDER_SIZE, ORDER_AREA, ORDER_LENGTH, ORDER_START, ORDER_COUNT, ORDER_PEAK = ORDER_COUNT };

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

/* A sequence of pieces that are all live at one moment, so none overlaps another. */
struct piece_stack {
	int latest_first, earliest_last; /* of all */
	size_t start, end;
	size_t gap; /* the widest between two neighbours */
	bool any;
};

/* What a search needs to know of neighbours by offset. All are live from moment latest_first to earliest_last. */
struct node_summary {
	int earliest_first, latest_first, earliest_last, latest_last;
	size_t start, last_start;	  /* lowest and highest offset */
	size_t end;			  /* highest */
	size_t gap;			  /* no gap is wider while all are live */
	struct piece_stack stack[STACKS]; /* by the moment at which its pieces are live */
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

/* A range or a gap of a sweep: -1 is none. */
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
	int moment[STACKS];	  /* which many ranges contain */
	size_t waste;		  /* waste of a gap that is still accepted at once */
	size_t best;		  /* size of the best placement so far */
	uint64_t work, most_work; /* pieces and nodes that searches looked at; after how many an order is given up */
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

static struct node_summary summarise_piece(const struct placer *p, const struct slab_piece *e)
{
	struct node_summary s = { e->first, e->first, e->last, e->last, e->offset, e->offset, e->end, 0, { { 0 } } };

	for (int k = 0; k < STACKS; k++)
		if (e->first <= p->moment[k] && p->moment[k] <= e->last)
			s.stack[k] = (struct piece_stack){ e->first, e->last, e->offset, e->end, 0, true };
	return s;
}

static void append_stack(struct piece_stack *a, const struct piece_stack *b)
{
	if (!a->any || !b->any) {
		*a = a->any ? *a : *b;
		return;
	}
	a->latest_first = b->latest_first > a->latest_first ? b->latest_first : a->latest_first;
	a->earliest_last = b->earliest_last < a->earliest_last ? b->earliest_last : a->earliest_last;
	a->gap = b->gap > a->gap ? b->gap : a->gap;
	a->gap = b->start - a->end > a->gap ? b->start - a->end : a->gap;
	a->end = b->end;
}

/* b is of the pieces that follow. */
static void append_summary(struct node_summary *a, const struct node_summary *b)
{
	a->earliest_first = b->earliest_first < a->earliest_first ? b->earliest_first : a->earliest_first;
	a->latest_first = b->latest_first > a->latest_first ? b->latest_first : a->latest_first;
	a->earliest_last = b->earliest_last < a->earliest_last ? b->earliest_last : a->earliest_last;
	a->latest_last = b->latest_last > a->latest_last ? b->latest_last : a->latest_last;
	a->last_start = b->last_start;
	a->gap = b->gap > a->gap ? b->gap : a->gap;
	if (b->start > a->end && b->start - a->end > a->gap)
		a->gap = b->start - a->end;
	a->end = b->end > a->end ? b->end : a->end;
	for (int k = 0; k < STACKS; k++)
		append_stack(&a->stack[k], &b->stack[k]);
}

static void summarise_node(const struct placer *p, struct slab_node *node)
{
	for (int i = 0; i < node->n; i++) {
		struct node_summary one = node->height ? node->child[i]->sum : summarise_piece(p, &node->piece[i]);

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
	summarise_node(p, low);
	summarise_node(p, high);
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
	summarise_node(p, node);
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

/* Raises the end to that of the conflicting pieces of a node between which no gap fits. */
static void raise_end(struct gap_search *s, const struct slab_node *node)
{
	s->work++;
	if (node->sum.end <= s->end || !shares_moment(s->e, node->sum.earliest_first, node->sum.latest_last))
		return;
	for (int i = 0; i < node->n && node->height; i++)
		raise_end(s, node->child[i]);
	for (int i = 0; i < node->n && !node->height; i++)
		if (node->piece[i].end > s->end && shares_moment(s->e, node->piece[i].first, node->piece[i].last))
			s->end = node->piece[i].end;
	s->work += node->height ? 0 : (uint64_t)node->n;
}

/* True if all of a stack conflicts and leaves no gap that fits, from the pieces below to the node's last piece. */
static bool stack_fills_node(const struct gap_search *s, const struct node_summary *u, const struct piece_stack *t)
{
	return t->any && shares_moment(s->e, t->latest_first, t->earliest_last) && t->gap < s->e->bytes &&
	       t->start < s->end + s->e->bytes && u->last_start < t->end + s->e->bytes;
}

static const struct piece_stack *find_filling_stack(const struct gap_search *s, const struct node_summary *u)
{
	for (int k = 0; k < STACKS; k++)
		if (stack_fills_node(s, u, &u->stack[k]))
			return &u->stack[k];
	return NULL;
}

static void pass_leaf(struct gap_search *s, const struct slab_node *leaf)
{
	for (int i = 0; i < leaf->n; i++)
		if (leaf->piece[i].end > s->end && shares_moment(s->e, leaf->piece[i].first, leaf->piece[i].last))
			pass_slab_piece(s, leaf->piece[i].offset, leaf->piece[i].end);
	s->work += (uint64_t)leaf->n;
}

/* Looks at a node's pieces in the order of their offsets, as a whole where all, none or a stack of them conflicts. */
static void pass_slab_node(struct gap_search *s, const struct slab_node *node)
{
	const struct node_summary *u = &node->sum;
	const struct piece_stack *t;

	s->work++;
	if (!shares_moment(s->e, u->earliest_first, u->latest_last) || u->end <= s->end)
		return;
	if (shares_moment(s->e, u->latest_first, u->earliest_last) && u->gap < s->e->bytes) {
		pass_slab_piece(s, u->start, u->end);
	} else if ((t = find_filling_stack(s, u))) {
		s->end = t->end > s->end ? t->end : s->end;
		raise_end(s, node);
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
	const bool at_peak = e->first <= p->moment[0] && p->moment[0] <= e->last;

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
	for (int i = 0; i < p->n && size < p->best && p->work < p->most_work; i++) {
		struct slab_entry *e = &p->entries[i];

		e->offset = 0;
		if (e->bytes)
			place_entry(p, e);
		if (e->offset + e->bytes > size)
			size = e->offset + e->bytes;
	}
	return p->work < p->most_work ? size : SIZE_MAX;
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

/* Returns the moment with the most bytes of ranges that contain none of the first n moments; *ret_bytes: how many. */
static int find_peak(const struct placer *p, size_t *live, int end, int n, size_t *ret_bytes)
{
	size_t now = 0;
	int at = 0;

	memset(live, 0, ((size_t)end + 2) * sizeof(*live));
	for (int i = 0; i < p->n; i++) {
		const struct slab_entry *e = &p->entries[i];
		bool known = false;

		for (int k = 0; k < n; k++)
			known |= e->first <= p->moment[k] && p->moment[k] <= e->last;
		if (known)
			continue;
		live[e->first] += e->bytes;
		live[e->last + 1] -= e->bytes;
	}
	*ret_bytes = 0;
	for (int m = 0; m <= end; m++) {
		now += live[m];
		if (now <= *ret_bytes)
			continue;
		*ret_bytes = now;
		at = m;
	}
	return at;
}

/* The most bytes live at one moment: no placement needs less. Chooses the moments. SIZE_MAX when out of memory. */
static size_t find_lower_bound(struct placer *p)
{
	size_t *live, most = 0, more;
	int end = 0;

	for (int i = 0; i < p->n; i++)
		end = p->entries[i].last > end ? p->entries[i].last : end;
	live = calloc((size_t)end + 2, sizeof(*live));
	if (!live)
		return SIZE_MAX;
	for (int k = 0; k < STACKS; k++)
		p->moment[k] = find_peak(p, live, end, k, k ? &more : &most);
	free(live);
	return most;
}

static bool init_placer(struct placer *p, const struct slab_range *ranges, int n, size_t align)
{
	/* all but the root are at least half full */
	size_t nodes = (size_t)n / (FANOUT / 2 - 1) + 16;

	p->n = n;
	p->best = SIZE_MAX;
	p->most_work = UINT64_MAX;
	p->entries = calloc((size_t)n + 1, sizeof(*p->entries));
	p->nodes = calloc(nodes, sizeof(*p->nodes));
	p->sweep.by_end = calloc((size_t)n + 1, sizeof(*p->sweep.by_end));
	p->sweep.blocks = calloc((size_t)n + 2, sizeof(*p->sweep.blocks));
	if (!p->entries || !p->nodes || !p->sweep.by_end || !p->sweep.blocks)
		return false;
	for (int i = 0; i < n; i++)
		p->entries[i] = (struct slab_entry){ .first = ranges[i].first,
						     .last = ranges[i].last,
						     .bytes = round_up_bytes(ranges[i].bytes, align),
						     .index = i };
	return true;
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

/* Tries the order by the peak with the first gap that fits. Where it is no good, it exceeds the limit early. */
static void try_peak_order(struct placer *p, struct slab_range *ranges, size_t bound)
{
	const size_t before = p->best, limit = bound + bound / OFF_PEAK < before ? bound + bound / OFF_PEAK : before;

	p->best = limit;
	p->waste = bound / FIRST_FIT;
	p->most_work = UINT64_MAX;
	keep_placement(p, ranges, place_in_order(p, ORDER_PEAK));
	p->best = p->best < limit ? p->best : before;
}

/* Tries every order until one reaches the bound. */
static void try_orders(struct placer *p, struct slab_range *ranges, size_t bound, size_t waste)
{
	p->waste = waste;
	for (int o = 0; o < ORDER_COUNT && bound < p->best && p->work < p->most_work; o++)
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

size_t slab_place(struct slab_range *ranges, int n, size_t align)
{
	return slab_place_counted(ranges, n, align, NULL);
}

size_t slab_place_counted(struct slab_range *ranges, int n, size_t align, uint64_t *ret_work)
{
	struct placer p = { NULL };
	size_t bound = init_placer(&p, ranges, n, align) ? find_lower_bound(&p) : SIZE_MAX;

	if (n > MANY && bound < SIZE_MAX - bound / ENOUGH) {
		bound += bound / ENOUGH;
		try_sweeps(&p, ranges, bound);
	}
	if (n > MANY && bound < p.best)
		try_peak_order(&p, ranges, bound);
	if (n <= MANY)
		try_orders(&p, ranges, bound, bound / NEXT_TO_NOTHING);
	p.most_work = p.work + TIGHTEST_WORK;
	try_orders(&p, ranges, bound, n > MANY ? bound / FIRST_FIT : 0);
	if (n <= MANY && bound < p.best)
		try_peak_order(&p, ranges, bound);
	if (n <= MANY)
		try_sweeps(&p, ranges, bound);
	if (ret_work)
		*ret_work = p.work;
	free(p.entries);
	free(p.nodes);
	free(p.sweep.by_end);
	free(p.sweep.blocks);
	return p.best;
}
