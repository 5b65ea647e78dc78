/* SPDX-License-Identifier: Apache-2.0 */
/* sum.h: adds the same range of several ranks' buffers, in rank order or along a tree, and stores the sum in one or
 * more places. bf16 is added in f32 and rounded once. */
#ifndef DPT_COMM_SUM_H
#define DPT_COMM_SUM_H

#include "trainer/graph/graph.h"

struct sum_job {
	const void *const *from; /* n_from sources, aligned to their element; from[0] is added first */
	void *const *to;	 /* n_to destinations; one may be one of the sources (same address) */
	int n_from, n_to;
	size_t count; /* elements */
	enum dtype dtype;
	const uint8_t
		*adds; /* NULL: in the order of from; else the order of a tree (reduction_tree_order), not for bf16 */
};

bool sum_takes(enum dtype t); /* f64, f32, bf16, i64 */
void sum_run(const struct sum_job *j);

#endif
