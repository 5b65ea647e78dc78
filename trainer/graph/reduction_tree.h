/* SPDX-License-Identifier: Apache-2.0 */
/* reduction_tree.h: sums whose bits do not depend on which rank computes which terms. The samples of a step are divided
 * into leaves; one rank computes each leaf's term (of a gradient, of the losses) completely. The terms are added along
 * a binary tree that depends only on the number of leaves: the left child of a node with n leaves has the largest power
 * of two below n. A rank has a contiguous range of leaves. It keeps one partial sum for each maximal subtree inside its
 * range (its roots); the roots of all ranks, in order, remain to be added. */
#ifndef DPT_GRAPH_REDUCTION_TREE_H
#define DPT_GRAPH_REDUCTION_TREE_H

#include <stdint.h>

#include "trainer/graph/host_device.h"

#define REDUCTION_TREE_DEPTH_MAX 32				/* depth of the tree: fewer than 2^31 leaves */
#define REDUCTION_TREE_ROOTS_MAX (2 * REDUCTION_TREE_DEPTH_MAX) /* per rank */

/* One rank's range of the leaves of a step. */
struct reduction_tree {
	int64_t first, n; /* the rank's leaves: [first, first + n) */
	int64_t all;	  /* leaves of the step */
	int parts;	  /* parts the leaves are divided into */
};

/* Sizes of parts differ by at most one leaf; larger parts come first. */
HOST_DEVICE_INLINE struct reduction_tree reduction_tree_part(int64_t all, int part, int parts)
{
	const int64_t each = all / parts, extra = all % parts;
	const struct reduction_tree l = { part * each + (part < extra ? part : extra), each + (part < extra), all,
					  parts };

	return l;
}

/* Level of the largest subtree that starts at `first` and has at most n leaves; n > 0. */
HOST_DEVICE_INLINE int reduction_tree_level(int64_t first, int64_t n)
{
	int level = 0;

	while (!(first >> level & 1) && ((int64_t)2 << level) <= n)
		level++;
	return level;
}

/* Number of roots of the leaves [first, first + n). level: NULL, or REDUCTION_TREE_ROOTS_MAX entries; root i has
 * 2^level[i] leaves. */
HOST_DEVICE_INLINE int reduction_tree_roots(int64_t first, int64_t n, uint8_t *level)
{
	int count = 0;

	for (int64_t end = first + n; first < end; count++) {
		const int l = reduction_tree_level(first, end - first);

		if (level)
			level[count] = (uint8_t)l;
		first += (int64_t)1 << l;
	}
	return count;
}

/* Number of roots of [first, leaf) that are merged with that leaf's term into one root. */
HOST_DEVICE_INLINE int reduction_tree_merges(int64_t first, int64_t leaf)
{
	int merges = 0;

	while (leaf >> merges & 1 && leaf + 1 - ((int64_t)2 << merges) >= first)
		merges++;
	return merges;
}

/* The most roots that any part holds at any time while its leaves arrive in order. */
int reduction_tree_room(int64_t all, int parts);

/* The order of additions for a stack machine that pushes the terms one by one: after term i, adds[i] times, the two
 * upper elements are replaced by their sum. One element remains. ret: one byte per term of all parts, in order. Returns
 * the number of terms. */
int reduction_tree_order(uint8_t *ret, int64_t all, int parts);

/* The order of additions among the terms of neighbouring parts only, as far as possible without the others. For each
 * root that remains, begin[i] is the index of its first term and begin[n] the number of terms. ret: adds as above,
 * within each root. begin has REDUCTION_TREE_ROOTS_MAX + 1 entries. Returns n. */
struct reduction_tree_run {
	int first, n; /* parts */
};

int reduction_tree_order_run(uint8_t *ret, int *begin, int64_t all, int parts, struct reduction_tree_run run);
/* The order of additions of the roots that remain of all runs, given from the first part to the last. */
int reduction_tree_order_runs(uint8_t *ret, int64_t all, int parts, const struct reduction_tree_run *run, int n_runs);
int reduction_tree_order_own(uint8_t ret[REDUCTION_TREE_ROOTS_MAX], const struct reduction_tree *l);

#endif
