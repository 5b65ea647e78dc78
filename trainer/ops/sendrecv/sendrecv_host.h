/* sendrecv_host.h: send and receive of host memory, shared by all host backends. */
#ifndef DPT_OPS_SENDRECV_HOST_H
#define DPT_OPS_SENDRECV_HOST_H

#include <stdlib.h>

#include "trainer/comm/comm.h"
#include "trainer/graph/kernel.h"
#include "trainer/ops/sendrecv/sendrecv.h"

struct sendrecv_host {
	struct comm *comm; /* NULL: one rank */
	size_t bytes;
	int rank;
};

static inline int prepare_peer_host(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	struct sendrecv_host *s = malloc(sizeof(*s));

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory for %s", n->name);
	*s = (struct sendrecv_host){ .comm = env->comm,
				 .bytes = tensor_bytes(n->n_in ? n->in[0] : n->out[0]),
				 .rank = ((const struct sendrecv_attr *)n->attr)->rank };
	*ret_state = s;
	return 0;
}

static inline int run_send_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct sendrecv_host *s = state;

	return s->comm && s->bytes ? s->comm->ops->send(s->comm, args->in[0], s->bytes, s->rank, err) : 0;
}

static inline int run_recv_host(void *state, const struct kernel_args *args, struct err *err)
{
	const struct sendrecv_host *s = state;

	return s->comm && s->bytes ? s->comm->ops->recv(s->comm, args->out[0], s->bytes, s->rank, err) : 0;
}

#define SENDRECV_KERNEL(run_function) { .prepare = prepare_peer_host, .run = (run_function), .release = free }

#endif
