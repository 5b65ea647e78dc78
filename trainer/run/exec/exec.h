/* exec.h: what runs the schedules of prepared programs. Callers know these functions; how nodes are run, on host
 * threads (exec_host.c) or otherwise, is an executor's own, and so is the memory of its struct. Nothing is allocated
 * after exec_new and exec_profile.
 *
 * A run is begun and, later, ended, in the same order. One on a host is over when it has begun; a device may work on
 * one while the next is begun behind it. */
#ifndef DPT_RUN_EXEC_H
#define DPT_RUN_EXEC_H

#include "trainer/ops/step_guard/step_guard.h"
#include "trainer/ops/xent/xent.h"
#include "trainer/program/prepare.h"
#include "trainer/run/trace.h"

#define EXEC_AHEAD_MAX 1 /* runs that may be under way when another is begun */

enum exec_time {
	EXEC_H2D, /* inputs on their way into their place */
	EXEC_FORWARD,
	EXEC_BACKWARD,
	EXEC_COMM_EXPOSED,
	EXEC_OPTIMIZER,
	EXEC_BUBBLE,
	EXEC_COPY_EXPOSED,
	EXEC_TIMES
};

struct exec_times {
	/* Seconds of the compute stream; waits for others in EXEC_COPY_EXPOSED (copies), EXEC_BUBBLE (what the other
	 * stages of a pipeline send, and sums with them), EXEC_COMM_EXPOSED (all else). */
	double by[EXEC_TIMES];
	double comm_total;     /* in collectives on all streams, waiting for the other ranks included */
};

struct exec { /* first member of each executor's own struct */
	const struct exec_ops *ops;
};

/* Sees each node of the compute stream when it has run, with its operands, which prepared_copy can read: a device waits
 * for the host behind each. NULL: nobody looks. */
struct exec_look {
	void (*see)(void *user, const struct node *n, int slot, const struct kernel_args *args);
	void *user;
};

/* What a program is run with. */
struct exec_call {
	const struct step_page *page; /* of the first micro-batch, see exec_page */
	/* Of all micro-batches, one behind the other, in a loader's memory; NULL: they are in place. */
	const void *inputs, *targets;
	double vote;	     /* for program.vote */
	struct trace *trace; /* gets a span for each node and wait while it is on; NULL: none */
	struct exec_look look;
};

/* What a run leaves to be read; of tensors that its program has none of: zeros. */
struct exec_results {
	double own[XENT_RESULTS], sum[XENT_RESULTS]; /* program.result, program.result_sum */
	double grad_norm;
	double state[STEP_GUARD_STATE_VALUES]; /* program.optimizer */
	double votes;
};

struct exec_done {
	struct exec_times times;
	struct exec_results results;
	/* program.losses of each micro-batch, one behind the other; NULL: it has none. The executor's, until another
	 * run is begun. */
	const double *losses;
};

/* What every node of a slot's micro-batch gets, where the first one's get *first. */
static inline struct step_page exec_page(const struct program *p, const struct step_page *first, int slot)
{
	struct step_page page = *first;

	page.micro += slot;
	page.first_sample += slot * p->micro;
	return page;
}

/* An executor. The functions below say what each of them does. */
struct exec_ops {
	int (*open)(struct exec **ret, const struct prepared *p, struct err *err);
	void (*close)(struct exec *e);
	int (*ahead)(const struct exec *e);
	int (*begin)(struct exec *e, const struct program *p, const struct exec_call *call, struct err *err);
	int (*fed)(struct exec *e, struct err *err);
	int (*end)(struct exec *e, struct exec_done *ret, struct err *err);
	int (*profile)(struct exec *e, struct err *err);
	const double *(*node_seconds)(const struct exec *e, const struct program *p);
};

/* Kernels in the caller's thread, every other stream in a thread of its own. For backends without streams. */
extern const struct exec_ops exec_host;

/* Programs of p (borrowed) with their memory, in the executor that its backend takes. */
int exec_new(struct exec **ret, const struct prepared *p, struct err *err);
void exec_free(struct exec *e); /* NULL is fine */

/* How many runs may be under way when another is begun. */
int exec_ahead(const struct exec *e);

/* Begins one pass over the program's schedule. After a failure of this, exec_fed or exec_end nothing more can be run,
 * and the ranks' communicators are aborted. */
int exec_begin(struct exec *e, const struct program *p, const struct exec_call *call, struct err *err);

/* Waits until the memory that call.inputs and call.targets of the last exec_begin point to is the caller's again. */
int exec_fed(struct exec *e, struct err *err);

/* Waits for the oldest run that has not ended. */
int exec_end(struct exec *e, struct exec_done *ret, struct err *err);

/* Where none is under way: both. */
int exec_run(struct exec *e, const struct program *p, const struct exec_call *call, struct exec_done *ret,
	     struct err *err);

/* From now on the seconds of each node are added up, from zero. Off, it costs nothing; where none is under way. */
int exec_profile(struct exec *e, struct err *err);
const double *exec_node_seconds(const struct exec *e, const struct program *p); /* by node id; NULL: never asked for */

#endif
