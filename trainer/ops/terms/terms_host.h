/* terms_host.h: terms on host memory, for every host backend: a range of elements of each op, and what collectives of
 * terms are handed. */
#ifndef DPT_OPS_TERMS_HOST_H
#define DPT_OPS_TERMS_HOST_H

#include <stdlib.h>
#include <string.h>

#include "trainer/comm/comm.h"
#include "trainer/comm/sum.h"
#include "trainer/graph/kernel.h"
#include "trainer/ops/terms/terms.h"

struct terms_host {
	int64_t count; /* elements of a term */
	int room;
	enum dtype dtype;
};

static inline struct terms_host terms_host_of(const struct node *n)
{
	const int room = ((const struct terms_attr *)n->attr)->room;

	return (struct terms_host){ shape_count(&n->in[0]->shape) / room, room, n->in[0]->dtype };
}

/* Elements [begin, end) of each term. */
struct terms_range {
	int64_t begin, end;
};

/* Adds terms from number `first` on, and x behind them unless it is NULL, in that order; the sum takes the place of the
 * first of them. */
static inline void terms_add(const struct terms_host *s, void *terms, int first, int n, const void *x,
			     const uint8_t *adds, struct terms_range r)
{
	const size_t each = dtype_bytes(s->dtype), bytes = (size_t)s->count * each, at = (size_t)r.begin * each;
	const void *from[LEAVES_ROOTS_MAX + 1];
	void *to = (unsigned char *)terms + (size_t)first * bytes + at;

	for (int k = 0; k < n; k++)
		from[k] = (unsigned char *)terms + (size_t)(first + k) * bytes + at;
	if (x)
		from[n++] = (const unsigned char *)x + at;
	sum_run(&(struct sum_job){ from, &to, n, 1, (size_t)(r.end - r.begin), s->dtype, adds });
}

static inline void terms_push_range(const struct terms_host *s, const struct kernel_args *args, struct terms_range r)
{
	const struct leaves *l = &args->page->leaves;
	const int64_t leaf = l->first + args->page->micro;
	uint8_t adds[LEAVES_ROOTS_MAX + 1] = { 0 };
	int before, merges;

	if (args->page->micro >= l->n)
		return;
	before = leaves_roots(l->first, args->page->micro, NULL);
	merges = leaves_merges(l->first, leaf);
	adds[merges] = (uint8_t)merges;
	terms_add(s, args->out[0], before - merges, merges, args->in[1], adds, r);
}

static inline void terms_fold_range(const struct terms_host *s, const struct kernel_args *args, struct terms_range r)
{
	uint8_t adds[LEAVES_ROOTS_MAX];
	const int n = leaves_order_own(adds, &args->page->leaves);

	if (n)
		terms_add(s, args->out[0], 0, n, NULL, adds, r);
	else if (args->page->leaves.parts > 0)
		memset((unsigned char *)args->out[0] + (size_t)r.begin * dtype_bytes(s->dtype), 0,
		       (size_t)(r.end - r.begin) * dtype_bytes(s->dtype));
}

/* ---- collectives ---- */

struct terms_sum { /* NULL: plain sums */
	struct terms_host terms;
	const void **from;
	uint8_t *adds;
};

static inline void terms_sum_free(struct terms_sum *s)
{
	if (s) {
		free(s->from);
		free(s->adds);
	}
	free(s);
}

/* For a collective node of terms. */
static inline struct terms_sum *terms_sum_new(const struct node *n, const struct comm *comm)
{
	const size_t world = comm ? (size_t)comm->world : 1;
	struct terms_sum *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->terms = terms_host_of(n);
	s->from = calloc(world * (size_t)s->terms.room, sizeof(*s->from));
	s->adds = calloc(world * (size_t)s->terms.room, sizeof(*s->adds));
	if (s->from && s->adds)
		return s;
	terms_sum_free(s);
	return NULL;
}

/* Whether the communicator adds all terms along the tree; else the rank's own have become one. */
static inline bool terms_sum_begin(const struct terms_sum *s, struct comm *c, const struct kernel_args *args,
				   struct comm_terms *ret)
{
	const struct leaves *l = &args->page->leaves;

	if (c && c->world > 1 && c->terms && c->world == l->parts) {
		*ret = (struct comm_terms){ args->out[0], s->terms.count, s->terms.room, l->all, s->terms.dtype,
					    s->from, s->adds };
		return true;
	}
	terms_fold_range(&s->terms, args, (struct terms_range){ 0, s->terms.count });
	return false;
}

#endif
