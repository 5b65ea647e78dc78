/* stale_runs.h: running runs whose journals fell silent are taken for killed. The writer's thread alone. */
#ifndef DPT_STORE_STALE_RUNS_H
#define DPT_STORE_STALE_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/write/transaction.h"

/* Some of them, in a transaction of its own: 1, 0 where there are none, or negative. *ret_more: there may be others.
 * *ret_rev: of the change; 0: there was none that others want to hear of. */
int stale_runs_mark(struct transaction *t, bool *ret_more, uint64_t *ret_rev, struct err *err);

#endif
