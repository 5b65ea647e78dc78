/* ranks.h: what the devices of several ranks tell each other, by NCCL: collectives that are enqueued on a stream like
 * kernels. Sums are made in the tensor's own type; their order is NCCL's, the same on every rank. */
#ifndef DPT_BACKENDS_CUDA_RANKS_H
#define DPT_BACKENDS_CUDA_RANKS_H

#include "trainer/graph/kernel.h"

struct ranks_call {
	const void *in;
	void *out; /* may be in, or where in stands in it (out of all_gather, in of reduce_scatter) */
	int64_t count; /* elements: a rank's own (all_gather, reduce_scatter), the whole (allreduce), the message */
	enum dtype dtype;
	struct stream_handle *stream;
	int peer; /* send, recv */
};

/* Each is enqueued on every rank. 0, or ERR_PEER. */
struct ranks_ops {
	int (*allreduce)(struct device_comm *c, const struct ranks_call *k, struct err *err);
	int (*reduce_scatter)(struct device_comm *c, const struct ranks_call *k, struct err *err);
	int (*all_gather)(struct device_comm *c, const struct ranks_call *k, struct err *err);
	int (*send)(struct device_comm *c, const struct ranks_call *k, struct err *err);
	int (*recv)(struct device_comm *c, const struct ranks_call *k, struct err *err);
};

struct device_comm { /* first member of the transport's own struct */
	const struct ranks_ops *ops;
	int rank, world;
};

/* Whether allreduce and reduce_scatter take it. */
static inline bool ranks_sum(enum dtype t)
{
	return t == DTYPE_F64 || t == DTYPE_F32 || t == DTYPE_I64;
}

#endif
