/* SPDX-License-Identifier: Apache-2.0 */
/* slab.h: assigns offsets in a slab to byte ranges with lifetimes, so that ranges that are live together do not
 * overlap. Independent of tensors, programs or kernels. The same input gives the same output. */
#ifndef DPT_GRAPH_SLAB_H
#define DPT_GRAPH_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct slab_range {
	size_t bytes;
	int first, last; /* moments, from 0, inclusive */
	size_t offset;	 /* out */
};

/* Assigns offsets so that no two ranges that are live together overlap. Returns the slab's size.
 * ranges may be in any order; tens of thousands take a fraction of a second. ret_work: number of ranges and
 * groups of ranges that searches looked at; NULL: not wanted. */
size_t slab_place(struct slab_range *ranges, int n, size_t align, uint64_t *ret_work);

#endif
