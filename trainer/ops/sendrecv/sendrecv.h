/* sendrecv.h: a tensor from one rank to another of the node's group, in the type that it has. send: in t, no output. recv:
 * no input, out t. Each message meets one receive, in the order of both: tensors of one pair travel on one stream of
 * the sender and one of the receiver. Without a communicator nothing happens. */
#ifndef DPT_OPS_SENDRECV_H
#define DPT_OPS_SENDRECV_H

#include "trainer/graph/graph.h"

struct sendrecv_attr {
	int rank; /* in the group: to whom, from whom */
};

/* Append a node on that stream, which meets GROUP_PIPELINE; NULL once the graph failed. */
struct node *send_add(struct graph *g, struct tensor *t, int to, enum stream stream);
struct node *recv_add(struct graph *g, struct tensor *t, int from, enum stream stream);

#endif
