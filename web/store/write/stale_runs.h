/* stale_runs.h: marks running runs whose journals fell silent (stale runs) as killed. Writer's thread only. */
#ifndef DPT_STORE_STALE_RUNS_H
#define DPT_STORE_STALE_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/write/transaction.h"

/* Marks some of them in a transaction of its own: 1 done, 0 there are none, negative: failed. *ret_more: there may
 * be others. *ret_rev: revision of the change; 0: nothing that watchers need to see. */
int stale_runs_mark(struct transaction *t, bool *ret_more, uint64_t *ret_rev, struct err *err);

#endif
