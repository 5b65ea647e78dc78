/* lease_row.h: the row of a lease (lease.h), on the connection that writes. Private to web/store/write. */
#ifndef DPT_STORE_LEASE_ROW_H
#define DPT_STORE_LEASE_ROW_H

#include "tracker/base/err.h"

#define LEASE_S 6 /* lifetime after a renewal */

struct db;

/* Takes or renews a lease: 1 holder has it, 0 another process has it, negative: unknown. A store that one process
 * holds alone returns 1. */
int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err);

#endif
