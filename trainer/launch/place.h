/* place.h: which rank of how many this process is, found in the environment that torchrun, Open MPI, MPICH or Slurm
 * give to the processes that they start. Knows nothing of our own launcher. */
#ifndef DPT_LAUNCH_PLACE_H
#define DPT_LAUNCH_PLACE_H

#include <stdbool.h>

#include "tracker/base/err.h"

struct place {
	bool found;	    /* false: started alone */
	const char *source; /* "torchrun", "Open MPI", … */
	int rank, world;
	int local_rank, local_world;
	char job[96]; /* the same for all ranks of the job and for no other job of this user on this machine */
};

/* Fails with ERR_USAGE when two sources contradict each other, when a variable is damaged, or when the ranks are on
 * more than one machine (which needs a transport that this build does not have). */
int place_find(struct place *ret, struct err *err);

#endif
