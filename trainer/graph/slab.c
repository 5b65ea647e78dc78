/* slab.c: ranges with first and last moment → offsets. Finding the smallest slab is NP-hard; a few greedy orders,
 * each taking the tightest gap, come within some percent of the lower bound on networks, and the best of them is kept. */
#include "trainer/graph/slab.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum order { ORDER_SIZE, ORDER_AREA, ORDER_LENGTH, ORDER_START, ORDER_COUNT };

struct entry {
	const struct slab_range *range;
	size_t bytes; /* rounded up */
	size_t offset;
	int index;
	double key;
};

static double entry_key(const struct entry *e, enum order o)
{
	double length = (double)e->range->last - e->range->first + 1;

	switch (o) {
	case ORDER_SIZE:
		return (double)e->bytes;
	case ORDER_AREA:
		return (double)e->bytes * length;
	case ORDER_LENGTH:
		return length;
	default:
		return -(double)e->range->first;
	}
}

/* Largest key first; then size, then the order they came in, so that equal input gives equal output. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->index - y->index;
}

static int live_together(const struct slab_range *a, const struct slab_range *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* by_offset: what is placed, in order of offset. Takes the tightest gap between ranges that live together with e. */
static void place_one(struct entry *e, struct entry **by_offset, int n)
{
	size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
	int at;

	for (int i = 0; i < n; i++) {
		const struct entry *p = by_offset[i];

		if (!live_together(e->range, p->range))
			continue;
		if (p->offset > end && p->offset - end >= e->bytes && p->offset - end < best_gap) {
			best_gap = p->offset - end;
			best = end;
		}
		if (p->offset + p->bytes > end)
			end = p->offset + p->bytes;
	}
	e->offset = best == SIZE_MAX ? end : best;
	for (at = n; at > 0 && by_offset[at - 1]->offset > e->offset; at--)
		by_offset[at] = by_offset[at - 1];
	by_offset[at] = e;
}

static size_t place_all(struct entry *entries, struct entry **by_offset, int n, enum order o)
{
	size_t size = 0;
	int placed = 0;

	for (int i = 0; i < n; i++)
		entries[i].key = entry_key(&entries[i], o);
	qsort(entries, (size_t)n, sizeof(*entries), compare);
	for (int i = 0; i < n; i++) {
		if (entries[i].bytes)
			place_one(&entries[i], by_offset, placed++);
		else
			entries[i].offset = 0;
		if (entries[i].offset + entries[i].bytes > size)
			size = entries[i].offset + entries[i].bytes;
	}
	return size;
}

size_t slab_align(size_t bytes, size_t align)
{
	return (bytes + align - 1) / align * align;
}

size_t slab_place(struct slab_range *ranges, int n, size_t align)
{
	struct entry *entries = calloc((size_t)n + 1, sizeof(*entries));
	struct entry **by_offset = calloc((size_t)n + 1, sizeof(*by_offset));
	size_t best = SIZE_MAX;

	if (!entries || !by_offset)
		goto out;
	for (int i = 0; i < n; i++)
		entries[i] =
			(struct entry){ .range = &ranges[i], .index = i, .bytes = slab_align(ranges[i].bytes, align) };
	for (int o = 0; o < ORDER_COUNT; o++) {
		size_t size = place_all(entries, by_offset, n, (enum order)o);

		if (size >= best)
			continue;
		best = size;
		for (int i = 0; i < n; i++)
			ranges[entries[i].index].offset = entries[i].offset;
	}
out:
	free(entries);
	free(by_offset);
	return best;
}
