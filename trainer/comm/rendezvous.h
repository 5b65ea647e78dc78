/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h: how the ranks of one machine that another program started (torchrun, mpirun, srun) come to share
 * memory. Rank 0 makes the memory and passes it on over an abstract Unix socket (unix(7)), whose name all ranks know
 * and which leaves no file. A failure of any rank before all are connected is reported to all at once. Ranks that
 * dptrain's own launcher forks inherit their memory instead. */
#ifndef DPT_COMM_RENDEZVOUS_H
#define DPT_COMM_RENDEZVOUS_H

#include "tracker/base/err.h"

#define RENDEZVOUS_FDS_MAX 8

struct rendezvous_opts {
	/* the same for all ranks of the job, different from every other job of this user on this machine */
	const char *job;
	int rank, world;
	int first;     /* added to ranks in messages: the job's number of this machine's first rank */
	double wait_s; /* longest wait for the others to start */
	/* What announced the ranks, for messages: "Slurm announces 4 ranks (SLURM_PROCID=0, SLURM_NTASKS=4)"; NULL: not
	 * known. */
	const char *origin;
	void (*waits)(const char *origin); /* called once when rank 0 has waited for some seconds; NULL: no call */
};

/* fd[n]: made by rank 0 and received by the others (close-on-exec, closed by the caller). Rank 0 passes failure (code
 * not 0) when it could not make them: then all ranks return it. Another rank that passes a failure gets it back, and
 * the others get ERR_PEER, as when a rank does not start or ends. */
int rendezvous(const struct rendezvous_opts *o, const struct err *failure, int *fd, int n, struct err *err);

#endif
