/* params.h: reads and adds params of runs. Writer's thread, inside its transaction. */
#ifndef DPT_STORE_RUN_PARAMS_H
#define DPT_STORE_RUN_PARAMS_H

#include "tracker/base/arena.h"
#include "web/store/state/state.h"
#include "web/store/write/ingest.h"

/* Sets (*ret)[i] to the value of param kv[i].key, NULL where the run has none of that name. All in the arena. */
int params_find(struct state *st, const struct state_run *r, const struct ingest_kv *kv, size_t n, struct arena *a,
		const char ***ret, struct err *err);

/* Adds those that are new; the first value of a param is final. ERR_LIMIT: the run would have too many. */
int params_add(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

#endif
