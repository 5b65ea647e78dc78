/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.h: the order in which nodes run: (node, micro-batch slot) with stream, waits and signals. Pipelines are
 * other orders of the same list. */
#ifndef DPT_GRAPH_SCHEDULE_H
#define DPT_GRAPH_SCHEDULE_H

#include "trainer/graph/graph.h"

struct schedule_item {
	struct node *node;
	int slot; /* micro-batch slot */
	enum stream stream;
	int wait[STREAM_COUNT]; /* per other stream: items before this position must complete first; 0: no wait */
	unsigned signal;	/* bit mask (1 << stream) of the streams that wait for this item */
	bool feeds;		/* compute stream only: after its waits the host writes the inputs of its slot */
};

struct schedule {
	struct schedule_item *items; /* in the graph's arena */
	int n;
	int slots;
	bool fed; /* some item feeds; else the inputs are ready before the first item */
};

/* Program order, one slot. Items of different streams run concurrently. An item waits where an operand or node->after
 * requires it, unless a predecessor already waited for the same. A node->after edge to a later node is ERR_USAGE. */
int schedule_make(struct schedule *ret, struct graph *g, struct err *err);

/* One part of the program (node->part) for one micro-batch. */
struct schedule_turn {
	enum part part;
	int micro; /* from 0; 0 for PART_STEP */
};

struct schedule_order {
	const struct schedule_turn *turn;
	int n;
	int micros;	   /* number of micro-batches; each has its own slot, and the plan overlays slots as their turns
			    * allow */
	bool inputs_ahead; /* all inputs are in their slots before the first item: no turn feeds */
};

/* Runs the nodes of each turn's part in program order, turn by turn; nodes marked once run in the first micro-batch's
 * turn. Streams do not drift apart: an item of another stream starts only after the compute stream has left the turn
 * before the last, and the compute stream starts a turn only after the others have left the turn before the last. The
 * first compute node of a forward turn feeds, unless o->inputs_ahead. */
int schedule_make_turns(struct schedule *ret, struct graph *g, const struct schedule_order *o, struct err *err);

/* The turns of one pipeline stage (from 0): forward and backward of every micro-batch in order, then the step;
 * schedule_turns of them. GPipe: all forward, then all backward. 1F1B (Narayanan et al. 2019, PipeDream-Flush): one
 * forward turn per later stage, then alternating, so that stage s of S has at most min(micros, S - s) in flight. */
enum pipeline { PIPELINE_1F1B, PIPELINE_GPIPE };

int schedule_turns(int micros);
void schedule_pipeline(struct schedule_turn *ret, enum pipeline kind, int stages, int stage, int micros);

/* The most micro-batches in flight at once: forward turn started, backward turn not ended. All of them hold
 * activations. */
int schedule_held(const struct schedule *s);

/* Items known to be complete when an item starts: per stream, those before a position. */
struct schedule_clock {
	int before[STREAM_COUNT];
};

/* Computes the clock of every item from the order of the streams and the waits. ret has s->n entries. */
void schedule_clocks(struct schedule_clock *ret, const struct schedule *s);

#endif
