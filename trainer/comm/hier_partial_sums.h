/* hier_partial_sums.h: sums along the reduction tree (graph/leaves.h) whose terms are stored on several machines.
 * Adjacent ranks of a machine (a run) have adjacent leaves: their terms are added as far as possible without other
 * machines, and the remaining roots travel. Knows where terms are stored, nothing of messages. */
#ifndef DPT_COMM_HIER_PARTIAL_SUMS_H
#define DPT_COMM_HIER_PARTIAL_SUMS_H

#include "trainer/comm/comm.h"
#include "trainer/graph/reduction_tree.h"

struct hier_partial_sums { /* of one sum */
	const struct comm_terms *t;
	const struct reduction_tree_run *run; /* in rank order */
	const int *node;	      /* machine of each run */
	int n_runs, world;
	unsigned char *const *rank; /* first term of each rank of this machine, in order */
};

/* Returns how many roots a machine has. */
int hier_partial_sums_roots(const struct hier_partial_sums *s, int node);

/* Computes this machine's roots of elements [first, first + count) of every term, one after another. */
void hier_partial_sums_fold(const struct hier_partial_sums *s, int node, size_t first, size_t count, unsigned char *to);

/* Adds all roots of count elements; roots: by machine, as hier_partial_sums_fold left them. */
void hier_partial_sums_add(const struct hier_partial_sums *s, unsigned char *const *roots, size_t count, void *to);

#endif
