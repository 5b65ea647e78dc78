/* hier_partial_sums.h: sums along the tree of leaves (graph/leaves.h) whose terms lie on several machines. A machine's ranks
 * that are neighbours (a run) have neighbouring leaves: their terms are added as far as they can be without the others,
 * and the roots that are left travel. Knows where terms lie, nothing of messages. */
#ifndef DPT_COMM_HIER_PARTIAL_SUMS_H
#define DPT_COMM_HIER_PARTIAL_SUMS_H

#include "trainer/comm/comm.h"
#include "trainer/graph/reduction_tree.h"

struct hier_partial_sums { /* of one sum */
	const struct comm_terms *t;
	const struct reduction_tree_run *run; /* from the first rank to the last */
	const int *node;	      /* of each run */
	int n_runs, world;
	unsigned char *const *rank; /* of this machine, in order: where the first term of each lies */
};

/* How many roots a machine has. */
int hier_partial_sums_roots(const struct hier_partial_sums *s, int node);

/* This machine's roots of elements [first, first + count) of every term, one behind the other. */
void hier_partial_sums_fold(const struct hier_partial_sums *s, int node, size_t first, size_t count, unsigned char *to);

/* The sum of all roots of count elements; roots: by machine, as fold left them. */
void hier_partial_sums_add(const struct hier_partial_sums *s, unsigned char *const *roots, size_t count, void *to);

#endif
