/* rank_env.h: which rank of how many this process is, found in the environment that torchrun, Open MPI, MPICH or Slurm
 * give to the processes that they start, and where rank 0 is. Knows nothing of our own launcher. */
#ifndef DPT_LAUNCH_RANK_ENV_H
#define DPT_LAUNCH_RANK_ENV_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct rank_env {
	bool found;	    /* false: started alone */
	const char *source; /* "torchrun", "Open MPI", … */
	int rank, world;
	int local_rank, local_world;
	int nodes;    /* machines; 1: all ranks are here */
	char job[96]; /* the same for all ranks of the job and for no other job of this user on this machine */
	/* With several machines: where rank 0 can be reached; "", 0: the source does not say. */
	char master[256];
	int port;
};

/* Fails with ERR_USAGE when two sources contradict each other or when a variable is damaged. */
int rank_env_find(struct rank_env *ret, struct err *err);

#endif
