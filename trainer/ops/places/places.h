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

#endif
