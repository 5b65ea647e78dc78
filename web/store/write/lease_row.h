/* lease_row.h: the row of a lease (lease.h), on the connection that writes. Private to web/store/write. */
#ifndef DPT_STORE_LEASE_ROW_H
#define DPT_STORE_LEASE_ROW_H

#include "tracker/base/err.h"

#define LEASE_S 6 /* it holds so long after it was renewed */

struct db;

/* 1 the holder's from now on, 0 another's, negative: nobody can say. What one process holds alone is its own. */
int lease_row_take(struct db *d, const char *holder, const char *name, struct err *err);

#endif
