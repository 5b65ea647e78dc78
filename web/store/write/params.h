/* params.h: params of runs: the values that some have already, and new ones. On the writer's thread, inside its
 * transaction. */
#ifndef DPT_STORE_RUN_PARAMS_H
#define DPT_STORE_RUN_PARAMS_H

#include "tracker/base/arena.h"
#include "web/store/state/state.h"
#include "web/store/write/ingest.h"

/* (*ret)[i]: what the param kv[i].key is, NULL where the run has none of that name. All in the arena. */
int params_find(struct state *st, const struct state_run *r, const struct ingest_kv *kv, size_t n, struct arena *a,
		const char ***ret, struct err *err);

/* Those of them that are new; a param's first value holds. ERR_LIMIT: the run would have too many. */
int params_add(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

#endif
