/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.h: tests that every communicator must pass, as the main function of a rank: each returns 0, or a number
 * that identifies the failure. Inputs are small integers, so every sum is exact in every type and any order, and each
 * rank computes the expected result by itself. */
#ifndef TESTS_COMM_COLLECTIVES_H
#define TESTS_COMM_COLLECTIVES_H

#include "trainer/comm/comm.h"

int collectives_allreduce(struct comm *c); /* all types, many sizes, own and shared buffers */
int collectives_scatter(struct comm *c);   /* reduce-scatter, then all-gather */
int collectives_terms(struct comm *c);	   /* sums along the tree of leaves: bits; shared memory, or few bytes */
int collectives_broadcast(struct comm *c); /* from every root */
int collectives_ring(struct comm *c);	   /* send and receive; an even number of ranks */
int collectives_repeat(struct comm *c);	   /* thousands of small sums */
int collectives_groups(struct comm *c);	   /* split: the even and the odd, neighbours, all but the first */
int collectives_threads(struct comm *c);   /* two threads, a communicator each */

#endif
