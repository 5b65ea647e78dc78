/* SPDX-License-Identifier: Apache-2.0 */
/* resume.h: --resume: which run continues, and from which step. */
#ifndef DPT_STATE_RESUME_H
#define DPT_STATE_RESUME_H

#include "trainer/program/workload.h"
#include "trainer/state/tensors.h"
#include "trainer/weights/checkpoint.h"

struct resume {	      /* no pointers: rank 0 sends it to the others */
	bool reopens; /* the run run_id continues in a new segment */
	bool loads;   /* there is a checkpoint; else the run begins at step 1 */
	bool moved_end; /* --epochs or --max-steps differs from the checkpoint's */
	char run_id[33];
	char path[4096]; /* path of the checkpoint */
	struct checkpoint_state at;
	int lock_fd; /* rank 0's lock of the run's folder; -1: none */
};

/* Called before the ranks start: the path of a checkpoint gives the folder of runs, unless --runs-dir does. */
int resume_settle(struct run_config *cfg, struct err *err);

/* Collective, before anything is prepared: gives the backend the kernels that the run chose when it began, so that it
 * continues with the same bits. Ignores missing or unreadable checkpoints; resume_open reports them. */
int resume_kernels(const struct rank *r, struct err *err);

/* Collective. Finds and checks what --resume names, and loads a usable checkpoint into every rank, with its
 * normalisation; zeroed without --resume. Damaged and foreign checkpoints are skipped with a warning (auto, or a run's
 * folder) or refused (a checkpoint's path). */
int resume_open(struct resume *ret, const struct rank *r, struct workload *workload, const struct tensors *s,
		struct err *err);
void resume_close(struct resume *r); /* unlocks the run's folder */

/* Locks the run's folder for this process, until it ends or closes *ret_fd. ERR_BUSY when another process keeps the
 * lock for longer than wait_s. */
int resume_lock(int *ret_fd, const char *run_dir, double wait_s, struct err *err);

#endif
