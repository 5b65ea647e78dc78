/* rank_env.h: the rank and world size of this process, from the environment that torchrun, Open MPI, MPICH or Slurm
 * give to the processes that they start, and the address of rank 0. Knows nothing of dptrain's own launcher. */
#ifndef DPT_LAUNCH_RANK_ENV_H
#define DPT_LAUNCH_RANK_ENV_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct rank_env {
	bool found;	    /* false: no launcher found */
	const char *source; /* "torchrun", "Open MPI", … */
	int rank, world;
	int local_rank, local_world;
	int nodes;    /* machines; 1: all ranks are on this one */
	/* the same for all ranks of the job, different from every other job of this user on this machine */
	char job[96];
	/* With several machines: the address of rank 0; "", 0: unknown. */
	char master[256];
	int port;
};

/* Fails with ERR_USAGE when two launchers' variables contradict each other or a variable is damaged. */
int rank_env_find(struct rank_env *ret, struct err *err);

#endif
