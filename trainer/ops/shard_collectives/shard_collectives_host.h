/* shard_collectives_host.h: both collectives on host memory, shared by all host backends. */
#ifndef DPT_OPS_SHARD_COLLECTIVES_HOST_H
#define DPT_OPS_SHARD_COLLECTIVES_HOST_H

#include <stdlib.h>

#include "trainer/ops/shard_collectives/shard_collectives.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

struct shard_collectives_host {
	struct comm *comm; /* NULL: one rank */
	int64_t each;	   /* elements per rank */
	enum dtype dtype;
	bool once;
	struct partial_sums_sum *terms; /* NULL: plain sum */
};

static inline void release_shares_host(void *state)
{
	struct shard_collectives_host *s = state;

	if (s)
		partial_sums_sum_free(s->terms);
	free(s);
}

/* Checks that the tensor divides into the ranks, and prepares partial sums if room is set. */
static inline int prepare_shares_host(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const struct shard_collectives_attr *attr = n->attr;
	const int room = attr->terms.room;
	const int64_t count = shape_count(&n->in[0]->shape) / (room ? room : 1);
	const int world = env->comm ? env->comm->world : 1;
	struct shard_collectives_host *s;

	if (count % world)
		return err_set(err, ERR_USAGE, "%lld elements do not divide into %d ranks", (long long)count, world);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
	*s = (struct shard_collectives_host){ .comm = world > 1 ? env->comm : NULL,
				   .each = count / world,
				   .dtype = n->in[0]->dtype,
				   .once = n->once,
				   .terms = room ? partial_sums_sum_new(n, env->comm) : NULL };
	if (room && !s->terms) {
		free(s);
		return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
	}
	*ret_state = s;
	return 0;
}

static inline int run_all_gather_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct shard_collectives_host *s = state;

	if (!s->comm || s->each == 0 || (s->once && args->page->micro > 0))
		return 0;
	return s->comm->ops->all_gather(s->comm, args->out[0], s->each * (int64_t)dtype_bytes(s->dtype), err);
}

static inline int run_reduce_scatter_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct shard_collectives_host *s = state;
	struct comm_terms t;

	if (!s->comm || s->each == 0)
		return 0;
	if (s->terms && partial_sums_sum_begin(s->terms, s->comm, args, &t))
		return s->comm->ops->reduce_scatter_terms(s->comm, &t, err);
	return s->comm->ops->reduce_scatter(s->comm, args->out[0], s->each, s->dtype, err);
}

#define SHARD_COLLECTIVES_KERNEL(run_function)                                                                         \
	{                                                                                                              \
		.prepare = prepare_shares_host, .run = (run_function), .release = release_shares_host                  \
	}

#endif
