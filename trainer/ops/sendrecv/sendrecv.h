/* sendrecv.h: sends a tensor from one rank of the node's group to another, in its own type. send: in t, no output.
 * recv: no input, out t. The n-th send of a pair matches its n-th receive: tensors of one pair use one stream of the
 * sender and one of the receiver. Without a communicator nothing happens. */
#ifndef DPT_OPS_SENDRECV_H
#define DPT_OPS_SENDRECV_H

#include "trainer/graph/graph.h"

struct sendrecv_attr {
	int rank; /* rank in the group: destination or source */
};

/* Append a node on `stream` in GROUP_PIPELINE; NULL once the graph failed. */
struct node *send_add(struct graph *g, struct tensor *t, int to, enum stream stream);
struct node *recv_add(struct graph *g, struct tensor *t, int from, enum stream stream);

#endif
