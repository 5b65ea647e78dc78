/* SPDX-License-Identifier: Apache-2.0 */
/* log_datasets.h: records the data sets of a run as its inputs. */
#ifndef DPT_RUN_LOG_DATASETS_H
#define DPT_RUN_LOG_DATASETS_H

#include "tracker/dptrack.h"
#include "trainer/run/engine.h"

/* Called on rank 0 once the run is open. Of a run that has its params it records only those of the segment, and the
 * sets again: other sets are other inputs. Reads the files with --hash-content only. ERR_USAGE, ERR_IO: they cannot be
 * read. */
int log_datasets_record(struct dptrack_run *run, const struct engine *e, bool has_params, struct err *err);

#endif
