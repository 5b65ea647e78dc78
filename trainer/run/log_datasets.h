/* log_datasets.h: what a run records of its data: the sets as inputs, and params. */
#ifndef DPT_RUN_LOG_DATASETS_H
#define DPT_RUN_LOG_DATASETS_H

#include "tracker/dptrack.h"
#include "trainer/run/engine.h"

/* Of rank 0, once the run is open; of one that has its params what belongs to its segment, and the sets once more:
 * other ones are other inputs. With --hash-content it reads them; else nothing. ERR_USAGE, ERR_IO: they cannot be
 * read. */
int log_datasets_record(struct dptrack_run *run, const struct engine *e, bool has_params, struct err *err);

#endif
