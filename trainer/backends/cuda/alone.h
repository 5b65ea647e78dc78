/* alone.h: collectives of a rank that meets nobody. Ranks on several GPUs need NCCL, which this module does not speak
 * yet: it says so when a run is prepared. */
#ifndef DPT_BACKENDS_CUDA_ALONE_H
#define DPT_BACKENDS_CUDA_ALONE_H

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/comm/comm.h"
}

static inline int alone_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	*ret_state = n;
	if (!env->comm || env->comm->world == 1)
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "backend cuda trains on one GPU so far, not on %d ranks; leave out --nproc-per-node, or use "
		       "--backend cpu",
		       env->comm->world);
}

static inline int alone_run(void *, const struct kernel_args *, struct err *)
{
	return 0;
}

#endif
