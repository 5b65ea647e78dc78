/* reduction_tree.h: sums whose bits do not depend on who computes which terms. A step's samples are cut into leaves, and each
 * leaf's term (of a gradient, of the losses) is made whole by one rank. The terms are added along a binary tree that
 * follows from the number of leaves alone: the left part of a node with n leaves has the largest power of two of them
 * that is below n. A rank has neighbouring leaves; it keeps one term for each largest subtree that is made of them
 * alone (its roots), and the ranks' roots, in their order, are what remains to be added. */
#ifndef DPT_GRAPH_REDUCTION_TREE_H
#define DPT_GRAPH_REDUCTION_TREE_H

#include <stdint.h>

#include "trainer/graph/host_device.h"

#define REDUCTION_TREE_DEPTH_MAX 32			/* of the tree: fewer than 2^31 leaves */
#define REDUCTION_TREE_ROOTS_MAX (2 * REDUCTION_TREE_DEPTH_MAX) /* that one rank can have */

/* A rank's part of the leaves of a step. */
struct reduction_tree {
	int64_t first, n; /* its own: [first, first + n) */
	int64_t all;	  /* of the step */
	int parts;	  /* that all are dealt into */
};

/* Parts differ by one leaf at most, the larger ones first. */
HOST_DEVICE_INLINE struct reduction_tree reduction_tree_part(int64_t all, int part, int parts)
{
	const int64_t each = all / parts, extra = all % parts;
	const struct reduction_tree l = { part * each + (part < extra ? part : extra), each + (part < extra), all, parts };

	return l;
}

/* The level of the largest subtree that begins at first and has n leaves at most; n > 0. */
HOST_DEVICE_INLINE int reduction_tree_level(int64_t first, int64_t n)
{
	int level = 0;

	while (!(first >> level & 1) && ((int64_t)2 << level) <= n)
		level++;
	return level;
}

/* How many roots the leaves [first, first + n) have; level (NULL, or REDUCTION_TREE_ROOTS_MAX of them): root i has
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

/* How many of the roots of [first, leaf) the term of that leaf is added to: it becomes one root with them. */
HOST_DEVICE_INLINE int reduction_tree_merges(int64_t first, int64_t leaf)
{
	int merges = 0;

	while (leaf >> merges & 1 && leaf + 1 - ((int64_t)2 << merges) >= first)
		merges++;
	return merges;
}

/* Roots that any part has at any time while its leaves come one after another. */
int reduction_tree_room(int64_t all, int parts);

/* The order of a sum, for one who takes terms one after another and puts each on a stack: adds[i] times, behind term i,
 * the two upper ones are replaced by their sum; one is left in the end. ret: a byte for each term of all parts, in
 * order. Returns how many there are. */
int reduction_tree_order(uint8_t *ret, int64_t all, int parts);

/* Neighbouring parts, whose terms somebody adds as far as they can be without the others: for each root that is left
 * begin[i] is the first of its terms, all being listed in order, and begin[n] their number; adds as above, within each
 * root. Returns n. begin: REDUCTION_TREE_ROOTS_MAX + 1. */
struct reduction_tree_run {
	int first, n; /* parts */
};

int reduction_tree_order_run(uint8_t *ret, int *begin, int64_t all, int parts, struct reduction_tree_run run);
/* The order of what is left of all runs, which are given from the first part to the last. */
int reduction_tree_order_runs(uint8_t *ret, int64_t all, int parts, const struct reduction_tree_run *run, int n_runs);
int reduction_tree_order_own(uint8_t ret[REDUCTION_TREE_ROOTS_MAX], const struct reduction_tree *l);

#endif
