/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: what a rank records of its run through libdptrack: params and environment (rank 0), the run's series (rank
 * 0), its own phases and memory. Logging only queues. */
#ifndef DPT_RUN_REPORT_H
#define DPT_RUN_REPORT_H

#include "tracker/dptrack.h"
#include "trainer/run/evaluate.h"
#include "trainer/run/step.h"
#include "trainer/state/resume.h"

struct report;

/* Collective: rank 0 opens the run, or the segment of it that resume selects, and sends the others its id. Rank 0 locks
 * the run's folder until report_close; takes over the lock of resume. */
int report_open(struct report **ret, struct engine *e, struct resume *resume, struct err *err);

void report_step(struct report *r, const struct step_result *s);

/* Prints the data set's notices that were not printed yet. NULL is fine. */
void report_notices(const struct engine *e);
void report_points(struct report *r, const struct eval_metrics *p); /* for the run as a whole: rank 0 records them */
void report_cached_step(struct report *r, int64_t step, double seconds); /* result of cached_step_run */
void report_memory(struct report *r, int64_t step);		    /* memory planned and used, at the end */
void report_epoch(struct report *r,
		  const struct eval_metrics *p); /* at its end: its points, and each rank's peak memory */

struct dptrack_run *report_run(struct report *r); /* borrowed */
const char *report_dir(const struct report *r);	  /* the run's folder */
const char *report_run_id(const struct report *r);
int report_segment(const struct report *r);

/* Times of a written checkpoint: copying into the snapshot, CPU time of the writer, and until it was on disk. Any
 * thread. */
void report_saved(struct report *r, int64_t step, double copy_s, double cpu_s, double wall_s);
void report_waited(struct report *r, int64_t step, double wait_s); /* wait for the previous checkpoint */
void report_flush(struct report *r, double wait_s); /* any thread: writes what was recorded so far to the journal */

/* status: of this rank. Only rank 0's counts, and the launcher's after it. */
void report_close(struct report *r, enum dptrack_status status);

/* Records the launcher's final status, in a journal of its own. */
void report_final(const struct run_config *cfg, const struct shared_status *shared_status, enum dptrack_status status,
		  const char *reason);

/* ---- log_datasets.c ----
 * Records the data sets of a run as its inputs. */

/* Called on rank 0 once the run is open. Of a run that has its params it records only those of the segment, and the
 * sets again: other sets are other inputs. Reads the files with --hash-content only. ERR_USAGE, ERR_IO: they cannot be
 * read. */
int log_datasets_record(struct dptrack_run *run, const struct engine *e, bool has_params, struct err *err);

#endif
