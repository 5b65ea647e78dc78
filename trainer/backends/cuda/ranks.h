/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h: communication between the devices of several ranks by NCCL: collectives that are enqueued on a stream like
 * kernels. Sums are computed in the tensor's own type, in NCCL's order, which is the same on every rank. */
#ifndef DPT_BACKENDS_CUDA_RANKS_H
#define DPT_BACKENDS_CUDA_RANKS_H

#include "trainer/graph/kernel.h"

struct ranks_call {
	const void *in;
	void *out; /* may equal in, or overlap it at the rank's range (output of all_gather, input of reduce_scatter) */
	int64_t count; /* elements: a rank's range (all_gather, reduce_scatter), the whole (allreduce), or the
			* message */
	enum dtype dtype;
	struct stream_handle *stream;
	int peer; /* send, recv */
};

/* Enqueued on every rank. Return 0 or ERR_PEER. */
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

/* Returns true if allreduce and reduce_scatter support the type. */
static inline bool ranks_sum(enum dtype t)
{
	return t == DTYPE_F64 || t == DTYPE_F32 || t == DTYPE_I64;
}

#endif
