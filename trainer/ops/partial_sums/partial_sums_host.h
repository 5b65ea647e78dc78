/* SPDX-License-Identifier: Apache-2.0 */
/* partial_sums_host.h: partial sums on host memory, shared by all host backends: both ops on a range of elements, and
 * the arguments of collectives. */
#ifndef DPT_OPS_PARTIAL_SUMS_HOST_H
#define DPT_OPS_PARTIAL_SUMS_HOST_H

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
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

/* n terms from slot `first` on, then x unless it is NULL; `adds` is their order (leaves.h). */
struct slot_sum {
	void *terms;
	int first, n;
	const void *x;
	const uint8_t *adds;
};

/* Stores the sum in slot `first`. */
static inline void partial_sums_add(const struct partial_sums_host *s, const struct slot_sum *a,
				    struct partial_sums_range r)
{
	const size_t each = dtype_bytes(s->dtype), bytes = (size_t)s->count * each, at = (size_t)r.begin * each;
	const void *from[REDUCTION_TREE_ROOTS_MAX + 1];
	void *to = (unsigned char *)a->terms + (size_t)a->first * bytes + at;
	int n = a->n;

	for (int k = 0; k < n; k++)
		from[k] = (unsigned char *)a->terms + (size_t)(a->first + k) * bytes + at;
	if (a->x)
		from[n++] = (const unsigned char *)a->x + at;
	sum_run(&(struct sum_job){ from, &to, n, 1, (size_t)(r.end - r.begin), s->dtype, a->adds });
}

static inline void partial_sums_push_range(const struct partial_sums_host *s, const struct kernel_args *args,
					   struct partial_sums_range r)
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
	partial_sums_add(s, &(struct slot_sum){ args->out[0], before - merges, merges, args->in[1], adds }, r);
}

static inline void partial_sums_fold_range(const struct partial_sums_host *s, const struct kernel_args *args,
					   struct partial_sums_range r)
{
	uint8_t adds[REDUCTION_TREE_ROOTS_MAX];
	const int n = reduction_tree_order_own(adds, &args->page->leaves);

	if (n)
		partial_sums_add(s, &(struct slot_sum){ args->out[0], 0, n, NULL, adds }, r);
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

/* For a collective node on partial sums. partial_sums_sum_free frees it. */
static inline struct partial_sums_sum *partial_sums_sum_new(const struct node *n, const struct comm *comm)
{
	const size_t world = comm ? (size_t)comm->world : 1;
	struct partial_sums_sum *s = mem_zalloc(sizeof(*s));

	s->terms = partial_sums_host_of(n);
	s->from = mem_array(world * (size_t)s->terms.room, sizeof(*s->from));
	s->adds = mem_array(world * (size_t)s->terms.room, sizeof(*s->adds));
	return s;
}

/* Returns true, with *ret filled, if the communicator adds all terms along the tree. Otherwise adds the rank's own
 * partial sums into one and returns false. */
static inline bool partial_sums_sum_begin(const struct partial_sums_sum *s, struct comm *c,
					  const struct kernel_args *args, struct comm_terms *ret)
{
	const struct reduction_tree *l = &args->page->leaves;

	if (c && c->world > 1 && c->terms && c->world == l->parts) {
		*ret = (struct comm_terms){ args->out[0],   s->terms.count, s->terms.room, l->all,
					    s->terms.dtype, s->from,	    s->adds };
		return true;
	}
	partial_sums_fold_range(&s->terms, args, (struct partial_sums_range){ 0, s->terms.count });
	return false;
}

#endif
