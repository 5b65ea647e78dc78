/* params.h: reads and adds params of runs. Writer's thread, inside its transaction. */
#ifndef DPT_STORE_RUN_PARAMS_H
#define DPT_STORE_RUN_PARAMS_H

#include "tracker/base/arena.h"
#include "web/store/state/state.h"
#include "web/store/write/ingest.h"

/* The params to find by the names of kv, and the values found. */
struct params_lookup {
	const struct state_run *run;
	const struct ingest_kv *kv;
	size_t count;
	struct arena *arena; /* of the values */
	const char **values; /* set by params_find: of each name; NULL: the run has no such param */
};

int params_find(struct state *st, struct params_lookup *l, struct err *err);

/* Adds those that are new; the first value of a param is final. ERR_LIMIT: the run would have too many. */
int params_add(struct state *st, struct state_run *r, const struct ingest_kv *kv, size_t n, struct err *err);

#endif
