/* SPDX-License-Identifier: Apache-2.0 */
/* job_result.h: the result of a job, from the ends of its ranks: the culprit, the exit code, the line with the reason.
 * Knows no processes; prints nothing. */
#ifndef DPT_LAUNCH_JOB_RESULT_H
#define DPT_LAUNCH_JOB_RESULT_H

#include "tracker/base/err.h"

#define JOB_RESULT_REASON_BYTES 600

struct rank_end {
	int pid;
	int status;		 /* as returned by waitpid */
	double at_s;		 /* when it was noticed */
	const struct err *words; /* its error; NULL: none */
};

/* How much a failed rank is to blame, in ascending order. */
enum job_result_blame {
	JOB_RESULT_KILLED, /* killed because another rank had failed */
	JOB_RESULT_TOLD,   /* it only noticed that another rank had failed */
	JOB_RESULT_OWN,	   /* it failed itself */
};

struct job_end {
	const struct rank_end *rank;
	int first; /* number of rank[0] in the job: only ranks of this machine are listed */
	int n;
	int stop_signal; /* signal that asked the job to end; 0: none */
	bool killed;	 /* ranks were killed, after a failure or a second signal */
	double failed_s; /* when the first rank failed; 0: none has */
};

struct job_result {
	int code;			      /* exit code of the job: 0, 1, 2, 75, 130 */
	int culprit;			      /* rank of this machine that is to blame; -1: none */
	int blame;			      /* enum job_result_blame of the culprit */
	char reason[JOB_RESULT_REASON_BYTES]; /* "": success */
};

/* Returns true if the rank failed; a rank that ends early on request did not. */
bool job_result_failed(const struct job_end *j, int rank);

struct job_result job_result_of(const struct job_end *j);

#endif
