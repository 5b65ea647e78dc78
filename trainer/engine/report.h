/* report.h: what a rank records of its run through libdptrack: params and environment (rank 0), the run's series
 * (rank 0), its own phases and memory. Logging only queues. */
#ifndef DPT_ENGINE_REPORT_H
#define DPT_ENGINE_REPORT_H

#include "tracker/dptrack.h"
#include "trainer/engine/console.h"
#include "trainer/engine/engine.h"

struct report;

/* Collective: rank 0 opens the run and tells the others its id. */
int report_open(struct report **ret, struct engine *e, struct err *err);

void report_step(struct report *r, const struct step_result *s);
void report_epoch(struct report *r, const struct epoch_summary *s);

const char *report_dir(const struct report *r); /* the run's folder */

/* status: how this rank ended. Only rank 0's counts, and the launcher's after it. */
void report_close(struct report *r, enum dptrack_status status);

/* The launcher's last word, in a journal of its own. */
void report_final(const struct run_config *cfg, const char *run_id, int world, enum dptrack_status status,
		  const char *reason);

#endif
