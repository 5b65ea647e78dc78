/* SPDX-License-Identifier: Apache-2.0 */
/* collectives_host.h: the collectives on host memory, shared by all host backends: each passes its tensor to the
 * communicator in its own type. */
#ifndef DPT_OPS_COLLECTIVES_HOST_H
#define DPT_OPS_COLLECTIVES_HOST_H

#include "trainer/ops/collectives/collectives.h"
#include "trainer/ops/partial_sums/partial_sums_host.h"

struct collective_host {
	struct comm *comm; /* NULL: one rank */
	int64_t count;	   /* elements; of partial sums: of one term */
	enum dtype dtype;
	bool once;
	int rank;			/* send, recv */
	struct partial_sums_sum *terms; /* NULL: plain sum, or none */
};

static inline void release_collective_host(void *state)
{
	struct collective_host *s = state;

	if (s)
		partial_sums_sum_free(s->terms);
	free(s);
}

static inline int prepare_collective_host(const struct kernel_env *env, struct node *n, void **ret_state,
					  struct err *err)
{
	static const struct collective_attr plain = { .rank = 0 };
	const struct collective_attr *attr = n->attr ? n->attr : &plain;
	const struct tensor *t = n->n_in ? n->in[0] : n->out[0];
	struct collective_host *s = mem_alloc(sizeof(*s));

	(void)err;
	*s = (struct collective_host){ .comm = env->comm && env->comm->world > 1 ? env->comm : NULL,
				       .count = shape_count(&t->shape) / (attr->terms.room ? attr->terms.room : 1),
				       .dtype = t->dtype,
				       .once = n->once,
				       .rank = attr->rank,
				       .terms = attr->terms.room ? partial_sums_sum_new(n, env->comm) : NULL };
	*ret_state = s;
	return 0;
}

/* The same for exchanges of ranges: checks that the tensor divides into the ranks. */
static inline int prepare_shard_host(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const int room = ((const struct collective_attr *)n->attr)->terms.room;
	const int world = env->comm ? env->comm->world : 1;
	const int64_t count = shape_count(&n->in[0]->shape) / (room ? room : 1);

	if (count % world)
		return err_set(err, ERR_USAGE, "%lld elements do not divide into %d ranks", (long long)count, world);
	return prepare_collective_host(env, n, ret_state, err);
}

static inline int run_allreduce_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct collective_host *s = state;
	struct comm_terms t;

	if (args->out[0] != args->in[0])
		memcpy(args->out[0], args->in[0], (size_t)s->count * dtype_bytes(s->dtype));
	if (s->terms && partial_sums_sum_begin(s->terms, s->comm, args, &t))
		return s->comm->ops->allreduce_terms(s->comm, &t, err);
	if (!s->comm || s->count == 0)
		return 0;
	return s->comm->ops->allreduce(s->comm, args->out[0], s->count, s->dtype, err);
}

static inline int run_all_gather_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct collective_host *s = state;

	if (!s->comm || s->count == 0 || (s->once && args->page->micro > 0))
		return 0;
	return s->comm->ops->all_gather(s->comm, args->out[0],
					s->count / s->comm->world * (int64_t)dtype_bytes(s->dtype), err);
}

static inline int run_reduce_scatter_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct collective_host *s = state;
	struct comm_terms t;

	if (!s->comm || s->count == 0)
		return 0;
	if (s->terms && partial_sums_sum_begin(s->terms, s->comm, args, &t))
		return s->comm->ops->reduce_scatter_terms(s->comm, &t, err);
	return s->comm->ops->reduce_scatter(s->comm, args->out[0], s->count / s->comm->world, s->dtype, err);
}

static inline int run_send_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct collective_host *s = state;
	const size_t bytes = (size_t)s->count * dtype_bytes(s->dtype);

	return s->comm && bytes ? s->comm->ops->send(s->comm, args->in[0], bytes, s->rank, err) : 0;
}

static inline int run_recv_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct collective_host *s = state;
	const size_t bytes = (size_t)s->count * dtype_bytes(s->dtype);

	return s->comm && bytes ? s->comm->ops->recv(s->comm, args->out[0], bytes, s->rank, err) : 0;
}

#define COLLECTIVE_KERNEL(op, backend, prepare_function)                                                               \
	extern const struct kernel op##_##backend;                                                                     \
	const struct kernel op##_##backend = { .prepare = (prepare_function),                                          \
					       .communicate = run_##op##_host,                                         \
					       .release = release_collective_host }

/* Defines the kernels of a host backend. */
#define COLLECTIVE_KERNELS(backend)                                                                                    \
	COLLECTIVE_KERNEL(allreduce, backend, prepare_collective_host);                                                \
	COLLECTIVE_KERNEL(all_gather, backend, prepare_shard_host);                                                    \
	COLLECTIVE_KERNEL(reduce_scatter, backend, prepare_shard_host);                                                \
	COLLECTIVE_KERNEL(send, backend, prepare_collective_host);                                                     \
	COLLECTIVE_KERNEL(recv, backend, prepare_collective_host)

#endif
