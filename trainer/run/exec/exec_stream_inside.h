/* SPDX-License-Identifier: Apache-2.0 */
/* exec_stream_inside.h: the executor of devices as its files see it: programs as items of streams, and the data of a
 * run. */
#ifndef DPT_EXEC_STREAM_INSIDE_H
#define DPT_EXEC_STREAM_INSIDE_H

#include "trainer/run/exec/exec_inside.h"

#define RING_SLOTS (EXEC_AHEAD_MAX + 1) /* runs in progress */

struct stream_mark { /* the start of a kind of work; the last mark ends a run */
	struct event_handle *event[RING_SLOTS];
	enum exec_time kind;
};

/* Adjacent items that one call of their kernel runs: kernel.h, run_many. */
struct stream_group {
	void **states;
	struct kernel_args *args;
	int n;
};

struct stream_item {
	const struct kernel *kernel;
	void *state;
	struct kernel_args args;
	enum stream stream;
	struct event_handle *wait[STREAM_COUNT]; /* borrowed from the awaited items; NULL: none */
	struct event_handle *event;		 /* recorded after the item; NULL: no stream waits for it */
	/* marks before and after its waits; NULL: the kind of work does not change */
	struct stream_mark *before, *begins;
	/* timed events after its waits and after the item; NULL: never traced */
	struct event_handle *from, *to;
	const struct node *node;
	struct stream_group *group; /* NULL: it runs alone */
	bool leads;		    /* the group runs in its place; the other members run nothing */
};

struct stream_program {
	const struct program *program;
	struct stream_item *items;
	int n;
	/* streams besides the compute stream whose first item waits for no other */
	bool forks[STREAM_COUNT];
	/* streams besides the compute stream whose last item no other waits for */
	struct event_handle *joins[STREAM_COUNT];
	struct stream_mark *marks;
	int n_marks;
	struct graph_handle *graph[RING_SLOTS]; /* NULL: node by node */
	double *node_seconds;			/* by node id; NULL: not profiled */
};

struct stream_run { /* a run in progress */
	struct stream_program *program;
	struct trace *trace; /* NULL: not traced */
};

struct stream_executor {
	struct exec exec;
	const struct prepared *prepared;
	const struct backend_streams *ops;
	void *module;
	struct stream_handle *stream[STREAM_COUNT]; /* NULL where no program uses it */
	struct stream_program *programs;
	int n_programs;
	struct event_handle *begin;  /* begin of a run, for streams that fork */
	struct event_handle *looked; /* after an observed node; NULL until the first */
	struct ring *ring;
	struct stream_run run[RING_SLOTS]; /* by slot */
	int first, n;			   /* slots of the runs in progress */
	int slot;			   /* slot of the run that is being enqueued or captured */
	bool traced;			   /* the run has an event at both ends of each node */
	bool watched, looks;		   /* nodes that watch run; each node is observed */
	bool graphs, profiled, failed;
};

/* ---- exec_stream_program.c ---- */

/* Create the stream or the event if it does not exist yet. */
int stream_make(struct stream_executor *e, enum stream s, struct err *err);
int stream_event(struct stream_executor *e, struct event_handle **ret, bool timed, struct err *err);

/* Fills the program's schedule with its streams, waits, forks, joins and marks. stream_program_free frees what was
 * made, also after a failure. */
int stream_program_fill(struct stream_executor *e, struct stream_program *sp, const struct program *p, struct err *err);
void stream_program_free(struct stream_executor *e, struct stream_program *sp);

/* Finds the program's groups, once its items have waits, events and marks. */
void stream_program_group(struct stream_program *sp);

/* Reads the phases of the finished run of that slot. */
int stream_times(struct stream_executor *e, const struct stream_program *sp, int slot, struct exec_times *ret,
		 struct err *err);

/* stream_trace_begin makes events at both ends of every item, in the first traced step; stream_trace_end adds the spans
 * of a finished traced run. */
int stream_trace_begin(struct stream_executor *e, struct stream_program *sp, struct err *err);
int stream_trace_end(struct stream_executor *e, int slot, struct err *err);

/* Adds the seconds of each item of the last run, which is finished and had these events. */
int stream_node_seconds(struct stream_executor *e, struct stream_program *sp, struct err *err);

/* ---- ring.c ----
 *
 * The data that goes to a device before a run and returns after it: pages, small values and batches; results.
 * One slot for each run that may be in progress, in pinned memory. Everything is enqueued; nothing waits.
 *
 * A batch is uploaded on a stream of its own into memory that no program uses (prepared_feed), while the run before may
 * be in progress, and copied from there into its place before its run. */

struct ring;

/* Borrows p and the stream on which runs follow each other. */
int ring_open(struct ring **ret, const struct prepared *p, struct stream_handle *compute, struct err *err);
void ring_close(struct ring *r); /* no run is in progress; NULL is fine */

/* Returns the page that nodes of that micro-batch slot read, in the device's memory. */
const struct step_page *ring_page(const struct ring *r, int micro_slot);

/* Enqueues the data of a run. The slot's last run must be finished. */
int ring_send(struct ring *r, int slot, const struct program *p, const struct exec_call *call, struct err *err);

/* Returns the event of the last batch's arrival on the device. */
struct event_handle *ring_fed(const struct ring *r);

/* ring_receive is called after the run is enqueued; the event of ring_over signals its results, which ring_read then
 * returns. */
int ring_receive(struct ring *r, int slot, const struct program *p, struct err *err);
struct event_handle *ring_over(const struct ring *r, int slot);
void ring_read(const struct ring *r, int slot, const struct program *p, struct exec_done *ret); /* except times */

#endif
