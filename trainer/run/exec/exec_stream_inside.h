/* exec_stream_inside.h: what the parts of exec_stream.c share. */
#ifndef DPT_EXEC_STREAM_INSIDE_H
#define DPT_EXEC_STREAM_INSIDE_H

#include "trainer/run/exec/exec_stream.h"
#include "trainer/run/exec/exec_time.h"
#include "trainer/run/exec/ring.h"

struct stream_mark { /* the kind of work that begins there; the last one ends a run */
	struct event_handle *event[RING_SLOTS];
	enum exec_time kind;
};

/* Items behind each other that one call of their kernel runs: kernel.h, run_many. */
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
	struct event_handle *wait[STREAM_COUNT]; /* borrowed from the items waited for; NULL: none */
	struct event_handle *event;		 /* behind it; NULL: nobody waits */
	struct stream_mark *before, *begins;	 /* in front of its waits and behind them; NULL: no turn there */
	struct event_handle *from, *to;		 /* timed, behind its waits and itself; NULL: never traced */
	const struct node *node;
	struct stream_group *group; /* NULL: it runs by itself */
	bool leads;		    /* the group runs where it stands; the others' turns are empty */
};

struct stream_program {
	const struct program *program;
	struct stream_item *items;
	int n;
	bool forks[STREAM_COUNT];		  /* beside the compute stream: its first item waits for no other */
	struct event_handle *joins[STREAM_COUNT]; /* likewise, of those whose last item no other waits for */
	struct stream_mark *marks;
	int n_marks;
	struct graph_handle *graph[RING_SLOTS]; /* NULL: node by node */
	double *node_seconds;	    /* by node id; NULL: never asked for */
};

struct stream_run { /* that has not ended */
	struct stream_program *program;
	struct trace *trace; /* NULL: it is not traced */
};

struct stream_executor {
	struct exec exec;
	const struct prepared *prepared;
	const struct backend_streams *ops;
	void *module;
	struct stream_handle *stream[STREAM_COUNT]; /* NULL where no program uses one */
	struct stream_program *programs;
	int n_programs;
	struct event_handle *begin; /* of a run, for streams that fork */
	struct event_handle *looked; /* behind a node that is looked at; NULL until somebody looks */
	struct ring *ring;
	struct stream_run run[RING_SLOTS]; /* by slot */
	int first, n;			   /* slots of those under way */
	int slot;			   /* of the run that is being enqueued or recorded */
	bool traced;			   /* … node by node, with an event at both ends of each */
	bool watched, looks;		   /* … in which nodes that watch act; each node of which is looked at */
	bool graphs, profiled, failed;
};

/* exec_stream_program.c */

/* The stream, the event: made where there is none yet. */
int stream_make(struct stream_executor *e, enum stream s, struct err *err);
int stream_event(struct stream_executor *e, struct event_handle **ret, bool timed, struct err *err);

/* The program's schedule with its streams, waits, forks, joins and marks. What was made is freed by stream_program_free
 * in every case. */
int stream_program_fill(struct stream_executor *e, struct stream_program *sp, const struct program *p, struct err *err);
void stream_program_free(struct stream_executor *e, struct stream_program *sp);

/* exec_stream_group.c: finds the program's groups, once its items have waits, events and marks. */
int stream_program_group(struct stream_program *sp, struct err *err);

/* exec_stream_time.c */

/* The phases of the run of that slot, which is over. */
int stream_times(struct stream_executor *e, const struct stream_program *sp, int slot, struct exec_times *ret,
		 struct err *err);

/* Events at both ends of every item, made in the first step that is traced; the spans of such a run, which is over. */
int stream_trace_begin(struct stream_executor *e, struct stream_program *sp, struct err *err);
int stream_trace_end(struct stream_executor *e, int slot, struct err *err);

/* Adds what each item of the last run took, which is over and had these events. */
int stream_node_seconds(struct stream_executor *e, struct stream_program *sp, struct err *err);

#endif
