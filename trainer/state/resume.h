/* resume.h: --resume: which run goes on, and from where. */
#ifndef DPT_STATE_RESUME_H
#define DPT_STATE_RESUME_H

#include "trainer/program/workload.h"
#include "trainer/state/tensors.h"
#include "trainer/weights/checkpoint.h"

struct resume { /* no pointers: rank 0 sends it to the others */
	bool reopens;	 /* the run run_id goes on in a new segment */
	bool loads;	 /* there is a checkpoint; else it begins again from step 1 */
	char run_id[33];
	char path[4096]; /* of the checkpoint */
	struct checkpoint_state at;
	int lock_fd; /* rank 0's hold on the run's folder; -1 */
};

/* Before the ranks are started: a checkpoint named by its path tells where its run's folder lies, unless --runs-dir
 * does. */
int resume_settle(struct run_config *cfg, struct err *err);

/* Collective, before anything is prepared: the backend gets the kernels that the run chose when it began, so that it
 * goes on with the same bits. What cannot be found or read is resume_open's to tell. */
int resume_kernels(const struct rank *r, struct err *err);

/* Collective. Finds and checks what --resume asks for, and where a checkpoint can be used loads it into every rank,
 * with the normalisation that it was trained with; zeroed without --resume. Damaged and foreign checkpoints are skipped
 * with a warning (auto, or a run's folder) or refused (a checkpoint by its path). */
int resume_open(struct resume *ret, const struct rank *r, struct workload *subject, const struct tensors *s,
		struct err *err);
void resume_close(struct resume *r); /* lets go of the run's folder */

/* Takes the run's folder for this process, until it ends or closes *ret_fd. ERR_BUSY when another one has it for
 * longer than wait_s. */
int resume_lock(int *ret_fd, const char *run_dir, double wait_s, struct err *err);

#endif
