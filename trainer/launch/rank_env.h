/* SPDX-License-Identifier: Apache-2.0 */
/* rank_env.h: the rank and world size of this process, from the environment that torchrun, Open MPI, MPICH or Slurm
 * give to the processes that they start, and the address of rank 0. Independent of dptrain's own launcher. */
#ifndef DPT_LAUNCH_RANK_ENV_H
#define DPT_LAUNCH_RANK_ENV_H

#include "tracker/base/err.h"

struct rank_env {
	bool found;	    /* false: no launcher found */
	bool complete;	    /* all variables of its launcher are set, as by the launcher itself */
	const char *source; /* "torchrun", "Open MPI", … */
	char origin[160];   /* "Slurm announces 4 ranks (SLURM_PROCID=0, SLURM_NTASKS=4)" */
	int rank, world;
	int local_rank, local_world;
	int nodes; /* machines; 1: all ranks are on this one */
	/* the same for all ranks of the job, different from every other job of this user on this machine */
	char job[96];
	int group; /* torchrun's agent, whose ranks share memory; a machine may run several; -1: all of the machine */
	/* With several machines: the address of rank 0; "", 0: unknown. */
	char master[256];
	int port;
};

/* Where launchers are nested, as in `srun torchrun`, the innermost one counts. Fails with ERR_USAGE when variables
 * contradict each other that no launcher sets like this, or when one is damaged. */
int rank_env_find(struct rank_env *ret, struct err *err);

/* ---- Slurm's compressed lists (srun(1), "SLURM_TASKS_PER_NODE", "SLURM_NODELIST") ---- */

/* Returns number i of "4(x2),3": 4, 4, 3. Negative: there is no such number, or the text is damaged. */
int slurm_number(const char *text, int i);

/* Writes name i of "gpu[01-03,7],login": gpu01, gpu02, gpu03, gpu7, login. false: there is no such name, the text is
 * damaged, or the name does not fit into n bytes. */
bool slurm_name(const char *list, int i, char *ret, size_t n);

#endif
