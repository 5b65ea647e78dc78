/* shares_host.h: both exchanges on host memory, the same for every host backend: what each of them makes kernels of. */
#ifndef DPT_OPS_SHARES_HOST_H
#define DPT_OPS_SHARES_HOST_H

#include <stdlib.h>

#include "trainer/comm/comm.h"
#include "trainer/graph/kernel.h"
#include "trainer/ops/shares/shares.h"

struct shares_host {
	struct comm *comm; /* NULL: one rank */
	int64_t each;	   /* elements */
	enum dtype dtype;
	bool once;
};

static inline int shares_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const int64_t count = shape_count(&n->in[0]->shape);
	const int world = env->comm ? env->comm->world : 1;
	struct shares_host *s;

	if (count % world)
		return err_set(err, ERR_USAGE, "%lld elements cannot be shared by %d ranks", (long long)count, world);
	s = malloc(sizeof(*s));
	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
	*s = (struct shares_host){ .comm = world > 1 ? env->comm : NULL,
				   .each = count / world,
				   .dtype = n->in[0]->dtype,
				   .once = ((const struct shares_attr *)n->attr)->once };
	*ret_state = s;
	return 0;
}

static inline int all_gather_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct shares_host *s = state;

	if (!s->comm || s->each == 0 || (s->once && args->page->micro > 0))
		return 0;
	return s->comm->ops->all_gather(s->comm, args->out[0], s->each * (int64_t)dtype_bytes(s->dtype), err);
}

static inline int reduce_scatter_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct shares_host *s = state;

	if (!s->comm || s->each == 0)
		return 0;
	return s->comm->ops->reduce_scatter(s->comm, args->out[0], s->each, s->dtype, err);
}

#define SHARES_KERNEL(run_function) { .prepare = shares_prepare, .run = (run_function), .release = free }

#endif
