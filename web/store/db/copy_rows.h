/* copy_rows.h: one store's file copied into another, some pages at a time, while the source goes on being written by the
 * same connection between the steps. */
#ifndef DPT_STORE_COPY_ROWS_H
#define DPT_STORE_COPY_ROWS_H

#include <stdbool.h>

#include "web/store/db/db.h"

struct db_copy;

int copy_new(struct db_copy **ret, struct db *to, struct db *from, struct err *err); /* both outlive it */
void copy_free(struct db_copy *c);						     /* NULL is fine */

/* That somebody holds a file is no failure: the step did nothing and is asked for again. */
int copy_step(struct db_copy *c, int pages, bool *ret_done, struct err *err);

#endif
