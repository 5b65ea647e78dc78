/* rendezvous.h: how the ranks of one machine that another program started (torchrun, mpirun, srun) come to share
 * memory: rank 0 makes it and passes it on over a socket of a name that all of them know (unix(7), abstract: nothing is
 * left behind). What goes wrong before all are there, in rank 0 or in another, is told to all of them at once. Ranks
 * that our own launcher forks inherit their memory instead. */
#ifndef DPT_COMM_RENDEZVOUS_H
#define DPT_COMM_RENDEZVOUS_H

#include "tracker/base/err.h"

#define RENDEZVOUS_FDS_MAX 8

struct rendezvous_opts {
	const char *job; /* the same for all its ranks, and for no other job of this user on this machine */
	int rank, world;
	int first;	 /* what messages add to ranks: the job's number of this machine's first */
	double wait_s; /* longest wait for the others to start */
};

/* fd[n]: made by rank 0 and received by the others (close-on-exec, the caller's to close). rank 0 comes with failure
 * set (code not 0) when it could not make them: then all ranks return it. Another rank that comes with one has it back,
 * and the others ERR_PEER, as when a rank does not come or ends. */
int rendezvous(const struct rendezvous_opts *o, const struct err *failure, int *fd, int n, struct err *err);

#endif
