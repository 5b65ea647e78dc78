/* schedule.h: the order in which nodes run: (node, micro-batch slot) with stream, what it must wait for and whether
 * somebody waits for it. Accumulation and pipelines are other orders of the same list. */
#ifndef DPT_GRAPH_SCHEDULE_H
#define DPT_GRAPH_SCHEDULE_H

#include "trainer/graph/graph.h"

struct schedule_item {
	struct node *node;
	int slot;          /* micro-batch slot */
	enum stream stream;
	int wait;   /* index of an item on another stream that must be complete first; -1 none */
	bool signal; /* an item on another stream waits for this one */
};

struct schedule {
	struct schedule_item *items; /* in the graph's arena */
	int n;
	int slots;
};

/* Program order, one slot; items of STREAM_COMM run beside those of STREAM_COMPUTE and waits are placed before the
 * first consumer (several waits on one stream reduce to the latest, since a stream runs in order). */
int schedule_make(struct schedule *ret, struct graph *g, struct err *err);

#endif
