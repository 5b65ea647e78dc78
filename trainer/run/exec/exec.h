/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h: runs the schedules of prepared programs. An executor defines how nodes run, on host threads (exec_host.c) or
 * on a device, and allocates its own struct. Nothing is allocated after exec_new and exec_profile.
 *
 * A run is begun and, later, ended, in the same order. On a host it is complete when exec_begin returns; a device may
 * work on one run while the next is enqueued. */
#ifndef DPT_RUN_EXEC_H
#define DPT_RUN_EXEC_H

#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/xent/xent.h"
#include "trainer/program/prepare.h"
#include "trainer/run/trace.h"

#define EXEC_AHEAD_MAX 1 /* runs that may be in progress when another is begun */

enum exec_time {
	EXEC_H2D, /* copies of the inputs */
	EXEC_FORWARD,
	EXEC_BACKWARD,
	EXEC_COMM_EXPOSED,
	EXEC_OPTIMIZER,
	EXEC_BUBBLE,
	EXEC_COPY_EXPOSED,
	EXEC_TIMES
};

struct exec_times {
	/* Seconds of the compute stream. Waits count as EXEC_COPY_EXPOSED (for copies), EXEC_BUBBLE (for other stages
	 * of a pipeline, and sums with them) or EXEC_COMM_EXPOSED (all else). */
	double by[EXEC_TIMES];
	double comm_total; /* in collectives on all streams, including waits for other ranks */
};

struct exec { /* first member of each executor's own struct */
	const struct exec_ops *ops;
};

/* Called after each node of the compute stream, with its operands, which prepared_copy can read: a device waits for the
 * host after each node. see NULL: off. */
struct exec_look {
	void (*see)(void *user, const struct node *n, int slot, const struct kernel_args *args);
	void *user;
};

/* Arguments of a program's run. */
struct exec_call {
	const struct step_page *page; /* page of the first micro-batch, see exec_page */
	/* Of all micro-batches, one after another, in a loader's memory; NULL: they are in place. */
	const void *inputs, *targets;
	double vote;	     /* value for program.vote */
	struct trace *trace; /* gets a span for each node and wait while it is on; NULL: none */
	struct exec_look look;
};

/* Results of a run; zeros for tensors that its program lacks. */
struct exec_results {
	double own[XENT_RESULTS], sum[XENT_RESULTS]; /* program.result, program.result_sum */
	double grad_norm;
	double state[STEP_GUARD_STATE_VALUES]; /* program.optimizer */
	double votes;
};

struct exec_done {
	struct exec_times times;
	struct exec_results results;
	/* program.losses of each micro-batch, one after another; NULL: none. Owned by the executor, valid until the
	 * next run is begun. */
	const double *losses;
};

/* Returns the page of a slot's micro-batch, from the page of the first micro-batch. */
static inline struct step_page exec_page(const struct program *p, const struct step_page *first, int slot)
{
	struct step_page page = *first;

	page.micro += slot;
	page.first_sample += slot * p->micro;
	return page;
}

/* An executor; the functions below define the contracts. */
struct exec_ops {
	int (*open)(struct exec **ret, const struct prepared *p, struct err *err);
	void (*close)(struct exec *e);
	int (*ahead)(const struct exec *e);
	int (*begin)(struct exec *e, const struct program *p, const struct exec_call *call, struct err *err);
	int (*fed)(struct exec *e, struct err *err);
	int (*end)(struct exec *e, struct exec_done *ret, struct err *err);
	void (*profile)(struct exec *e);
	const double *(*node_seconds)(const struct exec *e, const struct program *p);
};

/* Runs the compute stream in the caller's thread and every other stream in a thread of its own. For backends without
 * streams. */
extern const struct exec_ops exec_host;

/* Enqueues all streams on a device. For backends with streams. */
extern const struct exec_ops exec_stream;

/* Opens the executor for p's backend, with the programs of p (borrowed) and their memory. */
int exec_new(struct exec **ret, const struct prepared *p, struct err *err);
void exec_free(struct exec *e); /* NULL is fine */

/* Returns how many runs may be in progress when another is begun. */
int exec_ahead(const struct exec *e);

/* Begins one pass over the program's schedule. After a failure of this, exec_fed or exec_end no more programs can run,
 * and the ranks' communicators are aborted. */
int exec_begin(struct exec *e, const struct program *p, const struct exec_call *call, struct err *err);

/* Waits until call.inputs and call.targets of the last exec_begin may be reused. */
int exec_fed(struct exec *e, struct err *err);

/* Waits for the oldest run in progress. */
int exec_end(struct exec *e, struct exec_done *ret, struct err *err);

/* Begins and ends a run while no other is in progress. */
int exec_run(struct exec *e, const struct program *p, const struct exec_call *call, struct exec_done *ret,
	     struct err *err);

/* Adds up the seconds of each node from now on, beginning at zero. Off, it costs nothing. Only while no run is in
 * progress. */
void exec_profile(struct exec *e);
const double *exec_node_seconds(const struct exec *e, const struct program *p); /* by node id; NULL: not profiled */

#endif
