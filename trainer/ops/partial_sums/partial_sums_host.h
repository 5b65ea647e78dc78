/* partial_sums_host.h: terms on host memory, for every host backend: a range of elements of each op, and what collectives of
 * terms are handed. */
#ifndef DPT_OPS_PARTIAL_SUMS_HOST_H
#define DPT_OPS_PARTIAL_SUMS_HOST_H

#include <stdlib.h>
#include <string.h>

#include "trainer/comm/comm.h"
#include "trainer/comm/sum.h"
#include "trainer/graph/kernel.h"
#include "trainer/ops/partial_sums/partial_sums.h"

struct partial_sums_host {
	int64_t count; /* elements of a term */
	int room;
	enum dtype dtype;
};

static inline struct partial_sums_host partial_sums_host_of(const struct node *n)
{
	const int room = ((const struct partial_sums_attr *)n->attr)->room;

	return (struct partial_sums_host){ shape_count(&n->in[0]->shape) / room, room, n->in[0]->dtype };
}

/* Elements [begin, end) of each term. */
struct partial_sums_range {
	int64_t begin, end;
};

/* Adds terms from number `first` on, and x behind them unless it is NULL, in that order; the sum takes the place of the
 * first of them. */
static inline void partial_sums_add(const struct partial_sums_host *s, void *terms, int first, int n, const void *x,
			     const uint8_t *adds, struct partial_sums_range r)
{
	const size_t each = dtype_bytes(s->dtype), bytes = (size_t)s->count * each, at = (size_t)r.begin * each;
	const void *from[REDUCTION_TREE_ROOTS_MAX + 1];
	void *to = (unsigned char *)terms + (size_t)first * bytes + at;

	for (int k = 0; k < n; k++)
		from[k] = (unsigned char *)terms + (size_t)(first + k) * bytes + at;
	if (x)
		from[n++] = (const unsigned char *)x + at;
	sum_run(&(struct sum_job){ from, &to, n, 1, (size_t)(r.end - r.begin), s->dtype, adds });
}

static inline void partial_sums_push_range(const struct partial_sums_host *s, const struct kernel_args *args, struct partial_sums_range r)
{
	const struct reduction_tree *l = &args->page->leaves;
	const int64_t leaf = l->first + args->page->micro;
	uint8_t adds[REDUCTION_TREE_ROOTS_MAX + 1] = { 0 };
	int before, merges;

	if (args->page->micro >= l->n)
		return;
	before = reduction_tree_roots(l->first, args->page->micro, NULL);
	merges = reduction_tree_merges(l->first, leaf);
	adds[merges] = (uint8_t)merges;
	partial_sums_add(s, args->out[0], before - merges, merges, args->in[1], adds, r);
}

static inline void partial_sums_fold_range(const struct partial_sums_host *s, const struct kernel_args *args, struct partial_sums_range r)
{
	uint8_t adds[REDUCTION_TREE_ROOTS_MAX];
	const int n = reduction_tree_order_own(adds, &args->page->leaves);

	if (n)
		partial_sums_add(s, args->out[0], 0, n, NULL, adds, r);
	else if (args->page->leaves.parts > 0)
		memset((unsigned char *)args->out[0] + (size_t)r.begin * dtype_bytes(s->dtype), 0,
		       (size_t)(r.end - r.begin) * dtype_bytes(s->dtype));
}

/* ---- collectives ---- */

struct partial_sums_sum { /* NULL: plain sums */
	struct partial_sums_host terms;
	const void **from;
	uint8_t *adds;
};

static inline void partial_sums_sum_free(struct partial_sums_sum *s)
{
	if (s) {
		free(s->from);
		free(s->adds);
	}
	free(s);
}

/* For a collective node of terms. */
static inline struct partial_sums_sum *partial_sums_sum_new(const struct node *n, const struct comm *comm)
{
	const size_t world = comm ? (size_t)comm->world : 1;
	struct partial_sums_sum *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->terms = partial_sums_host_of(n);
	s->from = calloc(world * (size_t)s->terms.room, sizeof(*s->from));
	s->adds = calloc(world * (size_t)s->terms.room, sizeof(*s->adds));
	if (s->from && s->adds)
		return s;
	partial_sums_sum_free(s);
	return NULL;
}

/* Whether the communicator adds all terms along the tree; else the rank's own have become one. */
static inline bool partial_sums_sum_begin(const struct partial_sums_sum *s, struct comm *c, const struct kernel_args *args,
				   struct comm_terms *ret)
{
	const struct reduction_tree *l = &args->page->leaves;

	if (c && c->world > 1 && c->terms && c->world == l->parts) {
		*ret = (struct comm_terms){ args->out[0], s->terms.count, s->terms.room, l->all, s->terms.dtype,
					    s->from, s->adds };
		return true;
	}
	partial_sums_fold_range(&s->terms, args, (struct partial_sums_range){ 0, s->terms.count });
	return false;
}

#endif
