/* SPDX-License-Identifier: Apache-2.0 */
/* copy_host.h: the copy of host backends. It is single-threaded, since it runs on its own stream while kernels use the
 * rank's threads. */
#ifndef DPT_OPS_COPY_HOST_H
#define DPT_OPS_COPY_HOST_H

#include <string.h>

#include "trainer/graph/kernel.h"
#include "trainer/ops/copy/copy.h"

static inline int prepare_copy_host(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env;
	(void)err;
	*ret_state = n;
	return 0;
}

static inline void run_copy_host(void *state, const struct kernel_args *args)
{
	const struct node *n = state;
	const bool file = ((const struct copy_attr *)n->attr)->file;
	const size_t bytes = tensor_bytes(n->in[0]);

	for (size_t at = 0, piece; at < bytes; at += piece) {
		unsigned char *from = (unsigned char *)args->in[0] + at, *to = (unsigned char *)args->out[0] + at;

		piece = file && bytes - at > COPY_PIECE_BYTES ? COPY_PIECE_BYTES : bytes - at;
		memcpy(to, from, piece);
		if (file)
			copy_give_back(n->in[0]->space == SPACE_OFFLOAD ? from : to, piece);
	}
}

#define COPY_KERNEL { .prepare = prepare_copy_host, .run = run_copy_host }

#endif
