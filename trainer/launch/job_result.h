/* job_result.h: how a job ended, from how its ranks did: which of them is to blame, the exit code, the line that says why.
 * Knows of no processes; prints nothing. */
#ifndef DPT_LAUNCH_JOB_RESULT_H
#define DPT_LAUNCH_JOB_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "tracker/base/err.h"

#define JOB_RESULT_REASON_BYTES 600

struct rank_end {
	int pid;
	int status;		 /* as waitpid gives it */
	double at_s;		 /* when it was noticed */
	const struct err *words; /* its last ones; NULL: none */
};

/* How much a failed rank is to blame. */
enum job_result_blame {
	JOB_RESULT_KILLED, /* because another had failed */
	JOB_RESULT_TOLD,	/* it merely noticed that another had failed */
	JOB_RESULT_OWN,	/* a failure of its own */
};

struct job_end {
	const struct rank_end *rank;
	int first; /* number of rank[0] in the job: those of this machine are judged */
	int n;
	int stop_signal; /* that asked the job to end; 0: none did */
	bool killed;	 /* ranks were killed, because another had failed or somebody insisted */
	double failed_s; /* when the first rank failed; 0: none did */
};

struct job_result {
	int code;    /* of the job: 0, 1, 2, 75, 130 */
	int culprit; /* rank of this machine that is to blame; -1 */
	int blame;   /* enum job_result_blame of the culprit */
	char reason[JOB_RESULT_REASON_BYTES]; /* "": the job did what it should */
};

/* Whether that rank's end is a failure; one that ends early because it was asked to is none. */
bool job_result_failed(const struct job_end *j, int rank);

struct job_result job_result_of(const struct job_end *j);

#endif
