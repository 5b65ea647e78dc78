/* input.h: data sets that runs read. A data set is one of its experiment by name and digest; what is said about one
 * first holds. */
#ifndef DPT_STORE_WRITE_INPUT_H
#define DPT_STORE_WRITE_INPUT_H

#include "web/store/write/ingest.h"
#include "web/store/state/state.h"

/* Tags are kept of the first time a run says that it used the set. */
int input_put(struct state *st, struct state_run *r, const struct ingest_dataset *d, struct err *err);

#endif
