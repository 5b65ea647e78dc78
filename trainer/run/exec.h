/* exec.h: walks schedules. The compute stream runs in the caller's thread; on host backends the communication stream
 * has a thread of its own. Allocates nothing after exec_new and exec_profile. */
#ifndef DPT_ENGINE_EXEC_H
#define DPT_ENGINE_EXEC_H

#include "trainer/program/prepare.h"

enum exec_time { EXEC_FORWARD, EXEC_BACKWARD, EXEC_COMM_EXPOSED, EXEC_OPTIMIZER, EXEC_TIMES };

struct exec_times {
	double by[EXEC_TIMES]; /* seconds of the compute stream, waits for the other stream in EXEC_COMM_EXPOSED */
	double comm_total;     /* in collectives on either stream, waiting for the other ranks included */
};

struct exec;

/* Programs of p (borrowed) with their memory. */
int exec_new(struct exec **ret, const struct prepared *p, struct err *err);
void exec_free(struct exec *e); /* NULL is fine */

/* One pass over the program's schedule. After a failure nothing more can be run, and the ranks' communicators are
 * aborted. */
int exec_run(struct exec *e, const struct program *p, const struct step_page *page, struct exec_times *ret,
	     struct err *err);

/* From now on the seconds of each node are added up, from zero. Off, it costs nothing. */
int exec_profile(struct exec *e, struct err *err);
const double *exec_node_seconds(const struct exec *e, const struct program *p); /* by node id; NULL: never asked for */

#endif
