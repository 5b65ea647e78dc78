/* input.h: data sets that runs read. A data set is identified by experiment, name and digest. Its description is the
 * first one received. */
#ifndef DPT_STORE_WRITE_INPUT_H
#define DPT_STORE_WRITE_INPUT_H

#include "web/store/write/ingest.h"
#include "web/store/state/state.h"

/* Records that the run used the data set. Tags of the first use are final. */
int input_put(struct state *st, struct state_run *r, const struct ingest_dataset *d, struct err *err);

#endif
