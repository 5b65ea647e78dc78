/* exec.h: what runs the schedules of prepared programs. Callers know these functions; how nodes are run, on host
 * threads (exec_host.c) or otherwise, is an executor's own, and so is the memory of its struct. Nothing is allocated
 * after exec_new and exec_profile. */
#ifndef DPT_RUN_EXEC_H
#define DPT_RUN_EXEC_H

#include "trainer/program/prepare.h"
#include "trainer/run/trace.h"

enum exec_time { EXEC_FORWARD, EXEC_BACKWARD, EXEC_COMM_EXPOSED, EXEC_OPTIMIZER, EXEC_BUBBLE, EXEC_COPY_EXPOSED,
		 EXEC_TIMES };

struct exec_times {
	/* Seconds of the compute stream; waits for others in EXEC_COPY_EXPOSED (copies), EXEC_BUBBLE (what the other
	 * stages of a pipeline send, and sums with them), EXEC_COMM_EXPOSED (all else). */
	double by[EXEC_TIMES];
	double comm_total;     /* in collectives on all streams, waiting for the other ranks included */
};

struct exec { /* first member of each executor's own struct */
	const struct exec_ops *ops;
};

/* Puts the inputs of a micro-batch into its slot. Its time is the caller's. */
struct exec_feed {
	int (*put)(void *user, int micro, struct err *err);
	void *user;
};

/* Sees each node of the compute stream when it has run, with its operands. NULL: nobody looks. */
struct exec_look {
	void (*see)(void *user, const struct node *n, int slot, const struct kernel_args *args);
	void *user;
};

/* What a program is run with. */
struct exec_call {
	const struct step_page *page; /* of the first micro-batch, see exec_page */
	const struct exec_feed *feed; /* for schedules that are fed; else the inputs are in place, and NULL */
	struct trace *trace; /* gets a span for each node and wait while it is on; NULL: none */
	struct exec_look look; /* on the host alone */
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
	int (*run)(struct exec *e, const struct program *p, const struct exec_call *call, struct exec_times *ret,
		   struct err *err);
	int (*profile)(struct exec *e, struct err *err);
	const double *(*node_seconds)(const struct exec *e, const struct program *p);
};

/* Kernels in the caller's thread, every other stream in a thread of its own. For backends without streams. */
extern const struct exec_ops exec_host;

/* Programs of p (borrowed) with their memory, in the executor that its backend takes. */
int exec_new(struct exec **ret, const struct prepared *p, struct err *err);
void exec_free(struct exec *e); /* NULL is fine */

/* One pass over the program's schedule. After a failure nothing more can be run, and the ranks' communicators are
 * aborted. */
int exec_run(struct exec *e, const struct program *p, const struct exec_call *call, struct exec_times *ret,
	     struct err *err);

/* From now on the seconds of each node are added up, from zero. Off, it costs nothing. */
int exec_profile(struct exec *e, struct err *err);
const double *exec_node_seconds(const struct exec *e, const struct program *p); /* by node id; NULL: never asked for */

#endif
