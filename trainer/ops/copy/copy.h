/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h: y = x in another space: swaps a tensor out between uses, or back in. in x out y, of the same type and
 * shape. */
#ifndef DPT_OPS_COPY_H
#define DPT_OPS_COPY_H

#include <sys/mman.h>
#include <unistd.h>

#include "trainer/graph/graph.h"

struct copy_attr {
	bool file; /* SPACE_OFFLOAD is a mapped file: its pages are released after they were copied */
};

/* y: NULL creates it with kind TENSOR_ACT in the space of x. Returns NULL once the graph failed. */
struct node *copy_add(struct graph *g, struct tensor *x, struct tensor *y, const struct copy_attr *attr);

/* Bytes of the file that are resident at a time. */
#define COPY_PIECE_BYTES ((size_t)4 << 20)

/* Drops the pages of a mapped file (MAP_SHARED) from the process; the file keeps their content. Data next to the range
 * on its first or last page is read again on access. */
static inline void copy_give_back(void *at, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), skipped = (size_t)at % page;

	madvise((unsigned char *)at - skipped, bytes + skipped, MADV_DONTNEED);
}

#endif
