/* schedule.h: the order in which nodes run: (node, micro-batch slot) with stream, what it must wait for and whether
 * somebody waits for it. Accumulation and pipelines are other orders of the same list. */
#ifndef DPT_GRAPH_SCHEDULE_H
#define DPT_GRAPH_SCHEDULE_H

#include "trainer/graph/graph.h"

struct schedule_item {
	struct node *node;
	int slot; /* micro-batch slot */
	enum stream stream;
	int wait[STREAM_COUNT]; /* items of each other stream before this position must be complete first; 0: no wait */
	unsigned signal;	/* the streams that wait for this one, a bit (1 << stream) each */
};

struct schedule {
	struct schedule_item *items; /* in the graph's arena */
	int n;
	int slots;
};

/* Program order, one slot. Items of different streams run beside each other: one waits where an operand, or
 * node->after, asks for it and nothing that it comes after has waited for that already. A node that shall be after a
 * later one is ERR_USAGE. */
int schedule_make(struct schedule *ret, struct graph *g, struct err *err);

/* What is known to be complete when an item starts: on each stream, the items before a position. */
struct schedule_clock {
	int before[STREAM_COUNT];
};

/* Of every item, by the order of the streams and the waits; ret[s->n]. */
void schedule_clocks(struct schedule_clock *ret, const struct schedule *s);

#endif
