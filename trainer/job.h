/* SPDX-License-Identifier: Apache-2.0 */
/* job.h: the ranks of a job: how many there are, on how many machines, how they are started and how the job ends. */
#ifndef DPT_JOB_H
#define DPT_JOB_H

#include "trainer/launch/node_group.h"
#include "trainer/launch/rank_env.h"
#include "trainer/run/engine.h"

/* Resolves --nproc-per-node gpu; if another program started the ranks, their number is known. */
int job_count_ranks(struct run_config *cfg, const struct rank_env *place, struct err *err);

/* Determines the number of ranks, and resolves the configuration. place receives how another program started this
 * process; *nodes the launchers of other machines, once they are met (node_group_close). */
int job_resolve(struct job *job, struct rank_env *place, struct node_group **nodes, struct err *err);

/* Runs the ranks, or the one that another program started here. Returns the exit code of the job, or a negative error.
 * job->run_id receives the run that the ranks recorded. */
int job_run(struct job *job, const struct rank_env *place, struct node_group *nodes, struct err *err);

/* Tells the ranks of another launcher, which wait for this one, that it has failed. */
void job_refuse(const struct err *why);

#endif
