/* schedule.h: the order in which nodes run: (node, micro-batch slot) with stream, what it must wait for and whether
 * somebody waits for it. Pipelines are other orders of the same list. */
#ifndef DPT_GRAPH_SCHEDULE_H
#define DPT_GRAPH_SCHEDULE_H

#include "trainer/graph/graph.h"

struct schedule_item {
	struct node *node;
	int slot; /* micro-batch slot */
	enum stream stream;
	int wait[STREAM_COUNT]; /* items of each other stream before this position must be complete first; 0: no wait */
	unsigned signal;	/* the streams that wait for this one, a bit (1 << stream) each */
	bool feeds; /* of the compute stream: behind its waits the host puts the inputs of its slot into place */
};

struct schedule {
	struct schedule_item *items; /* in the graph's arena */
	int n;
	int slots;
	bool fed; /* some item feeds; else the inputs are there before the first one */
};

/* Program order, one slot. Items of different streams run beside each other: one waits where an operand, or
 * node->after, asks for it and nothing that it comes after has waited for that already. A node that shall be after a
 * later one is ERR_USAGE. */
int schedule_make(struct schedule *ret, struct graph *g, struct err *err);

/* One part of the program (node->part), for one micro-batch. */
struct schedule_turn {
	enum part part;
	int micro; /* from 0; of PART_STEP 0 */
};

struct schedule_order {
	const struct schedule_turn *turn;
	int n;
	int micros; /* each has a slot of its own: the plan lets them share memory as their turns allow */
	bool inputs_ahead; /* all of them lie in their slots before the first item: no turn is fed */
};

/* The nodes of each turn's part in program order, turn by turn; those that run once, in the first micro-batch's.
 * Streams do not drift apart: what runs on another one begins when the compute stream has left the turn before the
 * last, at the earliest, and the compute stream begins a turn when the others have left the turn before the last. The
 * first compute node of a forward turn feeds, unless the inputs are there ahead. */
int schedule_make_turns(struct schedule *ret, struct graph *g, const struct schedule_order *o, struct err *err);

/* Turns of one stage (from 0) of a pipeline: forward and backward of every micro-batch, in order, then the step;
 * schedule_turns of them. GPipe: all forward, then all backward. 1F1B (Narayanan et al. 2019, PipeDream-Flush): as many
 * forward as stages lie behind, then by turns, so that stage s of S has at most min(micros, S - s) under way. */
enum pipeline { PIPELINE_1F1B, PIPELINE_GPIPE };

int schedule_turns(int micros);
void schedule_pipeline(struct schedule_turn *ret, enum pipeline kind, int stages, int stage, int micros);

/* The most micro-batches whose forward turn has begun and whose backward turn has not ended: so many of their tensors
 * lie in memory at once. */
int schedule_held(const struct schedule *s);

/* What is known to be complete when an item starts: on each stream, the items before a position. */
struct schedule_clock {
	int before[STREAM_COUNT];
};

/* Of every item, by the order of the streams and the waits; ret[s->n]. */
void schedule_clocks(struct schedule_clock *ret, const struct schedule *s);

#endif
