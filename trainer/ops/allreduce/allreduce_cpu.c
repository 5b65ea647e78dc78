/* allreduce_cpu.c: hands a tensor to the run's communicator, in the type that it has. */
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cpu/cpu.h"
#include "trainer/comm/comm.h"

struct allreduce_state {
	struct comm *comm;
	int64_t count;
	enum dtype dtype;
};

static int allreduce_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct allreduce_state *s;
	void *state;
	int rc = cpu_state_new(sizeof(*s), &state, err);

	if (rc)
		return rc;
	s = state;
	s->comm = env->comm;
	s->count = shape_count(&n->in[0]->shape);
	s->dtype = n->in[0]->dtype;
	*ret_state = s;
	return 0;
}

static int allreduce_run(void *state, const struct kernel_args *args, struct err *err)
{
	const struct allreduce_state *s = state;

	if (args->out[0] != args->in[0])
		memcpy(args->out[0], args->in[0], (size_t)s->count * dtype_bytes(s->dtype));
	if (!s->comm || s->comm->world == 1)
		return 0;
	return s->comm->ops->allreduce(s->comm, args->out[0], s->count, s->dtype, err);
}

extern const struct kernel allreduce_cpu;
const struct kernel allreduce_cpu = { .prepare = allreduce_prepare,
				      .run = allreduce_run,
				      .release = cpu_state_release };
