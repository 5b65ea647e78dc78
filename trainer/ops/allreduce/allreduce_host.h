/* allreduce_host.h: the sum over ranks in host memory, shared by all host backends. */
#ifndef DPT_OPS_ALLREDUCE_HOST_H
#define DPT_OPS_ALLREDUCE_HOST_H

#include <stdlib.h>
#include <string.h>

#include "trainer/ops/partial_sums/partial_sums_host.h"

struct allreduce_host {
	struct comm *comm; /* NULL: one rank */
	int64_t count;	   /* elements; for partial sums: of one term */
	enum dtype dtype;
	struct partial_sums_sum *terms; /* NULL: plain sum */
};

static inline void release_allreduce_host(void *state)
{
	struct allreduce_host *s = state;

	if (s)
		partial_sums_sum_free(s->terms);
	free(s);
}

static inline int prepare_allreduce_host(const struct kernel_env *env, struct node *n, void **ret_state,
					 struct err *err)
{
	struct allreduce_host *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
	*s = (struct allreduce_host){ .comm = env->comm,
				      .count = shape_count(&n->in[0]->shape),
				      .dtype = n->in[0]->dtype };
	if (n->attr) {
		s->terms = partial_sums_sum_new(n, env->comm);
		if (!s->terms) {
			free(s);
			return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
		}
		s->count = s->terms->terms.count;
	}
	*ret_state = s;
	return 0;
}

static inline int run_allreduce_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct allreduce_host *s = state;
	struct comm_terms t;

	if (args->out[0] != args->in[0])
		memcpy(args->out[0], args->in[0], (size_t)s->count * dtype_bytes(s->dtype));
	if (s->terms && partial_sums_sum_begin(s->terms, s->comm, args, &t))
		return s->comm->ops->allreduce_terms(s->comm, &t, err);
	if (!s->comm || s->comm->world == 1 || s->count == 0)
		return 0;
	return s->comm->ops->allreduce(s->comm, args->out[0], s->count, s->dtype, err);
}

#define ALLREDUCE_KERNEL                                                                                               \
	{                                                                                                              \
		.prepare = prepare_allreduce_host, .run = run_allreduce_host, .release = release_allreduce_host        \
	}

#endif
