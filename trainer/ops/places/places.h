/* SPDX-License-Identifier: Apache-2.0 */
/* places.h: where each token is in its document, of samples that hold several.
 *   places  in marked i32 [N,T]      out tokens i32 [N,T], places i32 [N*T]
 * A token that begins a document is marked (trainer/graph/document_mark.h); the first one of a sample is at place 0,
 * marked or not. */
#ifndef DPT_OPS_PLACES_H
#define DPT_OPS_PLACES_H

#include "trainer/graph/document_mark.h"
#include "trainer/graph/graph.h"
#include "trainer/graph/host_device.h"
#include "trainer/graph/kernel.h"

struct places_tensors {
	struct tensor *tokens, *places;
};

struct places_tensors places_add(struct graph *g, struct tensor *marked, const char *name);

/* Reads one sample of n tokens. */
HOST_DEVICE_INLINE void places_of_sample(const int32_t *marked, int64_t n, int32_t *tokens, int32_t *places)
{
	int32_t place = 0;

	for (int64_t i = 0; i < n; i++) {
		const bool begins = marked[i] < 0;

		place = begins || !i ? 0 : place + 1;
		tokens[i] = begins ? DOCUMENT_MARK(marked[i]) : marked[i];
		places[i] = place;
	}
}

/* Reads all samples of a node on a host: the kernel of ref and cpu. */
static inline void places_run(const struct node *n, const struct kernel_args *args)
{
	const int64_t t = n->in[0]->shape.dim[1];

	for (int64_t at = 0; at < shape_count(&n->in[0]->shape); at += t)
		places_of_sample((const int32_t *)args->in[0] + at, t, (int32_t *)args->out[0] + at,
				 (int32_t *)args->out[1] + at);
}

#endif
